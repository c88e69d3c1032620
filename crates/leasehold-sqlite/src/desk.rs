//! Where transactions are made: the database connection and what goes with it.

use std::sync::Arc;

use leasehold_core::{ClientId, Clock, Fault, FaultKind};
use rusqlite::Connection;

use crate::{
    effects::Effects,
    error::Stop,
    fence::Fence,
    members::Members,
    steps::Step,
    sys,
    tx::{Mode, Tx},
    waits::Waits,
};

/// What a transaction is made with.
#[derive(Debug)]
pub(crate) struct Desk {
    /// `None`: closed.
    pub(crate) conn: Option<Connection>,
    pub(crate) fence: Fence,
    last_beat: i64,
    sweeps: u32,
}

/// Where a transaction belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) me: ClientId,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) members: &'a Members,
    pub(crate) waits: &'a Waits,
}

impl Desk {
    pub(crate) const fn new(conn: Connection, fence: Fence) -> Self {
        Self { conn: Some(conn), fence, last_beat: i64::MIN / 2, sweeps: 0 }
    }

    /// Runs a step in a transaction of its own. Whoever writes has the guard. The effects are for
    /// the caller to deliver once it has let go of every lock.
    pub(crate) fn transact<S: Step>(
        &mut self,
        context: Context<'_>,
        mode: Mode,
        step: &S,
    ) -> Result<(S::Answer, Effects), Stop> {
        self.begin(mode)?;
        let (answer, effects) = match self.run_step(context, mode, step) {
            Ok(done) => done,
            Err(stop) => {
                self.roll_back();
                return Err(stop);
            }
        };
        if let Err(stop) = self.commit() {
            effects.revert(context.waits);
            self.roll_back();
            return Err(stop);
        }
        self.note_beat(&effects);
        Ok((answer, effects))
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self, mode: Mode) -> Result<(), Stop> {
        // A step that panicked has left its transaction behind.
        self.roll_back();
        let begin = if mode.only_reads() { "BEGIN" } else { "BEGIN IMMEDIATE" };
        self.conn()?.prepare_cached(begin)?.execute([])?;
        Ok(())
    }

    /// Runs a step in the transaction that has begun. After an error the transaction is of no use.
    pub(crate) fn run_step<S: Step>(
        &mut self,
        context: Context<'_>,
        mode: Mode,
        step: &S,
    ) -> Result<(S::Answer, Effects), Stop> {
        let Some(conn) = &self.conn else { return Err(Stop::Fault(closed())) };
        let mut tx = Tx {
            conn,
            fence: &mut self.fence,
            members: context.members,
            waits: context.waits,
            me: context.me,
            mode,
            now: context.clock.now().0.cast_signed(),
            monotonic: sys::monotonic_us(),
            last_beat: self.last_beat,
            sweeps: &mut self.sweeps,
            effects: Effects::default(),
        };
        let answer = step.run(&mut tx);
        let effects = tx.effects;
        match answer {
            Ok(answer) => Ok((answer, effects)),
            Err(stop) => {
                effects.revert(context.waits);
                Err(stop)
            }
        }
    }

    pub(crate) fn commit(&mut self) -> Result<(), Stop> {
        self.conn()?.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    pub(crate) fn roll_back(&mut self) {
        if let Some(conn) = &self.conn
            && !conn.is_autocommit()
        {
            // Should it fail, the next transaction cannot begin and says why.
            let _ = conn.execute_batch("ROLLBACK");
        }
    }

    /// Notes a beat that was written and committed.
    pub(crate) fn note_beat(&mut self, effects: &Effects) {
        if let Some(beat) = effects.beat {
            self.last_beat = beat;
        }
    }

    fn conn(&self) -> Result<&Connection, Stop> {
        self.conn.as_ref().ok_or_else(|| Stop::Fault(closed()))
    }
}

/// What a client that has ended answers.
pub(crate) fn closed() -> Fault {
    Fault::new(FaultKind::Closed, "the client was closed")
}

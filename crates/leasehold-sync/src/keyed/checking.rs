//! Checked keyed requests: told of reentrancy and of deadlocks (rules R2, R4 and K4).

use std::{future::Future, task::Context, task::Poll};

use super::{
    acquire::{AcquireKeyed, AcquireKeyedWith},
    ask,
    guard::KeyedSource,
    table::{Grant, Outcome, Table},
};
use crate::{
    cancel::CancelReason,
    error::{Error, Place},
    frames::{Access, Ask, Hold, LockLabel, Order, Share, Target, Waiting, in_a_frame, in_frame},
};

/// What a request has if it is checked.
#[derive(Default)]
pub(super) struct Check {
    /// Where it was asked for.
    place: Option<Place>,
    /// There once it is queued in a frame, or to open one.
    checking: Option<Box<Checking>>,
}

struct Checking {
    // First, so that the record goes before the request leaves its queue.
    waiting: Waiting,
    ask: Ask,
}

/// A grant, and how it came about if it was checked.
#[doc(hidden)]
#[allow(missing_debug_implementations, reason = "no user sees it")]
pub struct Checked {
    pub(super) grant: Grant,
    pub(super) ask: Option<Ask>,
    pub(super) share: Option<Share>,
}

/// What a frame holds: a grant of its own, or a share of one.
struct Held<L: KeyedSource> {
    hold: Hold,
    source: L,
    grant: Grant,
}

/// Acquires, runs the work in a frame of its own, and releases.
pub(crate) async fn run<L, C, R>(
    acquire: AcquireKeyedWith<L, C>,
    place: Place,
    work: impl AsyncFnOnce() -> R,
) -> Result<R, Error>
where
    L: KeyedSource,
    C: Future<Output: CancelReason>,
{
    let held = {
        let mut acquire = std::pin::pin!(acquire.checked(place));
        let checked = std::future::poll_fn(|cx| acquire.as_mut().poll_checked(true, cx)).await?;
        let source = acquire.project_source();
        let Checked { grant, ask, share } = checked;
        // Where it was free outside of frames, nothing was asked yet.
        let ask = ask.unwrap_or_else(|| ask_for::<L>(source.table(), grant, place));
        let hold = match share {
            Some(share) => Hold::sharing(&ask, share),
            None => Hold::new(&ask),
        };
        Held { hold, source, grant }
    };
    Ok(in_frame(&held.hold, work()).await)
}

impl Check {
    pub(super) const fn ask_at(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// One poll of a checked request that was not granted yet. It `opens` a frame, or else gives a
    /// guard that can be moved.
    pub(super) fn poll<L: KeyedSource>(
        &mut self,
        acquire: &mut AcquireKeyed<L>,
        opens: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Checked, Error>> {
        if self.checking.is_none() {
            // Queued outside of frames it stays unknown to them, unless it is to open one: then others
            // may come to wait behind it, and for what it waits for.
            if acquire.place.is_some() || !(opens || in_a_frame()) {
                return acquire
                    .poll_grant(cx)
                    .map(|grant| Ok(Checked { grant, ask: None, share: None }));
            }
            match arrive(acquire, self.place(), cx)? {
                Arrived::Granted(checked) => return Poll::Ready(Ok(checked)),
                Arrived::Queued(queued, checking, deadlock) => {
                    acquire.place = Some(queued);
                    self.checking = Some(checking);
                    return match deadlock {
                        None => Poll::Pending,
                        Some(error) => Poll::Ready(self.leave(acquire, error)),
                    };
                }
            }
        }
        if let Poll::Ready(grant) = acquire.poll_grant(cx) {
            return Poll::Ready(Ok(self.granted_after(grant)));
        }
        let Some(checking) = &mut self.checking else { unreachable!("seen above") };
        match checking.waiting.renew(&checking.ask) {
            Ok(None) => Poll::Pending,
            Ok(Some(share)) => {
                let ask = Some(checking.ask);
                let grant = table(acquire).shared(&acquire.wanted, share.grant());
                if let Err(own) = self.leave_queue(acquire) {
                    // It needs none of its own.
                    table(acquire).release(own);
                }
                Poll::Ready(Ok(Checked { grant, ask, share: Some(share) }))
            }
            Err(error) => Poll::Ready(self.leave(acquire, error)),
        }
    }

    /// One attempt that never queues.
    pub(super) fn try_now<L: KeyedSource>(
        &self,
        acquire: &mut AcquireKeyed<L>,
    ) -> Result<Checked, Error> {
        let place = self.place();
        let AcquireKeyed { source, wanted, .. } = acquire;
        let Some(source) = source else { panic!("polled again after it was ready") };
        let table = source.table();
        if in_a_frame() {
            let name = table.name(wanted);
            let ask = ask_of::<L>(table, wanted.ask(), name, place);
            if let Some(share) = ask.check()? {
                let grant = table.shared(wanted, share.grant());
                return Ok(Checked { grant, ask: Some(ask), share: Some(share) });
            }
        }
        match table.take(wanted) {
            Some(grant) => {
                let ask = in_a_frame().then(|| ask_for::<L>(table, grant, place));
                Ok(Checked { grant, ask, share: None })
            }
            None => Err(acquire.busy()),
        }
    }

    /// Gives up. The record goes first, then the place; if the grant was faster, it is delivered:
    /// somebody may have given up meanwhile, so that nothing is wrong any more.
    pub(super) fn leave<L: KeyedSource>(
        &mut self,
        acquire: &mut AcquireKeyed<L>,
        error: Error,
    ) -> Result<Checked, Error> {
        match self.leave_queue(acquire) {
            Ok(queued) => Err(error.among(queued)),
            Err(grant) => Ok(self.granted_after(grant)),
        }
    }

    fn leave_queue<L: KeyedSource>(&mut self, acquire: &mut AcquireKeyed<L>) -> Result<u32, Grant> {
        if let Some(checking) = &mut self.checking {
            checking.waiting.end();
        }
        acquire.leave()
    }

    fn granted_after(&mut self, grant: Grant) -> Checked {
        let ask = self.checking.take().map(|mut checking| {
            checking.waiting.end();
            Ask { grant: grant.whole(), ..checking.ask }
        });
        Checked { grant, ask, share: None }
    }

    fn place(&self) -> Place {
        let Some(place) = self.place else { unreachable!("it is to be checked") };
        place
    }
}

fn table<L: KeyedSource>(acquire: &AcquireKeyed<L>) -> &Table<L::Key> {
    let Some(source) = &acquire.source else { unreachable!("it is there until the grant") };
    source.table()
}

enum Arrived {
    Granted(Checked),
    Queued(super::table::Place, Box<Checking>, Option<Error>),
}

/// The first poll, in a frame or to open one.
fn arrive<L: KeyedSource>(
    acquire: &mut AcquireKeyed<L>,
    place: Place,
    cx: &Context<'_>,
) -> Result<Arrived, Error> {
    let AcquireKeyed { source, wanted, .. } = acquire;
    let Some(source) = source else { panic!("polled again after it was ready") };
    let table = source.table();
    if !in_a_frame()
        && let Some(grant) = table.take(wanted)
    {
        return Ok(Arrived::Granted(Checked { grant, ask: None, share: None }));
    }
    // Again only if the entry of the key came or went meanwhile.
    loop {
        let name = table.name(wanted);
        let ask = ask_of::<L>(table, wanted.ask(), name, place);
        if let Some(share) = ask.check()? {
            let grant = table.shared(wanted, share.grant());
            return Ok(Arrived::Granted(Checked { grant, ask: Some(ask), share: Some(share) }));
        }
        if let Some(grant) = table.take(wanted) {
            let ask = Some(ask_for::<L>(table, grant, place));
            return Ok(Arrived::Granted(Checked { grant, ask, share: None }));
        }
        let mut checking = Box::new(Checking { waiting: Waiting::new(), ask });
        let (mut waker, mut outcome) = (Some(cx.waker().clone()), Outcome::Renamed);
        let recorded = checking.waiting.arrive(&ask, || {
            outcome = table.arrive(wanted, &mut waker);
            matches!(outcome, Outcome::Queued(_))
        });
        match outcome {
            Outcome::Queued(queued) => {
                return Ok(Arrived::Queued(queued, checking, recorded.err()));
            }
            Outcome::Granted(grant) => {
                let ask = Some(ask_for::<L>(table, grant, place));
                return Ok(Arrived::Granted(Checked { grant, ask, share: None }));
            }
            Outcome::Renamed => {}
        }
    }
}

fn ask_for<L: KeyedSource>(table: &Table<L::Key>, grant: Grant, place: Place) -> Ask {
    let ask = ask_of::<L>(table, grant.ask(), grant.name(), place);
    Ask { grant: grant.whole(), ..ask }
}

fn ask_of<L: KeyedSource>(
    table: &Table<L::Key>,
    asked: ask::Ask,
    name: Option<std::num::NonZeroU64>,
    place: Place,
) -> Ask {
    let domain = table.domain();
    let target = name.map_or(Target::whole(domain), |name| Target::key(domain, name));
    let access = if asked.access().writes() { Access::Exclusive } else { Access::Shared };
    let lock = LockLabel { kind: L::kind(asked), of: L::of() };
    Ask { target, access, lock, place, order: Order::Keyed, grant: None }
}

impl<L: KeyedSource> Drop for Held<L> {
    fn drop(&mut self) {
        // The record goes first, then the grant, with its last guard.
        if self.hold.end() {
            self.source.table().release(self.grant);
        }
    }
}

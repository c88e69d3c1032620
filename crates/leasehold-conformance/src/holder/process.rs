//! The case's side: a holder that it starts, orders about, stops and kills.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::protocol::{Event, Happened, Order, Wish};
use crate::bench::block::eventually;

/// How long an event may take on a busy machine.
pub const EVENT_BOUND: Duration = Duration::from_secs(20);

/// A running holder. Dropping it kills it.
#[derive(Debug)]
pub struct HolderProcess {
    child: Child,
    /// `None`: it was told that there are no more.
    orders: Option<ChildStdin>,
    events: Receiver<Event>,
    /// Events that came before the one that was expected.
    passed_over: VecDeque<Event>,
}

impl HolderProcess {
    /// Starts it and waits until it has its client.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the holder program starts");
        let orders = child.stdin.take().expect("standard input is a pipe");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let events = read_events(stdout);
        let orders = Some(orders);
        let mut holder = Self { child, orders, events, passed_over: VecDeque::new() };
        holder.expect("", Happened::Ready);
        holder
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order.
    ///
    /// # Panics
    /// When the holder has ended.
    #[track_caller]
    pub fn order(&mut self, order: &Order) {
        let mut line = serde_json::to_string(order).expect("an order is data");
        line.push('\n');
        let orders = self.orders.as_mut().expect("the holder was not told to end");
        orders.write_all(line.as_bytes()).expect("the holder takes orders");
    }

    /// Orders an acquisition and expects that it is held at once.
    #[track_caller]
    pub fn holds(&mut self, wish: Wish) -> Event {
        let id = wish.id.clone();
        self.order(&Order::Acquire(wish));
        self.expect(&id, Happened::Held)
    }

    /// Orders an acquisition and expects that it waits.
    #[track_caller]
    pub fn waits(&mut self, wish: Wish) -> Event {
        let id = wish.id.clone();
        self.order(&Order::Acquire(wish));
        self.expect(&id, Happened::Queued)
    }

    /// Orders a release and expects that a grant was given back.
    #[track_caller]
    pub fn releases(&mut self, id: &str) -> Event {
        self.order(&Order::Release { id: id.to_owned() });
        self.expect(id, Happened::Released)
    }

    /// Waits for an event of an acquisition; others of other acquisitions may come before.
    ///
    /// # Panics
    /// When another event of this acquisition comes first, or none in time.
    #[track_caller]
    pub fn expect(&mut self, id: &str, happened: Happened) -> Event {
        let event = self.next_of(id);
        assert_eq!(event.happened, happened, "expected of {id:?}: {event:?}");
        event
    }

    /// The next event of an acquisition.
    ///
    /// # Panics
    /// When none comes in time.
    #[track_caller]
    pub fn next_of(&mut self, id: &str) -> Event {
        if let Some(place) = self.passed_over.iter().position(|event| event.id == id) {
            return self.passed_over.remove(place).expect("it was just found");
        }
        let start = Instant::now();
        loop {
            let left = EVENT_BOUND.saturating_sub(start.elapsed());
            match self.events.recv_timeout(left) {
                Ok(event) if event.id == id => return event,
                Ok(event) => self.passed_over.push_back(event),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no event of {id:?} within {EVENT_BOUND:?}; {:?}", self.passed_over)
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the holder has ended"),
            }
        }
    }

    /// Tells it that there are no more orders, and waits until its process has ended, whatever it
    /// holds and waits for.
    ///
    /// # Panics
    /// When it does not end in time, or not well.
    #[track_caller]
    pub fn end(&mut self) {
        drop(self.orders.take());
        let mut status = None;
        eventually("the holder ends", EVENT_BOUND, || {
            status = self.child.try_wait().expect("the holder can be waited for");
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "the holder ended with {status:?}");
    }

    /// Kills it so that it cannot say goodbye, by SIGKILL, and waits until it is gone.
    ///
    /// # Panics
    /// When the system refuses.
    #[track_caller]
    pub fn kill9(&mut self) {
        self.child.kill().expect("the holder can be killed");
        self.child.wait().expect("the holder can be waited for");
    }

    /// Stops it by SIGSTOP, and waits until all of its threads stand still; until then any of them
    /// may go on.
    ///
    /// # Panics
    /// When it has ended.
    #[track_caller]
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let pid = Pid::from_child(&self.child);
        let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED);
        let stopped = stopped.expect("the holder can be waited for").is_some_and(|s| s.stopped());
        assert!(stopped, "the holder has ended instead of stopping");
    }

    /// Lets it go on: SIGCONT.
    #[track_caller]
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    #[track_caller]
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the holder takes a signal");
    }
}

impl Drop for HolderProcess {
    fn drop(&mut self) {
        // It may have been killed by the case already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on a thread of its own, so that a full pipe never holds the holder up.
fn read_events(stdout: ChildStdout) -> Receiver<Event> {
    let (sender, events) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let event = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("no event of a holder: {line:?}: {error}"));
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}

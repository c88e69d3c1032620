//! The client's own thread: it runs what could not run inline, wakes waiters, times expiries,
//! probes who is in the way, and ends the client.
//!
//! It starts with the first need and then sleeps in `poll` on the client's pipe: without an end
//! while there is nothing to wait for.

mod looker;
mod mailbox;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold_core::{Fault, FaultKind, defaults};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
};

use crate::{
    answer::Reply,
    client::{Client, patience},
    desk::{Context, Desk},
    effects::Effects,
    error::Stop,
    members::LOOK,
    steps::Step,
    tx::Mode,
};

pub(crate) use looker::PROBE_US;
pub(crate) use mailbox::Mailbox;

/// How many messages are worked off before the thread looks after its waiters.
const MESSAGES_MAX: usize = 64;
/// How long after a failure a step that must take effect is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Something for the thread to do.
pub(crate) trait Work: Send + std::fmt::Debug {
    /// Does it. `Some`: it has to be repeated later.
    fn run(self: Box<Self>, client: &Arc<Client>) -> Option<Box<dyn Work>>;

    /// Whether it is short enough to share a transaction with others.
    fn joins(&self) -> bool {
        false
    }

    /// Does it within a transaction that others share, and keeps the answer for
    /// [`joined`](Self::joined). Only for work that [`joins`](Self::joins).
    fn join(&mut self, desk: &mut Desk, context: Context<'_>) -> Result<Effects, Stop>;

    /// The shared transaction is committed: answers.
    fn joined(self: Box<Self>) {}

    /// It cannot be done now. `Some`: it has to be repeated later.
    fn failed(self: Box<Self>, _: &Fault) -> Option<Box<dyn Work>> {
        None
    }

    /// The client has ended before.
    fn too_late(self: Box<Self>) {}
}

/// A step, and who waits for its answer.
pub(crate) struct Task<S: Step> {
    step: S,
    reply: Option<Reply<S::Answer>>,
    /// What it answers once the shared transaction is committed.
    answer: Option<S::Answer>,
}

impl<S: Step> Task<S> {
    pub(crate) const fn new(step: S, reply: Option<Reply<S::Answer>>) -> Self {
        Self { step, reply, answer: None }
    }
}

impl<S: Step> std::fmt::Debug for Task<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

impl<S: Step> Work for Task<S> {
    fn run(mut self: Box<Self>, client: &Arc<Client>) -> Option<Box<dyn Work>> {
        let answer = client.run_patiently(&self.step, patience());
        let again = S::MUST && answer.as_ref().is_err_and(Fault::is_retryable);
        if let Some(reply) = self.reply.take() {
            reply.send(answer);
        }
        if again { Some(self) } else { None }
    }

    fn joins(&self) -> bool {
        S::INLINE
    }

    fn join(&mut self, desk: &mut Desk, context: Context<'_>) -> Result<Effects, Stop> {
        let (answer, effects) = desk.run_step(context, Mode::Thread, &self.step)?;
        self.answer = Some(answer);
        Ok(effects)
    }

    fn joined(mut self: Box<Self>) {
        if let (Some(reply), Some(answer)) = (self.reply.take(), self.answer.take()) {
            reply.send(Ok(answer));
        }
    }

    fn failed(mut self: Box<Self>, fault: &Fault) -> Option<Box<dyn Work>> {
        if let Some(reply) = self.reply.take() {
            reply.send(Err(Fault::new(fault.kind(), fault.to_string())));
        }
        if S::MUST && fault.is_retryable() { Some(self) } else { None }
    }
}

/// The end of the client, asked for by `close`.
#[derive(Debug)]
pub(crate) struct Close(pub(crate) Reply<()>);

impl Work for Close {
    fn run(self: Box<Self>, client: &Arc<Client>) -> Option<Box<dyn Work>> {
        self.0.send(client.end(patience()));
        None
    }

    fn join(&mut self, _: &mut Desk, _: Context<'_>) -> Result<Effects, Stop> {
        // It does not join: run alone, it does what it has to.
        Err(Stop::Heavy)
    }

    fn too_late(self: Box<Self>) {
        self.0.send(Ok(()));
    }
}

/// Starts the thread of a client unless it runs.
pub(crate) fn start(client: &Arc<Client>) -> Result<(), Fault> {
    if !client.mailbox.begin() {
        return Ok(());
    }
    let shared = Arc::clone(client);
    let started =
        std::thread::Builder::new().name("leasehold-sqlite".into()).spawn(move || run(&shared));
    started.map(drop).map_err(|error| {
        client.mailbox.began_not();
        Fault::new(FaultKind::Unavailable, "no thread can be started for the store")
            .with_source(error)
    })
}

/// Answers everybody when the thread ends, also when it ends by a panic.
struct Ending<'a>(&'a Client);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
        self.0.mailbox.finish();
    }
}

fn run(client: &Arc<Client>) {
    let _ending = Ending(client);
    let mut looker = looker::Looker::default();
    let mut retries: Vec<Box<dyn Work>> = Vec::new();
    let mut retry_at = None;
    let mut told_to_look = true;
    loop {
        let epoch = client.mailbox.epoch();
        work_off(client, &mut retries);
        if client.is_closed() {
            break;
        }
        if retries.is_empty() {
            retry_at = None;
        } else if *retry_at.get_or_insert_with(|| Instant::now() + RETRY_PAUSE) <= Instant::now() {
            retry(client, &mut retries);
            retry_at = Some(Instant::now() + RETRY_PAUSE);
        }
        if client.mailbox.is_to_quit() && !client.mailbox.has_messages() {
            flush(client, retries);
            break;
        }
        let next_look = looker.look_if_due(client, told_to_look);
        let wake_at =
            [next_look, retry_at.map(|at| client.now() + until_us(at))].into_iter().flatten().min();
        told_to_look = false;
        if client.mailbox.fall_asleep(epoch, wake_at) {
            told_to_look = sleep(client, wake_at);
            client.mailbox.wake_up();
        }
    }
}

/// Works off what is in the mailbox, in its order; what can share a transaction does.
fn work_off(client: &Arc<Client>, retries: &mut Vec<Box<dyn Work>>) {
    let mut works = client.mailbox.take(MESSAGES_MAX);
    let mut together = Vec::new();
    while !works.is_empty() {
        while works.front().is_some_and(|work| work.joins()) {
            together.extend(works.pop_front());
        }
        let count = together.len();
        let ran =
            if count > 1 { client.run_together(&mut together, patience()) } else { Ok(false) };
        match ran {
            Ok(true) => {
                // Before the answers, which bring the next calls: those may run inline.
                client.mailbox.done(count);
                together.drain(..).for_each(Work::joined);
            }
            Ok(false) => {
                for work in together.drain(..) {
                    retries.extend(work.run(client));
                    client.mailbox.done(1);
                }
            }
            Err(fault) => {
                retries.extend(together.drain(..).filter_map(|work| work.failed(&fault)));
                client.mailbox.done(count);
            }
        }
        if let Some(alone) = works.pop_front() {
            retries.extend(alone.run(client));
            client.mailbox.done(1);
        }
    }
}

/// Repeats what failed, until something fails again: it stands in the way of the rest too.
fn retry(client: &Arc<Client>, works: &mut Vec<Box<dyn Work>>) {
    let mut rest = std::mem::take(works).into_iter();
    for work in rest.by_ref() {
        if let Some(again) = work.run(client) {
            works.push(again);
            break;
        }
    }
    works.extend(rest);
}

/// The last things before the client ends with its last handle (rule N6).
fn flush(client: &Arc<Client>, retries: Vec<Box<dyn Work>>) {
    // What was to be repeated is a part of the end: the client's own waiters and grants go with it.
    drop(retries);
    // Should it fail, the freed liveness lock tells the others the same.
    let _ = client.end(Instant::now() + defaults::FLUSH);
}

/// Sleeps until there is something in the pipe, or until that time. Says whether somebody else has
/// told this client to look.
fn sleep(client: &Client, until: Option<i64>) -> bool {
    let timeout = until.map(|at| {
        let us = (at - client.now()).max(0);
        Timespec { tv_sec: us / 1_000_000, tv_nsec: us % 1_000_000 * 1000 }
    });
    let mut fds = [PollFd::new(&client.pipe, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return false,
        // A poll that fails would make the loop spin: look in a while.
        Err(_) => std::thread::sleep(RETRY_PAUSE),
        Ok(_) => {}
    }
    let mut bytes = [0; 256];
    let mut look = false;
    while let Ok(len) = read(&client.pipe, &mut bytes) {
        look |= bytes[..len].contains(&LOOK);
        if len < bytes.len() {
            break;
        }
    }
    look
}

fn until_us(at: Instant) -> i64 {
    i64::try_from(at.saturating_duration_since(Instant::now()).as_micros()).unwrap_or(i64::MAX / 2)
}

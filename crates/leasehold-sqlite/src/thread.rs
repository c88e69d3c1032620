//! The client's own thread: it runs what could not run inline, wakes waiters, times expiries,
//! probes who is in the way, and ends the client.
//!
//! It starts with the first need and then sleeps in `poll` on the client's pipe: without an end
//! while there is nothing to wait for.

mod looker;
mod mailbox;

use std::{
    collections::VecDeque,
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

/// How long the thread waits for the guard at a stretch, before it answers who only reads.
const STRETCH: Duration = Duration::from_millis(100);

/// Something for the thread to do.
pub(crate) trait Work: Send + std::fmt::Debug {
    /// Does it, unless the guard is not to be had until then.
    fn run(self: Box<Self>, client: &Arc<Client>, until: Instant) -> Ran;

    /// Whether it may need no guard, and so need not wait behind what does.
    fn reads(&self) -> bool {
        false
    }

    /// When it has waited long enough, counted from when it was asked for.
    fn deadline(&self) -> Instant;

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

/// What became of work.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It is done, or was answered with a fault.
    Done,
    /// It has to be repeated later.
    Again(Box<dyn Work>),
    /// The guard is still somebody else's, and the work can wait on.
    Waits(Box<dyn Work>),
}

/// A step, and who waits for its answer.
pub(crate) struct Task<S: Step> {
    step: S,
    deadline: Instant,
    reply: Option<Reply<S::Answer>>,
    /// What it answers once the shared transaction is committed.
    answer: Option<S::Answer>,
}

impl<S: Step> Task<S> {
    pub(crate) fn new(step: S, reply: Option<Reply<S::Answer>>) -> Self {
        const { assert!(!(S::READS && S::MUST), "nothing that reads has to take effect") };
        Self { step, deadline: patience(), reply, answer: None }
    }
}

impl<S: Step> std::fmt::Debug for Task<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

impl<S: Step> Work for Task<S> {
    fn run(mut self: Box<Self>, client: &Arc<Client>, until: Instant) -> Ran {
        let by = if self.reply.is_some() { until.min(self.deadline) } else { until };
        let answer = client.run_patiently(&self.step, by);
        if still_waits(&answer, by, self.deadline) {
            return Ran::Waits(self);
        }
        let again = S::MUST && answer.as_ref().is_err_and(Fault::is_retryable);
        if let Some(reply) = self.reply.take() {
            reply.send(answer);
        }
        if again { Ran::Again(self) } else { Ran::Done }
    }

    fn reads(&self) -> bool {
        S::READS
    }

    fn deadline(&self) -> Instant {
        self.deadline
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

/// Whether a try ended because the guard was not to be had by then, and another may follow.
fn still_waits<T>(answer: &Result<T, Fault>, by: Instant, deadline: Instant) -> bool {
    let now = Instant::now();
    let is_busy = |fault: &Fault| fault.kind() == FaultKind::Unavailable;
    answer.as_ref().is_err_and(is_busy) && by <= now && now < deadline
}

/// The end of the client, asked for by `close`.
#[derive(Debug)]
pub(crate) struct Close {
    reply: Reply<()>,
    deadline: Instant,
}

impl Close {
    pub(crate) fn new(reply: Reply<()>) -> Self {
        Self { reply, deadline: patience() }
    }
}

impl Work for Close {
    fn run(self: Box<Self>, client: &Arc<Client>, until: Instant) -> Ran {
        let by = until.min(self.deadline);
        let ended = client.end(by);
        if still_waits(&ended, by, self.deadline) {
            return Ran::Waits(self);
        }
        self.reply.send(ended);
        Ran::Done
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn join(&mut self, _: &mut Desk, _: Context<'_>) -> Result<Effects, Stop> {
        // It does not join: run alone, it does what it has to.
        Err(Stop::Heavy)
    }

    fn too_late(self: Box<Self>) {
        self.reply.send(Ok(()));
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
    // How many of the next are not to share one.
    let mut alone = 0_usize;
    while let Some(first) = works.pop_front() {
        let joining = works.iter().take_while(|work| work.joins()).count();
        let waits = if alone > 0 || joining == 0 || !first.joins() {
            alone = alone.saturating_sub(1);
            match first.run(client, Instant::now() + STRETCH) {
                Ran::Waits(work) => {
                    works.push_front(work);
                    true
                }
                ran => {
                    if let Ran::Again(work) = ran {
                        retries.push(work);
                    }
                    client.mailbox.done(1);
                    false
                }
            }
        } else {
            let mut together = Vec::with_capacity(joining + 1);
            together.push(first);
            together.extend(works.drain(..joining));
            match client.run_together(&mut together, Instant::now() + STRETCH) {
                Ok(true) => {
                    // Before the answers, which bring the next calls: those may run inline.
                    client.mailbox.done(together.len());
                    together.drain(..).for_each(Work::joined);
                }
                Ok(false) => alone = together.len(),
                Err(fault) => fail(client, &mut together, &fault, retries),
            }
            let waits = alone == 0 && !together.is_empty();
            together.into_iter().rev().for_each(|work| works.push_front(work));
            waits
        };
        if waits {
            answer_readers(client, &mut works);
        }
    }
}

/// The guard was not to be had: those that have waited long enough are told, the others stay.
fn fail(
    client: &Client,
    together: &mut Vec<Box<dyn Work>>,
    fault: &Fault,
    retries: &mut Vec<Box<dyn Work>>,
) {
    let (now, is_busy) = (Instant::now(), fault.kind() == FaultKind::Unavailable);
    for work in std::mem::take(together) {
        if is_busy && now < work.deadline() {
            together.push(work);
        } else {
            retries.extend(work.failed(fault));
            client.mailbox.done(1);
        }
    }
}

/// Answers those who only read while the rest waits for the guard.
fn answer_readers(client: &Arc<Client>, works: &mut VecDeque<Box<dyn Work>>) {
    let fresh = client.mailbox.take_readers(MESSAGES_MAX);
    let (readers, rest) = std::mem::take(works).into_iter().partition::<Vec<_>, _>(|w| w.reads());
    works.extend(rest);
    for work in readers.into_iter().chain(fresh) {
        match work.run(client, Instant::now()) {
            // It has found something to clean up, which needs the guard.
            Ran::Waits(work) => works.push_back(work),
            Ran::Done => client.mailbox.done(1),
            Ran::Again(_) => unreachable!("nothing that reads has to take effect"),
        }
    }
}

/// Repeats what failed, until something fails again: it stands in the way of the rest too.
fn retry(client: &Arc<Client>, works: &mut Vec<Box<dyn Work>>) {
    let mut rest = std::mem::take(works).into_iter();
    for work in rest.by_ref() {
        if let Ran::Again(again) | Ran::Waits(again) = work.run(client, Instant::now() + STRETCH) {
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

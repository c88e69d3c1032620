//! Processes that are killed and stopped or looked at from outside: this program once more, as somebody
//! who holds locks or waits for them, and says so.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{self, Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use leasehold::{Lease, NamedMutex};
use rustix::process::{Pid, Signal, kill_process};
use test_servers::wait_until;

use crate::{connect, crowds, patience};

/// Says to this program that it is one.
const VARIABLE: &str = "LEASEHOLD_FAULTS_ACTOR";
/// The TTL of the leases of actors, which renew them.
pub(crate) const TTL: Duration = Duration::from_millis(1_500);

/// A process that wants the lock `orders`, or many others. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Actor {
    process: Child,
    said: Receiver<String>,
}

impl Actor {
    /// Starts one that asks for the lock so many times at once.
    pub(crate) fn start(url: &str, times: usize) -> Self {
        Self::start_with(url, times, TTL)
    }

    /// The same with leases that live this long.
    pub(crate) fn start_with(url: &str, times: usize, ttl: Duration) -> Self {
        Self::start_part(&format!("waits {times} {} {url}", ttl.as_millis()))
    }

    /// Starts one that uses so many names, each once.
    pub(crate) fn start_names(url: &str, names: usize) -> Self {
        Self::start_part(&format!("names {names} {url}"))
    }

    fn start_part(part: &str) -> Self {
        let mut process = Command::new(env::current_exe().expect("this program has a path"))
            .env(VARIABLE, part)
            // Its end tells the actor that nobody is left to kill it.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (tell, said) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, said }
    }

    /// Waits until it says this next.
    #[track_caller]
    pub(crate) fn expect(&self, what: &str) {
        assert_eq!(self.says(), what, "of an actor");
    }

    /// Waits for what it says next.
    #[track_caller]
    pub(crate) fn says(&self) -> String {
        self.said.recv_timeout(patience() / 2).expect("an actor says something")
    }

    /// Whether it has said nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.said.try_recv().is_err()
    }

    pub(crate) fn kill9(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it can be waited for");
    }

    /// Returns once it stands still.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let status = format!("/proc/{}/stat", self.process.id());
        wait_until("the actor stands still", || {
            let line = fs::read_to_string(&status).unwrap_or_default();
            line.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        });
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it takes a signal");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have been killed by the test already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Acts, and ends the process, when it was started for that; else does nothing.
pub(crate) fn take_part() {
    let Ok(part) = env::var(VARIABLE) else { return };
    thread::spawn(|| {
        for _ in std::io::stdin().lines() {}
        process::exit(0);
    });
    let mut words = part.split(' ');
    let mut word = || words.next().expect("what it is to do");
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        if word() == "names" {
            let names = number(word());
            crowds::use_names(word(), names).await;
            return;
        }
        let (times, ttl) = (number(word()), Duration::from_millis(number(word()) as u64));
        let mutex = connect(word()).await.mutex("orders").expect("a name");
        let tasks: Vec<_> = (0..times).map(|_| tokio::spawn(act(mutex.clone(), ttl))).collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    process::exit(0);
}

async fn act(mutex: NamedMutex, ttl: Duration) {
    let queued = |_: &leasehold::Obstacle| say("queued");
    let acquire = mutex.lock().ttl(ttl).renew().on_queued(queued);
    let lease: Lease = acquire.await.expect("granted in the end");
    say("held");
    lease.lost().await;
    say("lost");
    let was_held = lease.release().await.expect("answers");
    say(if was_held { "released" } else { "nothing to release" });
}

pub(crate) fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody listens once the test is over.
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}

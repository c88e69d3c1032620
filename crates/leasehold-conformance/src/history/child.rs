//! A process of a history as its driver has it.

use std::{
    collections::VecDeque,
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::Sender,
    thread,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};

use super::plan::{Assignment, Fate, Order, Tells};

/// Says to a program that it is a process of a history, and what it is to do.
pub(super) const ASSIGNMENT_VARIABLE: &str = "LEASEHOLD_HISTORY_ASSIGNMENT";

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Child {
    process: Process,
    orders: ChildStdin,
    /// What is still to happen to it.
    pub(super) fates: VecDeque<Fate>,
    /// Whether it has its client.
    pub(super) is_ready: bool,
    /// When it is killed, whatever it does.
    pub(super) kill_at: Option<Instant>,
    /// When it is continued after a stop.
    pub(super) continue_at: Option<Instant>,
}

impl Child {
    /// The running program once more, with this assignment. What it tells goes to `told`, and
    /// `None` when it has ended.
    pub(super) fn start(
        assignment: &Assignment,
        fates: VecDeque<Fate>,
        told: Sender<(u32, Option<Tells>)>,
    ) -> Self {
        let text = serde_json::to_string(assignment).expect("it is data");
        let mut process = Command::new(this_program())
            .env(ASSIGNMENT_VARIABLE, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let orders = process.stdin.take().expect("standard input is a pipe");
        let lines = BufReader::new(process.stdout.take().expect("standard output is a pipe"));
        let number = assignment.process;
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                // A process that is killed while it tells tells half of it.
                let Ok(tells) = serde_json::from_str(&line) else { break };
                if told.send((number, Some(tells))).is_err() {
                    return;
                }
            }
            // Nobody listens any more when the history is over.
            let _ = told.send((number, None));
        });
        Self { process, orders, fates, is_ready: false, kill_at: None, continue_at: None }
    }

    pub(super) fn kill9(&mut self) {
        self.process.kill().expect("a process that was not waited for can be killed");
        self.wait();
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("it can be waited for")
    }

    pub(super) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it and lets it go on.
    pub(super) fn go_on(&mut self) {
        self.signal(Signal::CONT);
        self.order(Order::Go);
    }

    pub(super) fn finish(&mut self) {
        self.order(Order::Finish);
    }

    fn order(&mut self, order: Order) {
        let mut line = serde_json::to_string(&order).expect("it is data");
        line.push('\n');
        // A process that has ended hears nothing; that is found out when its output ends.
        let _ = self.orders.write_all(line.as_bytes());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it was not waited for yet");
    }
}

/// What the running program is started by, also when its file is replaced meanwhile: a soak takes
/// longer than a build.
fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        env::current_exe().expect("the running program has a path")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! A store for one test and the program on it, as a user has them.
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process},
};
use serde_json::Value;

/// How long something may take that takes milliseconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

/// A command that says when it is in and which group it leads, and ends when its stdin does.
pub(crate) const SECTION: &str = "echo in $$; read line; echo out";

/// How many trials run at a time: they wait most of their time, so more than there are processors.
const AT_A_TIME: usize = 6;

pub(crate) fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Runs trials as the arguments say, and more at a time than there are processors.
pub(crate) fn run(trials: Vec<Trial>) -> ExitCode {
    run_with(Arguments::from_args(), trials)
}

pub(crate) fn run_with(mut arguments: Arguments, trials: Vec<Trial>) -> ExitCode {
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A store in a private directory that vanishes with the test.
pub(crate) struct Store {
    dir: tempfile::TempDir,
    /// Where it is instead.
    server: Option<String>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a private directory"), server: None }
    }

    /// A store on a server, under a prefix of its own.
    pub(crate) fn on_server(url: &str, prefix: &str) -> Self {
        Self { server: Some(format!("{url}?prefix={prefix}")), ..Self::new() }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir().join("locks.db")
    }

    pub(crate) fn url(&self) -> String {
        if let Some(server) = &self.server {
            return server.clone();
        }
        format!("sqlite:{}", self.database().display())
    }

    /// `leasehold ARGS…` on this store, away from the surroundings of the test.
    pub(crate) fn leasehold(&self, args: &[&str]) -> Command {
        // Signals that whoever started the tests ignores (`nohup`, `&` in a script) are ignored by
        // what the tests start, too, and a test that sends one would wait in vain.
        let mut command = Command::new("env");
        self.surround(&mut command).args(["--default-signal", PROGRAM]).args(args);
        command
    }

    /// Gives a command that starts the program itself what `leasehold` gives.
    pub(crate) fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("LEASEHOLD_STORE", self.url())
            .env_remove("LEASEHOLD_NAME")
            .env_remove("LEASEHOLD_FENCING_TOKEN")
            .env_remove("LEASEHOLD_TICKET")
            .stdin(Stdio::null())
    }

    /// Runs the program to its end.
    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.leasehold(args).output().expect("the program starts")
    }

    /// Starts `run ARGS… -- sh -c SECTION`.
    pub(crate) fn section(&self, args: &[&str]) -> Section {
        self.script(args, SECTION)
    }

    /// Starts `run ARGS… -- sh -c SCRIPT`.
    pub(crate) fn script(&self, args: &[&str], script: &str) -> Section {
        self.start("run", args, script)
    }

    /// Starts `COMMAND ARGS… -- sh -c SCRIPT`.
    pub(crate) fn start(&self, command: &str, args: &[&str], script: &str) -> Section {
        let mut command = self.leasehold(&[command]);
        command.args(args).args(["--", "sh", "-c", script]);
        Section::start(command)
    }

    /// Runs the program to its end with this on its stdin.
    pub(crate) fn output_of(&self, args: &[&str], stdin: &str) -> Output {
        let mut command = self.leasehold(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        // A program that does not read it has ended by then, which is for the test to judge.
        let _ = process.stdin.take().expect("stdin is a pipe").write_all(stdin.as_bytes());
        process.wait_with_output().expect("it can be waited for")
    }

    /// The ticket that `acquire ARGS…` prints.
    pub(crate) fn ticket(&self, args: &[&str]) -> String {
        let output = self.output(&[&["acquire"], args].concat());
        assert!(output.status.success(), "{output:?}");
        let text = stdout(&output);
        let ticket = text.strip_suffix('\n').expect("one line");
        assert!(ticket.starts_with("lh1/") && !ticket.contains('\n'), "one ticket");
        ticket.to_owned()
    }

    /// The only holder of the only lock in use, as `list --json` shows it.
    pub(crate) fn holder(&self) -> Value {
        let locks = self.list();
        let [lock] = &locks[..] else { panic!("one lock, not {locks:?}") };
        let holders = lock["holders"].as_array().expect("an array");
        let [holder] = &holders[..] else { panic!("one holder, not {holders:?}") };
        holder.clone()
    }

    /// The locks that `list --json` shows.
    pub(crate) fn list(&self) -> Vec<Value> {
        let output = self.output(&["list", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        document["locks"].as_array().expect("an array of locks").clone()
    }

    /// Keeps the store's guard, as a process does that is stopped in the middle of a transaction.
    pub(crate) fn stop_inside_the_guard(&self) -> File {
        let guard = File::options().write(true).open(self.dir().join("locks.db.d/guard"));
        let guard = guard.expect("the store is there");
        flock(&guard, FlockOperation::LockExclusive).expect("it can be locked");
        guard
    }

    /// How many hold and how many wait, over all locks.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = |role: &str| {
            let of = |lock: &Value| lock[role].as_array().expect("an array").len();
            self.list().iter().map(of).sum()
        };
        (count("holders"), count("waiters"))
    }

    pub(crate) fn wait_for_counts(&self, holders: usize, waiters: usize) {
        let mut last = (usize::MAX, usize::MAX);
        eventually(&format!("{holders} holders, {waiters} waiters"), || {
            last = self.counts();
            last == (holders, waiters)
        });
    }
}

/// A `leasehold run` whose command the test talks to.
pub(crate) struct Section {
    pub(crate) process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Section {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, stdin, lines }
    }

    /// The next line of the command, or `None` at its end.
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {PATIENCE:?}"),
        }
    }

    /// Waits for the line `in PID` of [`SECTION`].
    pub(crate) fn is_in(&self) -> Pid {
        let line = self.line().unwrap_or_else(|| panic!("no section: {}", self.said()));
        let pid = line.strip_prefix("in ").unwrap_or_else(|| panic!("a section, not {line:?}"));
        Pid::from_raw(pid.parse().expect("a number")).expect("a process id")
    }

    /// What the program, which has ended, has said on stderr.
    fn said(&self) -> String {
        let stderr = self.process.stderr.as_ref().expect("stderr is a pipe");
        std::fs::read_to_string(format!("/proc/self/fd/{}", stderr.as_raw_fd())).expect("UTF-8")
    }

    /// Sends a signal until the command says the line: a shell may hear one that comes just before
    /// it waits only with the next.
    pub(crate) fn signal_until(&self, signal: Signal, line: &str) {
        eventually(line, || {
            self.signal(signal);
            match self.lines.recv_timeout(Duration::from_millis(200)) {
                Ok(said) if said == line => true,
                Err(RecvTimeoutError::Timeout) => false,
                other => panic!("{other:?} instead of {line:?}"),
            }
        });
    }

    /// Whether the command has said something.
    pub(crate) fn has_begun(&self) -> bool {
        self.lines.try_recv().is_ok()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the program lives");
    }

    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("the command reads");
    }

    /// Lets the command end.
    pub(crate) fn go_on(&mut self) {
        self.stdin = None;
    }

    /// Waits for the program's end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of the program", || {
            status = self.process.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("just seen")
    }

    /// Lets the command end and waits for the program's exit code.
    pub(crate) fn finish(&mut self) -> Option<i32> {
        self.go_on();
        self.end().code()
    }

    /// What the program said on stderr; after its end.
    pub(crate) fn errors(&mut self) -> String {
        let stderr = self.process.stderr.take().expect("stderr is a pipe");
        std::io::read_to_string(stderr).expect("UTF-8")
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // The command ends with its stdin.
        self.stdin = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        // sleep: reason: the pause between two looks; nothing is ordered by it.
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = |stat: &str| stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    stat.is_ok_and(|stat| !matches!(state(&stat), Some('Z' | 'X') | None))
}

/// Whether a process does something of its own about a signal.
pub(crate) fn catches(pid: Pid, signal: Signal) -> bool {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (signal.as_raw() - 1) != 0
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

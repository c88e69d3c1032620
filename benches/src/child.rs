//! The suite's own program again, as further processes that are told what to do line by line.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{self, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::time::{ClockId, clock_gettime};

/// What comes before the arguments of a child.
const MARK: &str = "--child";

/// The arguments of this process, if it is a child.
#[must_use]
pub fn child_arguments() -> Option<Vec<String>> {
    let mut arguments = env::args().skip(1);
    (arguments.next()? == MARK).then(|| arguments.collect())
}

/// Nanoseconds of the clock that all processes of the machine share.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Tells the parent a line.
pub fn say(line: impl std::fmt::Display) {
    let mut out = io::stdout().lock();
    // Without a parent nobody wants to know; the orders end as well.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// What the parent says to this child.
#[derive(Debug)]
pub struct Orders(Arc<AtomicBool>);

impl Orders {
    /// Waits for the next line. `None`: the parent is gone or wants the child to end.
    #[must_use]
    pub fn next() -> Option<String> {
        let mut line = String::new();
        let len = io::stdin().lock().read_line(&mut line).ok()?;
        (len > 0).then(|| line.trim_end().to_owned())
    }

    /// Watches for the next line from a thread of its own.
    #[must_use]
    pub fn watch() -> Self {
        let came = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&came);
        thread::spawn(move || {
            let _ = Self::next();
            flag.store(true, Ordering::Relaxed);
        });
        Self(came)
    }

    /// Whether a line came since.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A further process of this program, which ends with this handle.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    orders: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Child {
    /// Starts it with these arguments.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(arguments: &[&str]) -> io::Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg(MARK)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take();
        let lines = process.stdout.take().map(BufReader::new);
        let lines = lines.ok_or_else(|| io::Error::other("a child without output"))?;
        Ok(Self { process, orders, lines })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Tells it a line.
    ///
    /// # Errors
    /// It is gone.
    pub fn order(&mut self, line: &str) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or_else(|| io::Error::other("no more orders"))?;
        writeln!(orders, "{line}")
    }

    /// Its next line.
    ///
    /// # Errors
    /// It is gone.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Err(io::Error::other("a child ended too soon"));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    /// It is gone.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without further orders it ends by itself; whatever it still says is not read.
        self.orders.take();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

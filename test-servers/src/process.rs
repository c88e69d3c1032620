//! A server's process, which ends with its handle and with this process.

use std::{
    fs, io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long anything may take that a process must do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// Ends a process group and removes its directory once its input ends: its parent is gone then,
/// whatever it died of.
const GUARDIAN: &str = r#"read -r _; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2""#;

/// A process with a group of its own.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    guardian: Child,
}

impl Process {
    /// Starts it with its output appended to a file; `directory` is what it works in.
    pub(crate) fn start(mut command: Command, directory: &Path, log: &Path) -> io::Result<Self> {
        let output = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let child = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let guardian = Command::new("sh")
            .args(["-c", GUARDIAN, "guardian", &child.id().to_string()])
            .arg(directory)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        match guardian {
            Ok(guardian) => Ok(Self { child, guardian }),
            Err(error) => {
                let mut child = child;
                end(&mut child);
                Err(error)
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Stops it, and returns once it stands still.
    pub(crate) fn pause(&self) -> io::Result<()> {
        signal(&self.child, Signal::STOP)?;
        let status = PathBuf::from(format!("/proc/{}/stat", self.pid()));
        wait_until("the process stands still", || {
            let line = fs::read_to_string(&status).unwrap_or_default();
            // The name before it is in parentheses and may hold anything.
            line.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        });
        Ok(())
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        signal(&self.child, Signal::CONT)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guardian first: it knows the group by a number that is free once the group is gone.
        let _ = self.guardian.kill();
        let _ = self.guardian.wait();
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // Its children too, such as one that writes a snapshot. Stopped ones end by this signal as well.
    let _ = signal(child, Signal::KILL);
    let _ = child.wait();
}

fn signal(child: &Child, signal: Signal) -> io::Result<()> {
    Ok(kill_process_group(Pid::from_child(child), signal)?)
}

/// Looks again and again, every 2 ms, until it is so.
///
/// # Panics
/// It is not so within a minute.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "in vain: wait until {what}");
        sleep(POLL);
    }
}

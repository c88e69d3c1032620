//! The signals that `run` passes on to the command or, while it waits, obeys.

use std::{fs, future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What is forwarded: all that would end this program and leave the command, but for those that say
/// it is broken (`ABRT`, `SEGV`, …) and the real-time signals, which have no meaning of their own.
const FORWARDED: [Signal; 15] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::WINCH,
    Signal::CONT,
];

/// Receives the signals from when it is made.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Begins to receive.
    ///
    /// A signal that is ignored already stays so, for this program and for the command: `nohup`
    /// and `&` in a shell script mean it.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let mut streams = Vec::with_capacity(FORWARDED.len());
        for signal in FORWARDED {
            if ignored & mask(signal) == 0 {
                let kind = SignalKind::from_raw(signal.as_raw());
                streams.push((signal, unix::signal(kind)?));
            }
        }
        Ok(Self(streams))
    }

    /// The next signal. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(cx).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next signal that ends a process which does nothing about it.
    pub(crate) async fn next_ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if signal != Signal::WINCH && signal != Signal::CONT {
                return signal;
            }
        }
    }

    /// A signal that ends and has come already.
    pub(crate) async fn ending_already(&mut self) -> Option<Signal> {
        tokio::select! {
            biased;
            signal = self.next_ending() => Some(signal),
            () = std::future::ready(()) => None,
        }
    }
}

/// The signals this process ignores, one bit each; none where the system does not say.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).unwrap_or(0)
}

fn ignored_in(status: &str) -> Option<u64> {
    let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(field.trim(), 16).ok()
}

fn mask(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_ignored() {
        let status = "Name:\tcat\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        let ignored = ignored_in(status).unwrap();
        assert_ne!(ignored & mask(Signal::HUP), 0);
        assert_ne!(ignored & mask(Signal::PIPE), 0);
        assert_eq!(ignored & mask(Signal::TERM), 0);
        assert_eq!(ignored_in("Name:\tcat\n"), None);
    }
}

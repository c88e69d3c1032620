//! One EVALSHA and how to read its answer.

use std::fmt;

use leasehold_core::Fault;
use redis::{Arg, Cmd, Value};

use super::{keys::LockKeys, source::Source};

/// A request to the server, owned and independent of any connection. It can be sent as often as
/// needed: it is the same request each time.
pub struct Request<R> {
    source: &'static Source,
    command: Cmd,
    read: fn(Value) -> Result<R, Fault>,
}

impl<R> Request<R> {
    pub(super) fn new(
        source: &'static Source,
        keys: &LockKeys,
        read: fn(Value) -> Result<R, Fault>,
    ) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(source.digest()).arg(LockKeys::COUNT);
        for key in keys.all() {
            command.arg(key);
        }
        Self { source, command, read }
    }

    /// The same with one more argument.
    #[must_use]
    pub(super) fn arg(mut self, argument: impl redis::ToRedisArgs) -> Self {
        self.command.arg(argument);
        self
    }

    /// The same for a sender whom the answer does not concern, unless it is an error of the server.
    #[must_use]
    pub fn unread(self) -> Request<()> {
        Request { source: self.source, command: self.command, read: |_| Ok(()) }
    }

    /// Which script it calls.
    #[must_use]
    pub const fn source(&self) -> &'static Source {
        self.source
    }

    /// The request for a server that knows the script.
    #[must_use]
    pub const fn by_digest(&self) -> &Cmd {
        &self.command
    }

    /// The request for a server that answered NOSCRIPT: with the whole text, after which the
    /// server knows it.
    #[must_use]
    pub fn by_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.source.text());
        for argument in self.command.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }

    /// Reads the answer, an error that the server sent included.
    ///
    /// # Errors
    /// The server refused, the lock has another layout (`Layout`), or what lies under its keys is
    /// not a lock (`Corrupt`).
    pub fn read(&self, answer: Value) -> Result<R, Fault> {
        (self.read)(answer)
    }
}

impl<R> fmt::Debug for Request<R> {
    /// Without its arguments: tokens are among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("script", &self.source.name()).finish_non_exhaustive()
    }
}

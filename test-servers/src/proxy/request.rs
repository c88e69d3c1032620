//! What a client asked, and what becomes of it on the way.

use std::{fmt, time::Duration};

use crate::resp;

/// One request of a client, as the proxy saw it.
#[derive(Clone)]
pub struct Request {
    arguments: Vec<Vec<u8>>,
    connection: u64,
}

/// What becomes of a request and of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Both arrive.
    Pass,
    /// The request arrives this much later, and so does what follows it on the connection.
    Delay(Duration),
    /// The request never arrives, nor does anything that follows it on the connection.
    Lose,
    /// The server acts; when its reply comes, the connection is closed instead.
    CutAfter,
    /// The server acts; its reply is lost, and so is all that follows it on the connection.
    LoseReply,
    /// The server acts; its reply arrives this much later, and so does what follows it.
    DelayReply(Duration),
    /// Both arrive, and this much later a copy of the request, over a connection of its own: as from
    /// a connection that was given up. Nobody hears the reply to it.
    AgainAfter(Duration),
}

impl Request {
    pub(crate) fn of(frame: &[u8], connection: u64) -> Self {
        Self { arguments: resp::arguments(frame), connection }
    }

    /// The command, in capitals.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.arg(0)).to_ascii_uppercase()
    }

    /// An argument; the command is the first, with 0. Empty where there is none.
    #[must_use]
    pub fn arg(&self, index: usize) -> &[u8] {
        self.arguments.get(index).map_or(&[], Vec::as_slice)
    }

    /// Whether any argument contains this text.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let holds =
            |argument: &Vec<u8>| argument.windows(text.len().max(1)).any(|part| part == text);
        self.arguments.iter().any(holds)
    }

    /// The number of its connection, in the order in which the proxy accepted them.
    #[must_use]
    pub const fn connection(&self) -> u64 {
        self.connection
    }

    /// Whether it sets up the connection for what follows.
    pub(super) fn sets_up(&self) -> bool {
        matches!(self.name().as_str(), "AUTH" | "HELLO" | "SELECT")
    }

    pub(super) fn subscribes(&self) -> bool {
        self.name().ends_with("SUBSCRIBE")
    }

    /// Whether a replica asks for all that its master will ever write.
    pub(super) fn follows(&self) -> bool {
        matches!(self.name().as_str(), "SYNC" | "PSYNC")
    }

    pub(super) fn switches_to_pushes(&self) -> bool {
        self.name() == "HELLO" && self.arg(1) == b"3"
    }
}

impl fmt::Debug for Request {
    /// Without the arguments: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} arguments on {}", self.name(), self.arguments.len(), self.connection)
    }
}

//! What the program says on stderr: for people, or as JSON lines; in colour only on terminals.

use std::{
    cell::Cell,
    fmt::Display,
    io::{self, IsTerminal, Write as _},
    sync::OnceLock,
    time::SystemTime,
};

use serde::Serialize;

use crate::args::{Everywhere, LogFormat};

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Said with `-v` only.
    Detail,
    /// Said unless `-q`.
    Note,
    /// The same, for what is likely a mistake.
    Warning,
    /// Said always: why the program failed.
    Failure,
}

/// The chosen way to speak, set once, before anything is said.
static MANNER: OnceLock<Manner> = OnceLock::new();

#[derive(Clone, Copy, Debug)]
struct Manner {
    least: Level,
    format: LogFormat,
}

/// A message as a document.
#[derive(Serialize)]
struct Document<'a> {
    time: String,
    level: &'static str,
    message: &'a str,
}

/// Chooses how to speak.
pub(crate) fn set(everywhere: &Everywhere) {
    let least = match (everywhere.quiet, everywhere.verbose) {
        (true, _) => Level::Failure,
        (false, true) => Level::Detail,
        (false, false) => Level::Note,
    };
    // Set once per process; a second time would change nothing.
    let _ = MANNER.set(Manner { least, format: everywhere.log_format });
}

/// For another process of this program, so that it speaks in the same format.
pub(crate) fn as_argument() -> Option<&'static str> {
    (manner().format == LogFormat::Json).then_some("--log-format=json")
}

/// Whether lines that change may be shown: on a terminal, for people, and not with `-q`.
pub(crate) fn may_draw() -> bool {
    let manner = manner();
    manner.least < Level::Failure && manner.format == LogFormat::Text && io::stderr().is_terminal()
}

/// A line on the terminal that changes, for what takes long; it is gone when this is dropped. Only
/// where [`may_draw`] says so.
#[derive(Debug, Default)]
pub(crate) struct Changing(Cell<bool>);

impl Changing {
    /// Shows this in the place of what was there.
    pub(crate) fn show(&self, text: impl Display) {
        self.0.set(true);
        let _ = write!(io::stderr().lock(), "\r\x1b[Kleasehold: {text}");
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if self.0.get() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Says with `-v` what happens.
pub(crate) fn detail(text: impl Display) {
    say(Level::Detail, text);
}

/// Says what is good to know.
pub(crate) fn note(text: impl Display) {
    say(Level::Note, text);
}

/// Says what is likely a mistake.
pub(crate) fn warning(text: impl Display) {
    say(Level::Warning, text);
}

/// Says why the program failed.
pub(crate) fn failure(text: impl Display) {
    say(Level::Failure, text);
}

/// Where nobody listens any more, nothing is lost by going on.
fn say(level: Level, text: impl Display) {
    let manner = manner();
    if level < manner.least {
        return;
    }
    let text = text.to_string();
    let line = match manner.format {
        LogFormat::Json => {
            let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
            let document = Document { time, level: level.as_str(), message: &text };
            serde_json::to_string(&document).unwrap_or(text)
        }
        LogFormat::Text => format!("{}{text}", level.prefix(has_colour(&io::stderr()))),
    };
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether to colour what is written there: a terminal, and nobody has asked for none
/// (no-color.org).
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !refused && !dumb
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Detail => "debug",
            Self::Note => "info",
            Self::Warning => "warning",
            Self::Failure => "error",
        }
    }

    fn prefix(self, colour: bool) -> &'static str {
        match (self, colour) {
            (Self::Failure, true) => "\x1b[1;31mleasehold:\x1b[0m ",
            (Self::Warning, true) => "\x1b[1;33mleasehold: warning:\x1b[0m ",
            (Self::Warning, false) => "leasehold: warning: ",
            (_, true) => "\x1b[2mleasehold:\x1b[0m ",
            (_, false) => "leasehold: ",
        }
    }
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or(Manner { least: Level::Note, format: LogFormat::Text })
}

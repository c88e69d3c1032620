//! Tickets on their way in: they are secrets, so they are read with care and never repeated.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    os::unix::ffi::OsStrExt,
};

use leasehold::Ticket;

use crate::{
    exit::{Exit, Failure},
    settings,
};

/// The most bytes of a line that are read for a ticket: far more than a ticket can have.
const LINE_MAX: usize = 16 * 1024;

/// How every ticket begins.
const BEGINNING: &str = "lh1/";

/// What was given as a ticket on the command line. `Debug` does not show it.
#[derive(Clone)]
pub(crate) struct TicketText(pub(crate) OsString);

impl fmt::Debug for TicketText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketText")
    }
}

/// The ticket of an argument, of stdin where that is `-`, or of the environment where there is none.
pub(crate) fn read(argument: Option<TicketText>) -> Result<Ticket, Failure> {
    match argument {
        Some(TicketText(dash)) if dash == "-" => parse(OsStr::from_bytes(&line_of_stdin()?)),
        // Also an empty one: `"$t"` of a script whose `acquire` has failed means no other ticket.
        Some(TicketText(text)) => parse(&text),
        None => match env::var_os(settings::TICKET).filter(|text| !text.is_empty()) {
            Some(text) => parse(&text),
            None => {
                let variable = settings::TICKET;
                Err(Failure::new(Exit::Usage, format!("there is no ticket; {variable} is not set")))
            }
        },
    }
}

/// The text without what looks like a ticket, or like a user and a password in a URL.
pub(crate) fn redacted(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(without_user);
    without_tickets(&lines.collect::<String>())
}

/// A line without what stands between `://` and the last `@`: a password may hold anything.
fn without_user(line: &str) -> String {
    match (line.find("://"), line.rfind('@')) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}***{}", &line[..begin + 3], &line[end..])
        }
        _ => line.to_owned(),
    }
}

fn without_tickets(text: &str) -> String {
    let of_ticket = |c: char| c.is_ascii_alphanumeric() || "-_.%/".contains(c);
    let mut harmless = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGINNING) {
        harmless.push_str(&rest[..at]);
        harmless.push_str("(a ticket)");
        rest = rest[at..].trim_start_matches(of_ticket);
    }
    harmless.push_str(rest);
    harmless
}

fn parse(text: &OsStr) -> Result<Ticket, Failure> {
    let invalid = |why: &dyn fmt::Display| Failure::new(Exit::Usage, why.to_string());
    let text = text.to_str().ok_or_else(|| invalid(&"this is no ticket of a lease"))?;
    text.parse().map_err(|error| invalid(&error))
}

/// One line and not a byte more: what follows is for the command.
fn line_of_stdin() -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Usage, format!("the ticket cannot be read from stdin: {error}"))
    };
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_MAX {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use leasehold::{LockId, LockKind, LockName, Namespace, Token};

    use super::*;

    #[test]
    fn no_ticket_is_left_in_a_text() {
        let name = LockName::new("a/b c%{}🔒").unwrap();
        let lock = LockId::new(Namespace::default(), LockKind::RwLock, name);
        let token = Token::new("s3cret!'/=~\"").unwrap();
        let ticket = Ticket::new(lock, token).to_string();
        let text = format!("unexpected argument '{ticket}' found\n  --x={ticket}, {ticket}");
        assert_eq!(
            redacted(&text),
            "unexpected argument '(a ticket)' found\n  --x=(a ticket), (a ticket)"
        );
        assert_eq!(redacted("nothing secret"), "nothing secret");
    }

    #[test]
    fn wrong_text_is_not_repeated() {
        for text in ["", "hunter2", "lh1/default/mutex/hunter2", "lh9/hunter2/mutex/n/t"] {
            let failure = read(Some(TicketText(text.into()))).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(!failure.to_string().contains("hunter2"), "{failure}");
        }
        assert!(!format!("{:?}", TicketText("hunter2".into())).contains("hunter2"));
    }
}

//! The command line, checked while it is read.

use std::{ffi::OsString, time::Duration};

use clap::{
    ArgGroup, Args, Parser, Subcommand,
    builder::{OsStringValueParser, TypedValueParser as _},
};
use leasehold::{Capacity, LockKind, LockName, Namespace, Ttl, Weight};

use crate::{duration, exit, ticket::TicketText};

/// Run a command under a lock: one at a time, N at a time, or readers and writers.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_long_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Acquire(AcquireArgs),
    Renew(RenewArgs),
    Release(ReleaseArgs),
    Adopt(AdoptArgs),
    List(ListArgs),
    Show(ShowArgs),
    #[command(name = "__exec", hide = true)]
    Exec(ExecArgs),
}

/// Wait for the lock NAME, then run a command while it is held.
///
/// The command is in a process group of its own, gets the signals that `leasehold` gets, and finds
/// the lock in its environment: LEASEHOLD_NAME, LEASEHOLD_FENCING_TOKEN and LEASEHOLD_TICKET, with
/// which it can renew the grant. Its exit code is passed on. On the default store the lock stays
/// held until the command has ended, even if `leasehold` itself is killed.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Let the lock go on to others after this time unless it is renewed, which `run` does while it
    /// lives. If the lease is lost nevertheless, the command is ended before it passes on.
    #[arg(long, value_name = "DURATION", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Wait for the lock NAME and print a ticket of the grant, which outlives this program.
///
/// The grant is bound to the ticket: it ends when it is released with it, or after its TTL.
/// `renew`, `release` and `adopt` take the ticket, in any process that reaches the store. Who has
/// the ticket can end the grant: keep it a secret.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// How long the lock is held unless the ticket is used to renew, release or adopt it.
    #[arg(long, value_name = "DURATION", value_parser = ttl, required = true)]
    pub(crate) ttl: Ttl,

    /// Print one JSON document: the ticket, the fencing token and the lock.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prolong the grant of a ticket, by its own TTL from now or as --ttl says.
///
/// If the grant is gone, nothing is prolonged and the exit code is 79.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,

    /// Let the grant end this long from now, sooner or later than before, and let later renewals
    /// use this TTL.
    #[arg(long, value_name = "DURATION", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,
}

/// Give the grant of a ticket back.
///
/// If the grant is gone already, released or run out, nothing happens and the exit code is 79: it
/// may have been somebody else's since.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,
}

/// Take the grant of a ticket over and run a command while it is held, as `run` does.
///
/// The grant is renewed, bound to this program and given back when the command has ended. If it is
/// gone, the command is not started and the exit code is 79. If `adopt` is killed, the lock stays
/// held while the command goes on, but not for longer than the TTL, as with `run --ttl`. A `run`
/// that still lives gives its grant back at its end, whoever has adopted it.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// The lock that is asked for, how long to wait for it, and what is said about it.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// The lock's name: 1 to 512 bytes. One that begins with `-` would be taken for an option.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,

    #[command(flatten)]
    pub(crate) share: ShareArgs,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    /// Say in lists and messages what the work is.
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// The command that runs while a lock is held.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// How long the command has between TERM and KILL when the lease is lost.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "5s")]
    pub(crate) grace: Duration,

    /// Do not let the command inherit the lock: it ends with `leasehold`, even if the command goes
    /// on.
    #[arg(long)]
    pub(crate) close: bool,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A grant, by its ticket.
#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// What `acquire` printed; `-`: one line of stdin, left out: LEASEHOLD_TICKET. Command lines can
    /// be read by every user of the machine, stdin and the environment cannot. It names the lock
    /// and the namespace, but not the store.
    #[arg(value_name = "TICKET", value_parser = OsStringValueParser::new().map(TicketText))]
    pub(crate) ticket: Option<TicketText>,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// What is asked for; without any of these a mutex.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("read-write").args(["shared", "exclusive"]).conflicts_with("permits"))]
pub(crate) struct ShareArgs {
    /// A semaphore: up to N at a time.
    #[arg(long, value_name = "N", value_parser = capacity)]
    pub(crate) permits: Option<Capacity>,

    /// Take W of the semaphore's permits.
    #[arg(long, value_name = "W", value_parser = weight, requires = "permits")]
    pub(crate) weight: Option<Weight>,

    /// A read-write lock, shared with other readers.
    #[arg(long)]
    pub(crate) shared: bool,

    /// A read-write lock, alone.
    #[arg(long)]
    pub(crate) exclusive: bool,
}

/// How long to wait; without any of these for ever.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Give up after this time (10m, 1h30m, 500ms, or seconds).
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,

    /// Give up at once when the lock is not free.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// The exit code when the lock was not acquired, instead of 75.
    #[arg(short = 'E', long, value_name = "N")]
    pub(crate) conflict_exit_code: Option<u8>,
}

/// List the locks in use, with holders and waiters.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct ListArgs {
    /// Of all namespaces.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all: bool,

    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Show one lock: who holds it and who waits, in order.
#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct ShowArgs {
    /// The lock's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,

    /// Which, where several kinds of this name are in use: mutex, semaphore or rw-lock.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<LockKind>,

    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Where the locks live.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// Keeps the locks of one application apart from those of others.
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: Namespace,
}

/// Where the store is.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The store, as `sqlite:PATH`; else LEASEHOLD_STORE, else this user's store on this machine.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Say on stderr where the store is and what happens.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Not for people: what `run` starts to become the command, from inside its process group.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Make the process group the terminal's foreground group first.
    #[arg(long)]
    pub(crate) foreground: bool,

    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

fn capacity(text: &str) -> Result<Capacity, String> {
    Capacity::new(number(text)?).map_err(|error| error.to_string())
}

fn weight(text: &str) -> Result<Weight, String> {
    Weight::new(number(text)?).map_err(|error| error.to_string())
}

fn ttl(text: &str) -> Result<Ttl, String> {
    Ttl::new(duration::parse(text)?).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of permits"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_excludes_what() {
        let parses = |line: &str| Cli::try_parse_from(line.split(' ')).is_ok();
        assert!(parses("leasehold run n -- true"));
        assert!(parses("leasehold run n --permits 3 --weight 2 --wait 1h30m -- a b --c"));
        assert!(parses("leasehold run --shared n --ttl 10s -E 9 -- true"));
        assert!(parses("leasehold acquire n --permits 3 --ttl 10m --no-wait --json"));
        assert!(parses("leasehold renew"));
        assert!(parses("leasehold renew - --ttl 10m"));
        assert!(parses("leasehold release lh1/a/mutex/b/c --store sqlite:x"));
        assert!(parses("leasehold adopt -- true"));
        assert!(parses("leasehold adopt - --grace 1s --close -- true"));
        for wrong in [
            "leasehold run n",
            "leasehold run n true",
            "leasehold run n --weight 2 -- true",
            "leasehold run n --permits 3 --shared -- true",
            "leasehold run n --shared --exclusive -- true",
            "leasehold run n --permits 0 -- true",
            "leasehold run n --wait 1s --no-wait -- true",
            "leasehold run n --wait 10x -- true",
            "leasehold run n --ttl 0 -- true",
            "leasehold run n -E 256 -- true",
            "leasehold acquire n",
            "leasehold acquire n --ttl 10s -- true",
            "leasehold acquire n --ttl 10s --permits 3 --exclusive",
            "leasehold release a b",
            "leasehold adopt a",
            "leasehold adopt a --namespace x -- true",
            "leasehold list --all --namespace x",
            "leasehold show n --kind rwlock",
            "leasehold",
        ] {
            assert!(!parses(wrong), "{wrong}");
        }
        assert!(Cli::try_parse_from(["leasehold", "run", "", "--", "true"]).is_err());
    }
}

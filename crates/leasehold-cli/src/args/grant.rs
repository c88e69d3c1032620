//! Commands on grants that outlive this program.

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser as _},
};
use leasehold::Ttl;

use super::{NameArgs, RequestArgs, examples, value};
use crate::ticket::TicketText;

/// Wait for the lock NAME and print a ticket of the grant, which outlives this program.
///
/// The grant is bound to the ticket: it ends when it is released with it, or after its TTL.
/// `renew`, `release` and `adopt` take the ticket, in any process that reaches the store. Who has
/// the ticket can end the grant: keep it a secret. Who closes the output or throws it away has none,
/// and the lock is held until the TTL; one that cannot be written is given back.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    ticket=$(leasehold acquire job --ttl 10m)
    leasehold acquire exports --permits 3 --ttl 1h --no-wait --json"))]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) name: NameArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    /// How long the lock is held unless the ticket is used to renew, release or adopt it.
    #[arg(long, value_name = "DURATION", value_parser = value::ttl, allow_negative_numbers = true, required = true)]
    pub(crate) ttl: Ttl,

    /// Print one JSON document: the ticket, the fencing token and the lock.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prolong the grant of a ticket, by its own TTL from now or as --ttl says.
///
/// If the grant is gone, nothing is prolonged and the exit code is 79.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold renew \"$ticket\" --ttl 10m
    leasehold renew                          in a command that `run` has started"))]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,

    /// Let the grant end this long from now, sooner or later than before, and let later renewals
    /// use this TTL.
    #[arg(long, value_name = "DURATION", value_parser = value::ttl, allow_negative_numbers = true)]
    pub(crate) ttl: Option<Ttl>,
}

/// Give the grant of a ticket back.
///
/// If the grant is gone already, released or run out, nothing happens and the exit code is 79: it
/// may have been somebody else's since.
#[derive(Debug, Args)]
#[command(after_long_help = examples("    leasehold release \"$ticket\""))]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,
}

/// A grant, by its ticket.
#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// What `acquire` printed; `-`: one line of stdin, left out: LEASEHOLD_TICKET. Command lines can
    /// be read by every user of the machine, stdin and the environment cannot. It names the lock
    /// and the namespace, but not the store.
    #[arg(value_name = "TICKET", value_parser = OsStringValueParser::new().map(TicketText))]
    pub(crate) ticket: Option<TicketText>,
}

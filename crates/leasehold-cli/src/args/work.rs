//! Commands that run another command while a lock is held.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use leasehold::Ttl;

use super::{GrantArgs, NamesArgs, RequestArgs, examples, value};
use crate::duration;

/// Wait for the lock NAME, then run a command while it is held.
///
/// The command is in a process group of its own, gets the signals that `leasehold` gets, and finds
/// the lock in its environment: LEASEHOLD_NAME, LEASEHOLD_FENCING_TOKEN and LEASEHOLD_TICKET, with
/// which it can renew the grant. Its exit code is passed on.
///
/// On a store that proves the death of a process (SQLite) the lock stays held until the command has
/// ended, even if `leasehold` itself is killed. With --ttl, and always on other stores, the lock
/// would pass on then: so a small guardian process ends the command's whole process group at once.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold run nightly-report -- ./report.sh
    leasehold run exports --permits 3 --weight 2 -- ./export.sh
    leasehold run catalog --shared -- ./read.sh
    leasehold run sync --wait 10m --ttl 30s -- ./sync.sh
    leasehold run account-3 account-7 -- ./transfer.sh
    leasehold run backup --skip --at-most-once-per 20h -- ./backup.sh
    leasehold run deploy -- sh -c 'one && another'"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) names: NamesArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    /// When the lock is busy, do nothing and end with 0. With --wait it waits that long first.
    #[arg(long, conflicts_with = "conflict_exit_code")]
    pub(crate) skip: bool,

    /// Do nothing and end with 0 when the command has succeeded within this time, wherever it ran.
    ///
    /// A success is an exit code of 0. The store records it, by its own clock, before the lock is
    /// given back, as a grant of the lock of the same name in the namespace NAMESPACE!last-success;
    /// `leasehold break NAME --namespace default!last-success --yes` forgets it. It is kept for the
    /// DURATION of the run that recorded it. At most 24 days.
    #[arg(long, value_name = "DURATION", value_parser = value::ttl, allow_negative_numbers = true)]
    pub(crate) at_most_once_per: Option<Ttl>,

    /// Let the lock go on to others after this time unless it is renewed, which `run` does while it
    /// lives. If the lease is lost nevertheless, the command is ended before it passes on.
    #[arg(long, value_name = "DURATION", value_parser = value::ttl, allow_negative_numbers = true)]
    pub(crate) ttl: Option<Ttl>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Take the grant of a ticket over and run a command while it is held, as `run` does.
///
/// The grant is renewed, bound to this program and given back when the command has ended. If it is
/// gone, the command is not started and the exit code is 79. If `adopt` is killed, its command is
/// ended at once, as with `run --ttl`. A `run` that still lives gives its grant back at its end,
/// whoever has adopted it.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold adopt \"$ticket\" -- ./job.sh
    echo \"$ticket\" | leasehold adopt - -- ./job.sh"))]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    pub(crate) grant: GrantArgs,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// The command that runs while a lock is held.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// How long the command has between TERM and KILL when it is to be ended.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_negative_numbers = true, default_value = "5s")]
    pub(crate) grace: Duration,

    /// End the command (TERM, then KILL after the grace) when it has run this long; the exit code is
    /// 79.
    #[arg(long, value_name = "DURATION", value_parser = value::interval, allow_negative_numbers = true)]
    pub(crate) max_hold: Option<Duration>,

    /// Let the command go on when the lease is lost or `leasehold` is killed: it may then run
    /// beside the next holder.
    #[arg(long, conflicts_with = "max_hold")]
    pub(crate) keep_going: bool,

    /// Do not let the command inherit the lock: it ends with `leasehold`, even if the command goes
    /// on.
    #[arg(long)]
    pub(crate) close: bool,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

//! Commands that look at locks, or end what others do with them.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, ValueEnum};
use leasehold::{LockName, Namespace};

use super::{KindArgs, LockArgs, NamespaceArgs, WaitArgs, examples, value};

/// List the locks in use, with holders and waiters.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold list
    leasehold list --all --json"))]
pub(crate) struct ListArgs {
    /// Of all namespaces.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all: bool,

    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
}

/// Show one lock: who holds it and who waits, in order.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold show nightly-report
    leasehold show catalog --kind rw-lock --json"))]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Wait until the lock NAME is free, without acquiring it.
///
/// Free means that nobody holds it at one moment; a hand-off from a holder to the next in line is
/// none. By the time this ends, somebody else may hold it. A lock that is not in use is free.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold wait nightly-report && ./look-at-the-report.sh
    leasehold wait exports --any --wait 10m"))]
pub(crate) struct WaitForArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    /// Until something is free: one permit of a semaphore, a read of a read-write lock.
    #[arg(long)]
    pub(crate) any: bool,
}

/// Print a line for each change of the lock NAME, or of all locks, until it is interrupted.
///
/// The store is looked at every --every; of what happens in between only the outcome is seen.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").args(["name", "all"]).required(true),
    after_long_help = examples("\
    leasehold watch nightly-report
    leasehold watch --all --json --every 1s")
)]
pub(crate) struct WatchArgs {
    /// The lock's name.
    #[arg(value_name = "NAME", value_parser = value::name)]
    pub(crate) name: Option<LockName>,

    /// All locks of all namespaces.
    #[arg(long, conflicts_with_all = ["namespace", "kind"])]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) kind: KindArgs,

    /// Print one JSON document a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// How often to look.
    #[arg(long, value_name = "DURATION", value_parser = value::interval, allow_negative_numbers = true, default_value = "250ms")]
    pub(crate) every: Duration,

    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
}

/// A live screen of locks, holders and waiters.
///
/// Keys: up and down or k and j select, Enter shows one lock with everybody in order, Esc goes back,
/// s changes the order, r reverses it, / filters by name, space pauses, q ends.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold top
    leasehold top --namespace shop --sort waiting --filter order"))]
pub(crate) struct TopArgs {
    /// How often to look.
    #[arg(long, value_name = "DURATION", value_parser = value::interval, allow_negative_numbers = true, default_value = "1s")]
    pub(crate) every: Duration,

    /// What comes first.
    #[arg(long, value_name = "ORDER", default_value = "name")]
    pub(crate) sort: TopSort,

    /// Only locks whose name holds this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) filter: String,

    /// Of this namespace alone; else of all.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<Namespace>,
}

/// In which order locks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopSort {
    /// By namespace, name and kind
    Name,
    /// The longest queue first
    Waiting,
    /// The longest held first
    Held,
    /// The least time to live first
    Ttl,
}

/// Reject everybody who waits for the lock NAME now; holders stay.
///
/// A `run` that waits ends with 75, an acquisition in a program with `Cancelled` and the reason.
#[derive(Debug, Args)]
#[command(after_long_help = examples("    leasehold cancel deploy --reason 'the release was called off'"))]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// What the waiters are told.
    #[arg(long, value_name = "TEXT", default_value = "by an operator")]
    pub(crate) reason: String,
}

/// Destroy the lock NAME: its holders lose it at once, and its waiters are rejected.
///
/// Says on stdout whom that robs. A `run` that holds the lock ends its command and then with 79; a
/// program that does not look goes on, and only a fencing token stops its late writes. Without
/// --yes nothing is destroyed.
#[derive(Debug, Args)]
#[command(after_long_help = examples("    leasehold break deploy --yes --reason 'its host is gone'"))]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Really do it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// What the waiters are told.
    #[arg(long, value_name = "TEXT", default_value = "by an operator")]
    pub(crate) reason: String,
}

/// Look whether the store is in good health: exit code 0 if it is, 1 if not.
///
/// Says what was looked at, what is wrong and what to do about it. A store that is not there yet is
/// made.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold doctor
    leasehold doctor --store sqlite:/var/lib/jobs/locks.db"))]
pub(crate) struct DoctorArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure the store: a short contention test in a namespace of its own.
///
/// Says how many pairs of acquire and release a second one client and several do, and how long the
/// hand-off from a holder to the next takes. The figures are of this machine at this moment.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold bench
    leasehold bench --clients 16 --time 5s --plot bench.svg"))]
pub(crate) struct BenchArgs {
    /// How many clients compete, 1 to 64, all in this process.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64), default_value = "4")]
    pub(crate) clients: u32,

    /// How long each of the three parts takes; at most 1 h.
    #[arg(long, value_name = "DURATION", value_parser = value::interval, allow_negative_numbers = true, default_value = "1s")]
    pub(crate) time: Duration,

    /// Draw how long the waits took.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

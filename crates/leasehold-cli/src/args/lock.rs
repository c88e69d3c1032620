//! Which lock is meant, how much of it is asked for, and how long that may take.

use std::time::Duration;

use clap::{ArgGroup, Args};
use leasehold::{Capacity, LockKind, LockName, Namespace, Weight};

use super::value;
use crate::duration;

/// One lock, by its name.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("one-name").args(["name", "name_option"]).required(true))]
pub(crate) struct NameArgs {
    /// The lock's name: 1 to 512 bytes. One that begins with `-`: see --name.
    #[arg(value_name = "NAME", value_parser = value::name)]
    name: Option<LockName>,

    /// The name, as an option: `--name=-x` is the lock `-x`.
    #[arg(
        long = "name",
        value_name = "NAME",
        id = "name_option",
        value_parser = value::name,
        hide_short_help = true
    )]
    name_option: Option<LockName>,
}

impl NameArgs {
    /// The name.
    pub(crate) fn get(&self) -> &LockName {
        self.name.as_ref().or(self.name_option.as_ref()).expect("clap requires one of them")
    }
}

/// Several locks, by their names.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("names").args(["name", "name_option"]).required(true).multiple(true))]
pub(crate) struct NamesArgs {
    /// The lock's name: 1 to 512 bytes. Several names: all of them are acquired, or none, in one
    /// order for everybody. One that begins with `-`: see --name.
    #[arg(value_name = "NAME", id = "name", value_parser = value::name)]
    positional: Vec<LockName>,

    /// A name, as an option: `--name=-x` is the lock `-x`.
    #[arg(
        long = "name",
        value_name = "NAME",
        id = "name_option",
        value_parser = value::name,
        hide_short_help = true
    )]
    options: Vec<LockName>,
}

impl NamesArgs {
    /// All names, at least one, each once.
    pub(crate) fn get(&self) -> Vec<&LockName> {
        let mut names: Vec<&LockName> = Vec::new();
        for name in self.positional.iter().chain(&self.options) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The kind, where the name alone does not tell.
#[derive(Debug, Args)]
pub(crate) struct KindArgs {
    /// Which, where several kinds of this name are in use.
    #[arg(long, value_name = "KIND", value_parser = value::kind())]
    pub(crate) kind: Option<LockKind>,
}

/// The namespace.
#[derive(Debug, Args)]
pub(crate) struct NamespaceArgs {
    /// Keeps the locks of one application apart from those of others.
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: Namespace,
}

/// A lock that somebody else uses: its name, and what tells it from others of that name.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) name: NameArgs,

    #[command(flatten)]
    pub(crate) kind: KindArgs,

    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
}

/// What is asked for, how long to wait for it, and what is said about it.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) share: ShareArgs,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    /// Say in lists and messages what the work is.
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    #[command(flatten)]
    pub(crate) namespace: NamespaceArgs,
}

/// What is asked for; without any of these a mutex.
#[derive(Clone, Copy, Debug, Args)]
#[command(group = ArgGroup::new("read-write").args(["shared", "exclusive"]).conflicts_with("permits"))]
pub(crate) struct ShareArgs {
    /// A semaphore: up to N at a time.
    #[arg(long, value_name = "N", value_parser = value::capacity)]
    pub(crate) permits: Option<Capacity>,

    /// Take W of the semaphore's permits.
    #[arg(long, value_name = "W", value_parser = value::weight, requires = "permits")]
    pub(crate) weight: Option<Weight>,

    /// A read-write lock, shared with other readers.
    #[arg(long)]
    pub(crate) shared: bool,

    /// A read-write lock, alone.
    #[arg(long)]
    pub(crate) exclusive: bool,
}

/// How long to wait; without any of these for ever.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WaitArgs {
    /// Give up after this time (10m, 1h30m, 500ms, or seconds).
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_negative_numbers = true)]
    pub(crate) wait: Option<Duration>,

    /// Give up at once when the lock is not free.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// The exit code when the lock was not acquired, instead of 75.
    #[arg(short = 'E', long, value_name = "N")]
    pub(crate) conflict_exit_code: Option<u8>,
}

impl WaitArgs {
    /// The longest wait; `None`: for ever.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait }
    }
}

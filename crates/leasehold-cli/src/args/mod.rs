//! The command line, checked while it is read: the program's commands, and what all of them take.

mod grant;
mod lock;
mod look;
mod tools;
mod value;
mod work;

pub(crate) use grant::{AcquireArgs, GrantArgs, ReleaseArgs, RenewArgs};
pub(crate) use lock::{
    KindArgs, LockArgs, NameArgs, NamesArgs, NamespaceArgs, RequestArgs, ShareArgs, WaitArgs,
};
pub(crate) use look::{
    BenchArgs, BreakArgs, CancelArgs, DoctorArgs, ListArgs, ShowArgs, TopArgs, TopSort,
    WaitForArgs, WatchArgs,
};
pub(crate) use tools::{CompletionsArgs, ExecArgs, GuardArgs, ManArgs};
pub(crate) use work::{AdoptArgs, RunArgs, WorkArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit;

/// Run a command under a lock: one at a time, N at a time, or readers and writers.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, max_term_width = 100, after_long_help = examples("\
    leasehold run nightly-report -- ./report.sh          one at a time
    leasehold run exports --permits 3 -- ./export.sh     three at a time
    leasehold run deploy --no-wait -- ./deploy.sh        busy: exit code 75
    leasehold list                                       who holds, who waits"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,

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
    Wait(WaitForArgs),
    Watch(WatchArgs),
    Top(TopArgs),
    Cancel(CancelArgs),
    Break(BreakArgs),
    Doctor(DoctorArgs),
    Bench(BenchArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(name = "__exec", hide = true)]
    Exec(ExecArgs),
    #[command(name = "__guard", hide = true)]
    Guard(GuardArgs),
}

/// What every command takes, before or after its name.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Everywhere {
    /// The store; else LEASEHOLD_STORE, else this user's store on this machine.
    ///
    /// `sqlite:PATH` is a store for all processes of this machine; `redis://HOST`, `rediss://HOST`
    /// (TLS) and `unix:///PATH` (a socket) are Redis or Valkey servers, for all machines that reach
    /// them; `redis+sentinel://HOST,HOST/SERVICE` and `redis+cluster://HOST,HOST` (with `rediss`:
    /// TLS) are several that replace one another.
    /// `redis://USER@HOST:PORT/DATABASE?password_file=FILE&prefix=TEXT` says more. A command line
    /// can be read by every user of the machine: a URL with a password belongs into
    /// LEASEHOLD_STORE, or the password into a file.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Say on stderr where the store is and what happens.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Say nothing on stderr but what failed.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// How what is said on stderr is written: for people, or one JSON document a line.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON document with time, level and message
    Json,
}

/// The end of a long help: examples, then the exit codes.
fn examples(lines: &str) -> String {
    // The source's line continuation takes the first indent away.
    format!("Examples:\n    {}\n\n{}", lines.trim_start(), exit::HELP)
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
        for right in [
            "leasehold run n -- true",
            "leasehold run n --permits 3 --weight 2 --wait 1h30m -- a b --c",
            "leasehold run --shared n --ttl 10s -E 9 -- true",
            "leasehold run a b c -- true",
            "leasehold run --name=-x --name y z -- true",
            "leasehold run n --skip --wait 10s -- true",
            "leasehold run n --ttl 10s --keep-going -- true",
            "leasehold run n --at-most-once-per 1d --max-hold 10m -- true",
            "leasehold --store sqlite:x run n -- true",
            "leasehold -q --log-format json run n -- true",
            "leasehold acquire n --permits 3 --ttl 10m --no-wait --json",
            "leasehold acquire --ttl 10m -- -n",
            "leasehold renew",
            "leasehold renew - --ttl 10m",
            "leasehold release lh1/a/mutex/b/c --store sqlite:x",
            "leasehold adopt -- true",
            "leasehold adopt - --grace 1s --close -- true",
            "leasehold show -- -n",
            "leasehold show --name=-n --kind mutex",
            "leasehold wait n --wait 10s",
            "leasehold watch --all",
            "leasehold cancel n --reason text",
            "leasehold break n --yes",
        ] {
            assert!(parses(right), "{right}");
        }
        for wrong in [
            "leasehold run n",
            "leasehold run n true",
            "leasehold run -- true",
            "leasehold run n --weight 2 -- true",
            "leasehold run n --permits 3 --shared -- true",
            "leasehold run n --shared --exclusive -- true",
            "leasehold run n --permits 0 -- true",
            "leasehold run n --wait 1s --no-wait -- true",
            "leasehold run n --skip -E 9 -- true",
            "leasehold run n --keep-going --max-hold 1s -- true",
            "leasehold run n --at-most-once-per 100d -- true",
            "leasehold run n --wait 10x -- true",
            "leasehold run n --ttl 0 -- true",
            "leasehold run n -E 256 -- true",
            "leasehold run n -q -v -- true",
            "leasehold acquire n",
            "leasehold acquire n m --ttl 10s",
            "leasehold acquire n --ttl 10s -- true",
            "leasehold acquire n --ttl 10s --permits 3 --exclusive",
            "leasehold release a b",
            "leasehold adopt a",
            "leasehold adopt a --namespace x -- true",
            "leasehold list --all --namespace x",
            "leasehold show n --kind rwlock",
            "leasehold show",
            "leasehold show n --name m",
            "leasehold watch",
            "leasehold watch n --all",
            "leasehold",
        ] {
            assert!(!parses(wrong), "{wrong}");
        }
        assert!(Cli::try_parse_from(["leasehold", "run", "", "--", "true"]).is_err());
    }
}

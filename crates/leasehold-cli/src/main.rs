//! The `leasehold` program: args → settings → commands.
#![forbid(unsafe_code)]

mod args;
mod child;
mod commands;
mod duration;
mod exit;
mod report;
mod settings;
mod signals;
mod store;
mod terminal;
mod ticket;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command},
    exit::{Exit, Failure},
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error).into(),
    };
    match obey(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            report::say(&failure);
            failure.exit.into()
        }
    }
}

fn obey(command: Command) -> Result<Exit, Failure> {
    let command = match command {
        Command::Exec(args) => return Err(child::become_command(&args)),
        Command::List(args) => return commands::list::list(args),
        Command::Show(args) => return commands::show::show(args),
        other => other,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Command::Run(args) => commands::run::run(args).await,
            Command::Acquire(args) => commands::acquire::acquire(args).await,
            Command::Renew(args) => commands::renew::renew(args).await,
            Command::Release(args) => commands::release::release(args).await,
            Command::Adopt(args) => commands::adopt::adopt(args).await,
            Command::List(_) | Command::Show(_) | Command::Exec(_) => {
                unreachable!("they were obeyed above")
            }
        }
    })
}

/// `--help` and `--version` arrive here too.
fn not_parsed(error: &clap::Error) -> Exit {
    let text = error.to_string();
    let harmless = ticket::redacted(&text);
    if harmless == text {
        // A reader that has gone away is no error.
        let _ = error.print();
    } else {
        // A ticket in the wrong place.
        report::say(harmless);
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

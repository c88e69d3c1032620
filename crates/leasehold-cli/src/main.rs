//! The `leasehold` program: args → settings → commands.
#![forbid(unsafe_code)]

mod args;
mod child;
mod commands;
mod duration;
mod exit;
mod guardian;
mod report;
mod settings;
mod signals;
mod store;
mod svg;
mod talk;
mod terminal;
mod ticket;
mod tip;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command, Everywhere, LogFormat},
    exit::{Exit, Failure},
    settings::Settings,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(error).into(),
    };
    talk::set(&cli.everywhere);
    match obey(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            talk::failure(&failure);
            failure.exit.into()
        }
    }
}

/// What needs neither a store nor a runtime comes first: the hidden commands become something else.
fn obey(cli: Cli) -> Result<Exit, Failure> {
    let command = match cli.command {
        Command::Exec(args) => return child::become_command(&args),
        Command::Guard(_) => return Ok(guardian::guard()),
        Command::Completions(args) => return commands::completions::completions(&args),
        Command::Man(args) => return commands::man::man(&args),
        other => other,
    };
    let settings = Settings::new(&cli.everywhere)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    runtime.block_on(on_store(command, &settings))
}

async fn on_store(command: Command, settings: &Settings) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => commands::run::run(args, settings).await,
        Command::Acquire(args) => commands::acquire::acquire(args, settings).await,
        Command::Renew(args) => commands::renew::renew(args, settings).await,
        Command::Release(args) => commands::release::release(args, settings).await,
        Command::Adopt(args) => commands::adopt::adopt(args, settings).await,
        Command::List(args) => commands::list::list(args, settings).await,
        Command::Show(args) => commands::show::show(args, settings).await,
        Command::Wait(args) => commands::wait::wait(args, settings).await,
        Command::Watch(args) => commands::watch::watch(args, settings).await,
        Command::Top(args) => commands::top::top(args, settings).await,
        Command::Cancel(args) => commands::cancel::cancel(args, settings).await,
        Command::Break(args) => commands::break_lock::break_lock(args, settings).await,
        Command::Doctor(args) => commands::doctor::doctor(args, settings).await,
        Command::Bench(args) => commands::bench::bench(args, settings).await,
        Command::Exec(_) | Command::Guard(_) | Command::Completions(_) | Command::Man(_) => {
            unreachable!("they were obeyed above")
        }
    }
}

/// `--help` and `--version` arrive here too.
fn not_parsed(mut error: clap::Error) -> Exit {
    let tip = tip::of(&mut error, std::env::args_os());
    let text = error.to_string();
    // Help is all our own, and holds examples.
    let harmless = if error.use_stderr() { ticket::redacted(&text) } else { text.clone() };
    if error.use_stderr() && wants_documents() {
        let format = LogFormat::Json;
        talk::set(&Everywhere { log_format: format, ..Everywhere::default() });
        talk::failure(harmless.trim_start_matches("error: ").trim_end());
    } else if harmless == text {
        // A reader that has gone away is no error.
        let _ = error.print();
    } else {
        // A secret in the wrong place.
        talk::failure(harmless);
    }
    if !error.use_stderr() {
        return Exit::Success;
    }
    if let Some(tip) = tip {
        talk::note(tip);
    }
    Exit::Usage
}

/// `--log-format json` on a command line that is wrong elsewhere, before the command of `run`.
fn wants_documents() -> bool {
    let own = std::env::args_os().take_while(|word| word != "--");
    let own: Vec<_> = own.map(|word| word.to_string_lossy().into_owned()).collect();
    own.iter().any(|word| word == "--log-format=json")
        || own.windows(2).any(|pair| pair == ["--log-format", "json"])
}

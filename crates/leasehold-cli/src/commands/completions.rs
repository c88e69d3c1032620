//! `leasehold completions`: what makes a shell complete commands and options.

use clap::CommandFactory;

use crate::{
    args::{Cli, CompletionsArgs},
    exit::{Exit, Failure},
    report,
};

/// Prints them, without the commands that are not for people.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut public(Cli::command()), "leasehold", &mut text);
    report::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

/// The same program with its public commands alone.
fn public(whole: clap::Command) -> clap::Command {
    let visible: Vec<_> =
        whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let arguments: Vec<_> = whole.get_arguments().cloned().collect();
    clap::Command::new("leasehold")
        .about(whole.get_about().cloned().unwrap_or_default())
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments)
        .subcommands(visible)
}

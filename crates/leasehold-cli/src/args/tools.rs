//! Commands about the program itself.

use std::ffi::OsString;

use clap::Args;
use clap_complete::Shell;

use super::examples;

/// Print what makes a shell complete commands and options.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold completions bash >~/.local/share/bash-completion/completions/leasehold
    leasehold completions zsh >~/.zfunc/_leasehold
    leasehold completions fish >~/.config/fish/completions/leasehold.fish"))]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page.
#[derive(Debug, Args)]
#[command(after_long_help = examples("\
    leasehold man | man -l -
    leasehold man >/usr/local/share/man/man1/leasehold.1"))]
pub(crate) struct ManArgs {
    /// As Markdown: what docs/cli.md is made of.
    #[arg(long, hide = true)]
    pub(crate) markdown: bool,
}

/// Not for people: what `run` starts to become the command, from inside its process group.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Make the process group the terminal's foreground group first.
    #[arg(long)]
    pub(crate) foreground: bool,

    /// First wait for a byte from this descriptor, and end without one.
    #[arg(long, value_name = "FD")]
    pub(crate) gate: Option<i32>,

    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Not for people: the guardian, which ends a process group when `run` is gone.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {}

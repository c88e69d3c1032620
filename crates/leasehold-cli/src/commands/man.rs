//! `leasehold man`: the manual, as a page for man(1) or as Markdown, from the definition that the
//! parser uses.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory};

use crate::{
    args::{Cli, ManArgs},
    exit::{self, Exit, Failure},
    report,
};

/// Prints the manual.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let mut program = Cli::command();
    program.build();
    let text = if args.markdown { write::<Markdown>(&program) } else { write::<Roff>(&program) };
    report::print(&text)?;
    Ok(Exit::Success)
}

/// How the parts of a manual are written.
trait Format {
    fn beginning(program: &Command) -> String;
    /// A heading, 1 or 2 deep.
    fn heading(depth: usize, text: &str) -> String;
    fn paragraph(text: &str) -> String;
    /// Lines as they are.
    fn verbatim(text: &str) -> String;
    /// An argument and what it means.
    fn item(term: &str, text: &str) -> String;
}

fn write<F: Format>(program: &Command) -> String {
    let text = parts::<F>(program);
    // One empty line where two parts bring one each.
    text.replace("\n\n\n", "\n\n")
}

fn parts<F: Format>(program: &Command) -> String {
    let mut text = F::beginning(program);
    text += &F::heading(1, "Description");
    text += &about::<F>(program);
    text += &F::heading(1, "Commands");
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    for command in commands.filter(|command| command.get_name() != "help") {
        text += &F::heading(2, command.get_name());
        text += &F::verbatim(&usage(command));
        text += &about::<F>(command);
        for argument in command.get_arguments().filter(|argument| is_own(argument)) {
            text += &F::item(&term(argument), &meaning(argument));
        }
        text += &examples::<F>(command);
    }
    text += &F::heading(1, "Options of every command");
    for argument in program.get_arguments().filter(|argument| !is_help(argument)) {
        text += &F::item(&term(argument), &meaning(argument));
    }
    text += &F::heading(1, "What ends the command of run");
    for part in ENDS {
        text += &F::paragraph(part);
    }
    text += &F::heading(1, "Environment");
    for (variable, what) in ENVIRONMENT {
        text += &F::item(variable, what);
    }
    text += &F::heading(1, "Exit codes");
    text += &F::verbatim(exit::HELP.split_once('\n').map_or("", |(_, table)| table));
    text
}

/// What a reader of the options alone would not guess.
const ENDS: [&str; 5] = [
    "By itself: its exit code is passed on. Signals that `leasehold` gets are passed on to the whole \
     process group of the command, so that it decides. A signal while `leasehold` waits ends the wait.",
    "When the lease is lost, when somebody breaks the lock, and when --max-hold is over: TERM to the \
     whole group, KILL after the grace, and both before the lock can pass on. --keep-going turns that \
     off.",
    "When `leasehold` is killed with KILL: on a store that proves the death of processes (SQLite) and \
     without --ttl, nothing; the command goes on and keeps the lock until its last process that has \
     inherited it has ended (--close: the lock is free at once). With --ttl, and always on other \
     stores, the guardian, a small process of the same program, kills the command's group at once. \
     --keep-going turns that off, too: the command may then run beside the next holder once the TTL \
     is over.",
    "The guardian reaches the process group, however deep, and not a process that has left it \
     (setsid, a daemon): give such a program an option to stay in the foreground. A guardian that is \
     killed is replaced at once, up to eight times. If `leasehold` and its guardian are killed at the \
     same moment, nobody ends the command, and the lock passes on when the \
     TTL is over.",
    "What the command leaves behind when it ends by itself is left alone, and holds nothing: the lock \
     is given back. When the terminal is closed, the command gets HUP as it would without `leasehold`.",
];

/// Every variable that the program knows: settings.rs.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("LEASEHOLD_STORE", "The store's URL, where --store is not given. Empty counts as not set."),
    (
        "LEASEHOLD_TICKET",
        "The ticket for `renew`, `release` and `adopt`, where none is given. Set for the command of \
         `run` and `adopt`.",
    ),
    ("LEASEHOLD_NAME", "Set for the command of `run` and `adopt`: the lock's name."),
    ("LEASEHOLD_FENCING_TOKEN", "Set for the command: the fencing token of the grant."),
    (
        "LEASEHOLD_NAME_2, LEASEHOLD_FENCING_TOKEN_2, LEASEHOLD_TICKET_2, …",
        "Set for the command of a `run` of several locks, in the order of their acquisition.",
    ),
    (
        "LEASEHOLD_HELD",
        "Set for the command: the tickets of all grants that it runs under, the innermost first. By \
         them a `run` that would wait for itself is told.",
    ),
    ("NO_COLOR", "No colour, also on a terminal."),
    ("TERM", "`dumb`: no colour either."),
];

fn about<F: Format>(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    about.split("\n\n").filter(|part| !part.is_empty()).map(|part| F::paragraph(part)).collect()
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").trim().to_owned()
}

fn examples<F: Format>(command: &Command) -> String {
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let lines = after.strip_prefix("Examples:\n").and_then(|rest| rest.split("\n\n").next());
    lines.map_or_else(String::new, |lines| F::verbatim(lines))
}

fn is_own(argument: &Arg) -> bool {
    !argument.is_global_set() && !argument.is_hide_set() && !is_help(argument)
}

fn is_help(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "help" | "version")
}

/// The argument as it is written: `-E, --conflict-exit-code N`.
fn term(argument: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    let value = || {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    match (names.is_empty(), argument.get_action().takes_values()) {
        (true, _) => value(),
        (false, true) => format!("{} {}", names.join(", "), value()),
        (false, false) => names.join(", "),
    }
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    if !text.ends_with('.') {
        text.push('.');
    }
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let names: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        let _ = write!(text, " One of: {}.", names.join(", "));
    }
    if let [default] = argument.get_default_values()
        && argument.get_action().takes_values()
        && !default.is_empty()
    {
        let _ = write!(text, " Default: {}.", default.display());
    }
    text
}

/// For man(1).
struct Roff;

impl Format for Roff {
    fn beginning(program: &Command) -> String {
        let version = program.get_version().unwrap_or_default();
        let about = program.get_about().map(ToString::to_string).unwrap_or_default();
        let about = roff(about.trim_end_matches('.'));
        format!(".TH LEASEHOLD 1 \"\" \"leasehold {version}\"\n.SH NAME\nleasehold \\- {about}\n")
    }

    fn heading(depth: usize, text: &str) -> String {
        if depth == 1 { format!(".SH {}\n", text.to_uppercase()) } else { format!(".SS {text}\n") }
    }

    fn paragraph(text: &str) -> String {
        format!(".PP\n{}\n", roff(text))
    }

    fn verbatim(text: &str) -> String {
        format!(".PP\n.nf\n{}\n.fi\n", roff(text))
    }

    fn item(term: &str, text: &str) -> String {
        format!(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(&text.replace("\n\n", "\n.sp\n")))
    }
}

/// No text of ours becomes a request or an escape, but for the space between paragraphs.
fn roff(text: &str) -> String {
    let line = |line: &str| {
        let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
        if escaped.starts_with(['.', '\'']) && line != ".sp" {
            format!("\\&{escaped}")
        } else {
            escaped
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// For docs/cli.md.
struct Markdown;

/// Who reads the page of man(1) has it installed.
const INSTALL: &str = "## Install

In a clone, with Rust and a C compiler:

```sh
cargo install --locked --path crates/leasehold-cli
leasehold man >~/.local/share/man/man1/leasehold.1    # `leasehold man | man -l -` shows it at once
leasehold completions bash >~/.local/share/bash-completion/completions/leasehold
```

Without Redis, and without a TLS library: `--no-default-features`. One file that needs no library of the
machine it runs on:

```sh
RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --release \\
    --target x86_64-unknown-linux-gnu -p leasehold-cli
```

Names of servers are then looked up by what glibc loads at run time, which can fail: name a Redis server
by its address or as /etc/hosts has it. Users are looked up in /etc/passwd alone: for one who is not in it
the default store is in /var/tmp, whatever the program of a package finds, so name it to both with --store.
";

impl Format for Markdown {
    fn beginning(_: &Command) -> String {
        "# The program `leasehold`\n\n\
         This page is made by `leasehold man --markdown`, and a test sees to it that it is not stale. \
         Programs on top of it are in [recipes](recipes.md), what a lock cannot promise is in \
         [safety](safety.md).\n\n"
            .to_owned()
            + INSTALL
    }

    fn heading(depth: usize, text: &str) -> String {
        format!("\n{} {text}\n\n", "#".repeat(depth + 1))
    }

    fn paragraph(text: &str) -> String {
        format!("{}\n\n", text.replace('\n', " "))
    }

    fn verbatim(text: &str) -> String {
        format!("\n```text\n{}\n```\n\n", text.trim_end())
    }

    fn item(term: &str, text: &str) -> String {
        format!("- **`{term}`** {}\n", text.replace("\n\n", " ").replace('\n', " "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let mut program = Cli::command();
        program.build();
        program
    }

    #[test]
    fn every_public_command_and_option_has_a_meaning() {
        for command in program().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments().filter(|argument| is_own(argument)) {
                assert_ne!(meaning(argument), ".", "{} {}", command.get_name(), term(argument));
            }
        }
    }

    #[test]
    fn text_is_no_request_of_roff() {
        assert_eq!(roff(".x\n'y\na-b \\ c"), "\\&.x\n\\&'y\na\\-b \\e c");
        let page = write::<Roff>(&program());
        assert!(page.starts_with(".TH LEASEHOLD 1"), "{page}");
        assert!(!page.contains("__exec") && page.contains(".SS run"), "{page}");
    }
}

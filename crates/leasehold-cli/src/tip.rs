//! Tips for command lines that clap cannot explain.

use std::ffi::OsString;

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

use crate::args::Cli;

/// What is most likely meant: `run NAME CMD` lacks the `--` before the command, and the name in
/// `run -x` begins with a dash. Takes the tip away that clap has for the second, which makes the
/// name a command.
pub(crate) fn of(error: &mut Error, line: impl Iterator<Item = OsString>) -> Option<String> {
    if error.kind() == ErrorKind::InvalidSubcommand {
        return command_like(error);
    }
    let line: Vec<String> = line.skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let runs = line.iter().find(|word| !word.starts_with('-'))?;
    let kind = error.kind();
    let is_about_the_command =
        matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument);
    if !is_about_the_command || !matches!(&**runs, "run" | "adopt") {
        return None;
    }
    let what = if runs == "run" { "NAME" } else { "TICKET" };
    if kind == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if !line.iter().any(|word| word == "--") {
        return Some(format!("the command stands after `--`: leasehold {runs} {what} -- CMD ARGS"));
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_typo = error.get(ContextKind::SuggestedArg).is_some();
    let is_number = unknown.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let tip = "a name that begins with `-` is an option's value: leasehold run --name=-x -- CMD";
    (runs == "run" && !is_typo && !is_number).then(|| tip.to_owned())
}

/// A command that differs by one letter, or by two that changed places: clap finds no likeness in
/// short words.
fn command_like(error: &Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let commands = Cli::command();
    let mut names = commands.get_subcommands().filter(|command| !command.is_hide_set());
    let like = names.find(|command| strsim::osa_distance(unknown, command.get_name()) == 1)?;
    Some(format!("a similar command exists: '{}'", like.get_name()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// The tip, and what clap says.
    fn tip(line: &str) -> (Option<String>, String) {
        let words = || line.split(' ').map(OsString::from);
        let mut error = Cli::try_parse_from(words()).unwrap_err();
        (of(&mut error, words()), error.to_string())
    }

    #[test]
    fn a_missing_separator_is_told() {
        assert!(tip("leasehold run n true").0.unwrap().contains("leasehold run NAME -- CMD"));
        assert!(tip("leasehold run n ls -l").0.unwrap().contains("leasehold run NAME -- CMD"));
        assert!(tip("leasehold -v adopt t true").0.unwrap().contains("adopt TICKET -- CMD"));
        for line in ["leasehold run -- true", "leasehold show", "leasehold"] {
            assert_eq!(tip(line).0, None, "{line}");
        }
    }

    #[test]
    fn a_name_with_a_dash_is_no_command() {
        let (own, clap) = tip("leasehold run -x -- true");
        assert!(own.unwrap().contains("--name=-x"));
        assert!(!clap.contains("as a value"), "{clap}");
        let (own, clap) = tip("leasehold run n --permit 2 -- true");
        assert_eq!(own, None);
        assert!(clap.contains("'--permits'") && !clap.contains("as a value"), "{clap}");
        assert_eq!(tip("leasehold run n --wait -1 -- true").0, None);
        let (own, clap) = tip("leasehold show -x");
        assert!(own.is_none() && clap.contains("'-- -x'"), "{clap}");
    }
}

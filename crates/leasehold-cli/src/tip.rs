//! Tips for command lines that clap cannot explain.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// What is most likely meant: `run NAME CMD` lacks the `--` before the command.
pub(crate) fn of(kind: ErrorKind, line: impl Iterator<Item = OsString>) -> Option<String> {
    let line: Vec<String> = line.skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let runs = line.iter().find(|word| !word.starts_with('-'))?;
    let is_about_the_command =
        matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument);
    if !is_about_the_command || !matches!(&**runs, "run" | "adopt") {
        return None;
    }
    if line.iter().any(|word| word == "--") {
        return None;
    }
    let what = if runs == "run" { "NAME" } else { "TICKET" };
    Some(format!("the command stands after `--`: leasehold {runs} {what} -- CMD ARGS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(line: &str) -> Option<String> {
        of(ErrorKind::MissingRequiredArgument, line.split(' ').map(OsString::from))
    }

    #[test]
    fn a_missing_separator_is_told() {
        assert!(tip("leasehold run n true").unwrap().contains("leasehold run NAME -- CMD"));
        assert!(tip("leasehold -v adopt t true").unwrap().contains("adopt TICKET -- CMD"));
        assert_eq!(tip("leasehold run -- true"), None);
        assert_eq!(tip("leasehold show"), None);
        assert_eq!(tip("leasehold"), None);
    }
}

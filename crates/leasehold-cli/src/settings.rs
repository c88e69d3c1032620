//! What the program takes from its surroundings, and every environment variable it knows.
//!
//! Read: `LEASEHOLD_STORE`, where `--store` is not given; `LEASEHOLD_TICKET`, where a command that
//! takes a ticket is given none; `LEASEHOLD_HELD`, to warn of a `run` that waits for itself;
//! `NO_COLOR` and `TERM`. Set for the command that `run` and `adopt` start: `LEASEHOLD_NAME`,
//! `LEASEHOLD_FENCING_TOKEN` and `LEASEHOLD_TICKET`, of several locks also `LEASEHOLD_NAME_2` and so
//! on, and `LEASEHOLD_HELD`; all win over inherited ones, so in nested runs the command sees the
//! innermost lock. Everything else, `LEASEHOLD_STORE` included, is passed on as it is. The place of
//! the default store depends on the user alone, never on the environment, so that cron and a login
//! shell meet.

use std::{env, ffi::OsString};

use crate::{
    args::Everywhere,
    exit::{Exit, Failure},
};

/// The store's URL, unless `--store` gives one. Empty counts as not set.
pub(crate) const STORE: &str = "LEASEHOLD_STORE";
/// The name of the lock that the command runs under.
pub(crate) const NAME: &str = "LEASEHOLD_NAME";
/// The fencing token of the grant that the command runs under.
pub(crate) const FENCING_TOKEN: &str = "LEASEHOLD_FENCING_TOKEN";
/// The ticket of the grant that the command runs under. It names the grant and binds nothing; it is
/// a secret, and an environment is read by its own user alone. Empty counts as not set.
pub(crate) const TICKET: &str = "LEASEHOLD_TICKET";
/// The tickets of all grants that the command runs under, the innermost first, between spaces.
pub(crate) const HELD: &str = "LEASEHOLD_HELD";

/// Where the locks live.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The store's URL; `None`: this user's store on this machine.
    pub(crate) store: Option<String>,
}

impl Settings {
    /// Arguments first, then the environment.
    pub(crate) fn new(args: &Everywhere) -> Result<Self, Failure> {
        Self::from_parts(args.store.clone(), env::var_os(STORE))
    }

    fn from_parts(store: Option<String>, variable: Option<OsString>) -> Result<Self, Failure> {
        let inherited = variable.filter(|url| !url.is_empty());
        let store = match (store, inherited) {
            (Some(url), _) => Some(url),
            (None, Some(url)) => Some(url.into_string().map_err(|_| {
                // Not repeated: a URL may hold a password.
                Failure::new(Exit::Usage, format!("{STORE} is not UTF-8"))
            })?),
            (None, None) => None,
        };
        Ok(Self { store })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn settings(option: Option<&str>, variable: Option<&[u8]>) -> Result<Settings, Failure> {
        let store = option.map(str::to_owned);
        Settings::from_parts(store, variable.map(|bytes| OsString::from_vec(bytes.to_vec())))
    }

    #[test]
    fn the_option_wins_over_the_variable_over_the_default() {
        let store = |option, variable| settings(option, variable).unwrap().store;
        assert_eq!(store(Some("sqlite:a"), Some(b"sqlite:b")).as_deref(), Some("sqlite:a"));
        assert_eq!(store(None, Some(b"sqlite:b")).as_deref(), Some("sqlite:b"));
        assert_eq!(store(None, Some(b"")), None);
        assert_eq!(store(None, None), None);
        assert_eq!(settings(None, Some(b"sqlite:\xff")).unwrap_err().exit, Exit::Usage);
        assert!(settings(Some("sqlite:a"), Some(b"\xff")).is_ok());
    }
}

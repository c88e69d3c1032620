//! Where a store is.

use std::path::PathBuf;

use super::opening;
use crate::{
    exit::{Exit, Failure},
    settings::Settings,
    talk,
};

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A database of this machine.
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The default store: its directory is made when it is not there.
        default: bool,
        /// As people name it.
        url: String,
    },
    /// A server that many machines reach.
    #[cfg(feature = "redis")]
    Redis {
        /// Everything that is known of it, its password included, which nothing shows.
        config: Box<leasehold_redis::RedisConfig>,
        /// As people name it, without user and password.
        url: String,
    },
}

impl Place {
    /// The place that the settings name. Nothing is touched.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let Some(url) = &settings.store else {
            let path = leasehold_sqlite::default_path().map_err(opening)?;
            let url = format!("sqlite:{}", path.display());
            return Ok(Self::Sqlite { path, default: true, url });
        };
        match url.split_once(':') {
            Some(("sqlite", _)) => {
                // What a URL asks for and no store has is wrong usage.
                let path = leasehold_sqlite::path_of_url(url)
                    .map_err(|fault| opening(fault).with_exit(Exit::Usage))?;
                Ok(Self::Sqlite { path, default: false, url: url.clone() })
            }
            Some(("memory", _)) => Err(wrong(
                "memory: lives in one process and ends with it, so a command line has nothing to \
                 share there; leave --store out for this user's store, or use sqlite:PATH",
            )),
            Some((
                "redis" | "rediss" | "unix" | "redis+unix" | "redis+sentinel" | "rediss+sentinel"
                | "redis+cluster" | "rediss+cluster",
                _,
            )) => redis(url),
            // Nothing else is repeated: it may be, or hold, a password.
            Some((scheme, _)) if leasehold::is_scheme(scheme) => {
                Err(wrong(format!("no store is called {scheme:?}; {NAMES}")))
            }
            _ => Err(wrong(format!("a store is named by a URL; {NAMES}"))),
        }
    }

    /// Whether there is something at the place, fit to be a store or not. A server is not asked.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Sqlite { path, default, .. } => {
                // An unsafe thing in the place of the default store's directory is to be told, not
                // passed over because it has no database in it.
                path.symlink_metadata().is_ok()
                    || *default
                        && path.parent().is_some_and(|parent| parent.symlink_metadata().is_ok())
            }
            #[cfg(feature = "redis")]
            Self::Redis { .. } => true,
        }
    }

    /// As people name it, without secrets.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Sqlite { url, .. } => url,
            #[cfg(feature = "redis")]
            Self::Redis { url, .. } => url,
        }
    }

    /// Tells the place on stderr, with `-v`.
    pub(crate) fn say(&self) {
        talk::detail(self.told());
    }

    /// The place, and whether there is anything yet.
    pub(crate) fn told(&self) -> String {
        let missing = if self.exists() { "" } else { " (not there yet)" };
        format!("store: {}{missing}", self.as_str())
    }
}

/// The stores that there are.
const NAMES: &str = "use sqlite:PATH or redis://HOST";

#[cfg(feature = "redis")]
fn redis(url: &str) -> Result<Place, Failure> {
    let config =
        leasehold_redis::RedisConfig::new(url).map_err(|error| wrong(error.to_string()))?;
    let url = config.to_string();
    Ok(Place::Redis { config: Box::new(config), url })
}

#[cfg(not(feature = "redis"))]
fn redis(_: &str) -> Result<Place, Failure> {
    Err(wrong("this program was built without the feature `redis`; use sqlite:PATH"))
}

fn wrong(why: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, why)
}

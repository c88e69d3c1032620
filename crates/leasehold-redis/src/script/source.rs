//! The script texts: one file for each operation, with the shared preludes put in.

use std::{fmt, sync::OnceLock};

/// What every script begins with; short, since the server runs it each time.
const HEAD: &str = include_str!("../lua/head.lua");
/// How the state is written; before what follows.
const WRITE: &str = include_str!("../lua/write.lua");
/// What is needed once a lock is contended. A script includes it after its short ways out.
const MANY: &str = include_str!("../lua/many.lua");
/// How waiters are put out; for those that end many at once.
const REJECT: &str = include_str!("../lua/reject.lua");

/// One script, as it is sent to the server.
pub struct Source {
    name: &'static str,
    file: &'static str,
    built: OnceLock<Built>,
}

#[derive(Debug)]
struct Built {
    text: String,
    digest: String,
}

impl Source {
    const fn new(name: &'static str, file: &'static str) -> Self {
        Self { name, file, built: OnceLock::new() }
    }

    /// The operation, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The whole text, as EVAL and SCRIPT LOAD take it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.built().text
    }

    /// The digest by which EVALSHA knows the script.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.built().digest
    }

    fn built(&self) -> &Built {
        self.built.get_or_init(|| {
            let body = match self.file.contains("-- include write.lua\n") {
                true => self.file.replacen("-- include write.lua\n", WRITE, 1),
                false => {
                    let both = "-- include write.lua\n-- include many.lua\n";
                    let body = self.file.replacen("-- include many.lua\n", both, 1);
                    body.replacen("-- include write.lua\n", WRITE, 1)
                }
            };
            let body = body.replacen("-- include many.lua\n", MANY, 1);
            let body = body.replacen("-- include reject.lua\n", REJECT, 1);
            let text = format!("{HEAD}{body}");
            let digest = redis::Script::new(&text).get_hash().to_owned();
            Built { text, digest }
        })
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! sources {
    ($($constant:ident = $name:literal),* $(,)?) => {
        $(pub(super) static $constant: Source =
            Source::new($name, include_str!(concat!("../lua/", $name, ".lua")));)*

        /// Every script, to load them all at once.
        pub static SOURCES: &[&Source] = &[$(&$constant),*];
    };
}

sources! {
    ACQUIRE = "acquire",
    CONFIRM = "confirm",
    RENEW = "renew",
    EXTEND = "extend",
    REBIND = "rebind",
    REMAINING = "remaining",
    RELEASE = "release",
    BEAT = "beat",
    WATCH = "watch",
    UNWATCH = "unwatch",
    CANCEL = "cancel",
    DESTROY = "destroy",
    COUNTS = "counts",
    INSPECT = "inspect",
}

//! Which servers there are, and where their programs lie.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::install;

/// A kind of server that the store supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// Redis 7.0, as the distribution packages it.
    Redis70,
    /// Redis 6.2, the oldest that is supported.
    Redis62,
    /// Valkey 9.1.
    Valkey,
}

/// A server's program cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub(crate) what: &'static str,
}

/// A program that was found, and how to start it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Libraries that came with it.
    libraries: Option<PathBuf>,
}

impl Flavor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Redis70, Self::Redis62, Self::Valkey];

    /// What tests of it are marked with.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis70 => "redis-7.0",
            Self::Redis62 => "redis-6.2",
            Self::Valkey => "valkey",
        }
    }

    /// Whether it can be started here.
    ///
    /// # Errors
    /// Its program is nowhere.
    pub fn installed(self) -> Result<(), Missing> {
        self.program().map(|_| ())
    }

    /// Its program: one of that version on the `PATH`, else the one that [`install`](crate::install)
    /// fetched.
    pub(crate) fn program(self) -> Result<&'static Program, Missing> {
        static FOUND: [OnceLock<Program>; 3] = [const { OnceLock::new() }; 3];
        let known = &FOUND[self as usize];
        if known.get().is_none() {
            // Only a find is kept: an installation may follow in this process.
            let found = self.find().ok_or(Missing { what: self.name() })?;
            return Ok(known.get_or_init(|| found));
        }
        known.get().ok_or(Missing { what: self.name() })
    }

    fn find(self) -> Option<Program> {
        let fetched = install::folder().join(self.name());
        let lib = fetched.join("lib");
        let fetched = Program {
            path: fetched.join(self.file_name()),
            libraries: lib.is_dir().then_some(lib),
        };
        let of_the_system = env::var_os("PATH").into_iter().flat_map(|path| {
            env::split_paths(&path).map(|folder| folder.join(self.file_name())).collect::<Vec<_>>()
        });
        let of_the_system = of_the_system.map(|path| Program { path, libraries: None });
        of_the_system.chain([fetched]).find(|program| self.is_version_of(program))
    }

    fn is_version_of(self, program: &Program) -> bool {
        let said = program.path.is_file().then(|| program.command().arg("--version").output());
        let Some(Ok(said)) = said else { return false };
        String::from_utf8_lossy(&said.stdout).contains(self.version())
    }

    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Redis70 | Self::Redis62 => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    /// What its `--version` contains.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Redis70 => "v=7.0.",
            Self::Redis62 => "v=6.2.",
            Self::Valkey => "v=9.1.",
        }
    }
}

impl Program {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

/// The library that steps a server's clock, if it was fetched.
pub(crate) fn fake_time() -> Result<PathBuf, Missing> {
    let library = install::folder().join("faketime").join("libfaketimeMT.so.1");
    if Path::is_file(&library) { Ok(library) } else { Err(Missing { what: "libfaketime" }) }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not installed for tests; `cargo xtask test --install` fetches it",
            self.what
        )
    }
}

impl std::error::Error for Missing {}

//! What is special about a server.

use std::{fmt::Write as _, fs, io, path::Path};

use crate::{Flavor, Missing, Server, flavor};

/// The user under whom [`Server::command`] asks where there is an ACL file.
pub(crate) const ADMIN: &str = "test-servers";

/// A server that is to be started. Made by [`Server::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) flavor: Flavor,
    lines: Vec<String>,
    pub(crate) password: Option<String>,
    acl: Option<String>,
    persistence: bool,
    pub(crate) unix_socket: bool,
    pub(crate) fake_clock: bool,
    pub(crate) tls: bool,
    pub(crate) sentinel: bool,
}

impl Builder {
    pub(crate) const fn new(flavor: Flavor) -> Self {
        Self {
            flavor,
            lines: Vec::new(),
            password: None,
            acl: None,
            persistence: false,
            unix_socket: false,
            fake_clock: false,
            tls: false,
            sentinel: false,
        }
    }

    /// Adds a line to its configuration; the last line about something counts.
    #[must_use]
    pub fn config(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Asks for this password from the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Knows the users of these lines, each of the form `user NAME RULE...`, and none but those and
    /// one for [`Server::command`]. Without a line about it the default user may do everything.
    #[must_use]
    pub fn acl_file(mut self, lines: &str) -> Self {
        self.acl = Some(lines.to_owned());
        self
    }

    /// Writes every change to disk before it answers. Without it nothing is written.
    #[must_use]
    pub const fn persistence(mut self, on: bool) -> Self {
        self.persistence = on;
        self
    }

    /// Refuses writes beyond this much memory, and drops nothing.
    #[must_use]
    pub fn max_memory(self, bytes: u64) -> Self {
        self.config(&format!("maxmemory {bytes}")).config("maxmemory-policy noeviction")
    }

    /// Has [`Server::url`] name its Unix socket.
    #[must_use]
    pub const fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Gives it a wall clock that [`Server::step_clock`] steps. Redis 7.0 as Debian builds it does
    /// not start that way.
    ///
    /// # Panics
    /// This server cannot have one.
    #[must_use]
    pub fn fake_clock(mut self) -> Self {
        assert_ne!(self.flavor, Flavor::Redis70, "its allocator does not start under libfaketime");
        self.fake_clock = true;
        self
    }

    /// Speaks TLS and nothing else on its port, with a certificate that [`Server::ca_pem`] vouches
    /// for. Only Redis 7.0 is built with it.
    ///
    /// # Panics
    /// This server cannot.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self) -> Self {
        assert_eq!(self.flavor, Flavor::Redis70, "it is built without TLS");
        self.tls = true;
        self
    }

    /// Has it watch over other servers instead of keeping data.
    #[must_use]
    pub(crate) const fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Starts it, and returns once it answers.
    ///
    /// # Errors
    /// Its program, or the library that a fake clock needs, is nowhere.
    ///
    /// # Panics
    /// It does not start; its log is shown.
    pub fn start(self) -> Result<Server, Missing> {
        let program = self.flavor.program()?;
        let fake_time = if self.fake_clock { Some(flavor::fake_time()?) } else { None };
        Ok(Server::launch(self, program, fake_time))
    }

    /// Writes its configuration into its directory.
    pub(crate) fn write(
        &self,
        directory: &Path,
        port: u16,
        admin_password: &str,
    ) -> io::Result<()> {
        let (plain, tls) = if self.tls { (0, port) } else { (port, 0) };
        let mut text = format!(
            "bind 127.0.0.1\nport {plain}\nunixsocket {}\nunixsocketperm 700\ndir {}\n\
             save \"\"\nloglevel notice\ndaemonize no\n",
            quoted(&directory.join("socket").display().to_string()),
            quoted(&directory.display().to_string()),
        );
        if self.flavor != Flavor::Redis62 {
            text.push_str("enable-debug-command local\n");
        }
        if tls > 0 {
            let _ = writeln!(
                text,
                "tls-port {tls}\ntls-auth-clients no\ntls-cert-file server.crt\n\
                 tls-key-file server.key\ntls-ca-cert-file ca.crt"
            );
        }
        if self.persistence {
            text.push_str("appendonly yes\nappendfsync always\n");
        }
        if let Some(password) = &self.password {
            let _ = writeln!(text, "requirepass {}", quoted(password));
        }
        if let Some(acl) = &self.acl {
            let admin = format!("user {ADMIN} on >{admin_password} ~* &* +@all");
            fs::write(directory.join("users.acl"), format!("{}\n{admin}\n", acl.trim_end()))?;
            text.push_str("aclfile users.acl\n");
        }
        for line in &self.lines {
            let _ = writeln!(text, "{line}");
        }
        fs::write(directory.join("server.conf"), text)
    }

    pub(crate) const fn has_acl(&self) -> bool {
        self.acl.is_some()
    }
}

/// A value of a configuration line, whatever it holds.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            other => {
                let _ = write!(text, "\\x{other:02x}");
            }
        }
    }
    text + "\""
}

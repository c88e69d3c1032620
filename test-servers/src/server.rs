//! One server.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tempfile::TempDir;

use crate::{
    Builder, Flavor, Missing, Reply,
    builder::ADMIN,
    flavor::Program,
    port,
    process::{PATIENCE, Process, wait_until},
    resp,
};

/// How many ports to try before giving up: each may be taken by somebody else meanwhile.
const PORTS: u32 = 20;
const POLL: Duration = Duration::from_millis(2);

/// A running server, or one that was stopped and can be started again on its port. Dropping it ends
/// the server and removes what it wrote.
#[derive(Debug)]
pub struct Server {
    options: Builder,
    program: &'static Program,
    fake_time: Option<PathBuf>,
    port: u16,
    admin_password: String,
    /// Before the directory: the process must be gone when that is removed.
    process: Mutex<Option<Process>>,
    directory: TempDir,
}

/// Whether a restarted server still knows what it knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// As after an orderly restart with a snapshot.
    Kept,
    /// As after a crash without persistence.
    Lost,
}

/// Why a server did not start.
#[derive(Debug)]
struct PortTaken;

impl Server {
    /// Starts one with nothing special.
    ///
    /// # Errors
    /// Its program is nowhere.
    ///
    /// # Panics
    /// It does not start; its log is shown.
    pub fn start(flavor: Flavor) -> Result<Self, Missing> {
        Self::builder(flavor).start()
    }

    /// For one that is special.
    #[must_use]
    pub const fn builder(flavor: Flavor) -> Builder {
        Builder::new(flavor)
    }

    pub(crate) fn launch(
        options: Builder,
        program: &'static Program,
        fake_time: Option<PathBuf>,
    ) -> Self {
        let directory = tempfile::Builder::new().prefix("test-server-").tempdir();
        let directory = directory.expect("a private directory");
        let mut server = Self {
            options,
            program,
            fake_time,
            port: 0,
            admin_password: format!("{:016x}", RandomState::new().hash_one(())),
            process: Mutex::new(None),
            directory,
        };
        server.write_clock(0);
        #[cfg(feature = "tls")]
        if server.options.tls {
            crate::tls::write(server.directory.path()).expect("certificates can be made");
        }
        for _ in 0..PORTS {
            server.port = port::free();
            let written =
                server.options.write(server.directory.path(), server.port, &server.admin_password);
            written.expect("its configuration can be written");
            if server.begin().is_ok() {
                return server;
            }
        }
        panic!("{} found no free port {PORTS} times", server.flavor().name());
    }

    /// Which one it is.
    #[must_use]
    pub const fn flavor(&self) -> Flavor {
        self.options.flavor
    }

    /// Where it is, without a password.
    #[must_use]
    pub fn url(&self) -> String {
        if self.options.unix_socket {
            return format!("unix://{}", self.socket().display());
        }
        format!("{}://{}", self.scheme(), self.address())
    }

    const fn scheme(&self) -> &'static str {
        if self.options.tls { "rediss" } else { "redis" }
    }

    /// The certificate to trust it by, as PEM.
    ///
    /// # Panics
    /// It was not built with [`Builder::tls`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_pem(&self) -> String {
        fs::read_to_string(self.ca_file()).expect("a server that speaks TLS")
    }

    /// The file with that certificate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.path().join("ca.crt")
    }

    /// Where it is, for this user; everything but letters and digits is percent-encoded.
    #[must_use]
    pub fn url_with(&self, user: &str, password: &str) -> String {
        let (user, password) = (encoded(user), encoded(password));
        format!("{}://{user}:{password}@{}", self.scheme(), self.address())
    }

    /// Its port on the loopback interface.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its port with the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        port::loopback(self.port)
    }

    /// Its Unix socket, in a directory that only this user can enter.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    /// Its process.
    ///
    /// # Panics
    /// It is stopped.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running(Process::pid)
    }

    /// What it said so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.path().join("server.log")).unwrap_or_default()
    }

    /// Asks it something as an administrator, over a connection of its own.
    ///
    /// # Panics
    /// It does not answer within a minute.
    pub fn command(&self, arguments: &[&str]) -> Reply {
        self.try_command(arguments).unwrap_or_else(|error| {
            panic!("{} does not answer {arguments:?}: {error}", self.flavor().name())
        })
    }

    /// As [`command`](Self::command).
    ///
    /// # Errors
    /// It does not answer within a minute.
    pub fn try_command(&self, arguments: &[&str]) -> io::Result<Reply> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let authorized = match &self.options.password {
            _ if self.options.has_acl() => {
                resp::call(&stream, &["AUTH", ADMIN, &self.admin_password])?
            }
            Some(password) => resp::call(&stream, &["AUTH", password])?,
            None => Reply::Nil,
        };
        if authorized.is_error() {
            return Ok(authorized);
        }
        resp::call(&stream, arguments)
    }

    /// A value of its `INFO`, such as `used_memory`.
    #[must_use]
    pub fn info(&self, section: &str, key: &str) -> Option<String> {
        let text = self.command(&["INFO", section]).text();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| *known == key).map(|(_, value)| value.to_owned())
    }

    /// Sets its wall clock to this many seconds beside the real one, and returns once it goes by
    /// that. Not while it is paused.
    ///
    /// # Panics
    /// It was not built with [`Builder::fake_clock`], or does not answer.
    pub fn step_clock(&self, seconds: i64) {
        assert!(self.fake_time.is_some(), "a server with a clock of its own");
        self.write_clock(seconds);
        // Valkey takes the time once for all it does in one turn, and that turn may have begun.
        wait_until("the server goes by its new time", || {
            let real = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            let real = i64::try_from(real.as_secs()).expect("seconds of this age");
            let time = self.command(&["TIME"]).items()[0].int();
            (time - real - seconds).abs() < 5
        });
    }

    fn write_clock(&self, seconds: i64) {
        let (new, clock) = (self.path().join("clock.new"), self.path().join("clock"));
        // By a rename, so that nobody reads half of it.
        fs::write(&new, format!("{seconds:+}\n")).expect("a file in its directory");
        fs::rename(new, clock).expect("a file in its directory");
    }

    /// Stops it with SIGSTOP, and returns once it stands still.
    ///
    /// # Panics
    /// It is not running.
    pub fn pause(&self) {
        self.running(Process::pause).expect("its process is there");
    }

    /// Lets it go on after [`pause`](Self::pause).
    ///
    /// # Panics
    /// It is not running.
    pub fn resume(&self) {
        self.running(Process::resume).expect("its process is there");
    }

    /// Ends it with SIGKILL. [`start_again`](Self::start_again) starts it again.
    pub fn kill(&self) {
        self.process().take();
    }

    /// Shuts it down without a snapshot. [`start_again`](Self::start_again) starts it again.
    ///
    /// # Panics
    /// It does not end.
    pub fn stop(&self) {
        self.shut_down("NOSAVE");
    }

    /// Starts it again, on its port and with what it wrote to disk.
    ///
    /// # Panics
    /// It does not start, or somebody else has its port and keeps it.
    pub fn start_again(&self) {
        self.kill();
        wait_until("its port is free again", || self.begin().is_ok());
    }

    /// Ends it and starts it again.
    ///
    /// # Panics
    /// It does not end or does not start.
    pub fn restart(&self, data: Data) {
        match data {
            Data::Kept => self.shut_down("SAVE"),
            Data::Lost => {
                self.kill();
                self.forget();
            }
        }
        self.start_again();
    }

    fn shut_down(&self, how: &str) {
        self.resume();
        // It answers by closing the connection.
        let _ = self.try_command(&["SHUTDOWN", how]);
        let mut process = self.process();
        wait_until("it has shut down", || {
            process.as_mut().is_none_or(|process| process.ended().is_ok_and(|end| end.is_some()))
        });
        process.take();
    }

    /// Removes what it wrote to disk.
    fn forget(&self) {
        let gone = [fs::remove_file(self.path().join("dump.rdb"))]
            .into_iter()
            .chain([fs::remove_file(self.path().join("appendonly.aof"))])
            .chain([fs::remove_dir_all(self.path().join("appendonlydir"))]);
        for gone in gone {
            assert!(
                gone.as_ref()
                    .map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true),
                "cannot remove its data: {gone:?}"
            );
        }
    }

    /// Starts the process and waits until it answers.
    fn begin(&self) -> Result<(), PortTaken> {
        let mut command = self.program.command();
        command.arg(self.path().join("server.conf"));
        if self.options.sentinel {
            command.arg("--sentinel");
        }
        if let Some(library) = &self.fake_time {
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", self.path().join("clock"))
                // A step counts at once, for the wall clock and for nothing else.
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
        }
        let log = self.path().join("server.log");
        let said_before = self.log().len();
        let mut process = Process::start(command, self.path(), &log).expect("its program starts");
        let begun = Instant::now();
        loop {
            if process.ended().expect("a child of this process").is_some() {
                let log = self.log().split_off(said_before);
                assert!(is_about_the_port(&log), "{} did not start:\n{log}", self.flavor().name());
                return Err(PortTaken);
            }
            // By the socket in the private directory: nobody else answers there.
            if self.try_command(&["PING"]).is_ok_and(|reply| reply.text() == "PONG") {
                *self.process() = Some(process);
                return Ok(());
            }
            let waited = begun.elapsed();
            assert!(waited < PATIENCE, "{} does not answer:\n{}", self.flavor().name(), self.log());
            sleep(POLL);
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        act(self.process().as_ref().expect("the server is running"))
    }
}

fn is_about_the_port(log: &str) -> bool {
    log.contains("Address already in use") || log.contains("ailed listening on port")
}

/// Percent-encodes all but letters and digits.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

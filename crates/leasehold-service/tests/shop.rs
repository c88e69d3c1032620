//! The example service, started twice on one store: a job runs once at a time under load, a killed
//! instance holds up nobody for long, and SIGTERM ends it in order.
//!
//! Without its server the trial on Redis is *ignored*, visibly; where servers are required (`CI=true`
//! or `LEASEHOLD_REQUIRE_SERVERS=1`) it fails the run.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use leasehold::LockManager;
use libtest_mimic::{Arguments, Trial};

const UNDER_LOAD: &str = "a_job_runs_once_at_a_time_under_load_a_kill_and_a_sigterm";

fn main() {
    let trials = vec![
        Trial::test(format!("sqlite::{UNDER_LOAD}"), || {
            under_load(&Shop::on_sqlite());
            Ok(())
        }),
        #[cfg(feature = "redis")]
        on_redis(),
        Trial::test("a_wrong_configuration_prints_every_mistake_with_its_path", || {
            wrong_configuration(&Shop::on_sqlite());
            Ok(())
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

#[cfg(feature = "redis")]
fn on_redis() -> Trial {
    use test_servers::{Flavor, Server};
    let is_required = ["CI", "LEASEHOLD_REQUIRE_SERVERS"]
        .into_iter()
        .any(|name| std::env::var(name).is_ok_and(|set| set == "true" || set == "1"));
    let is_ignored = Flavor::Redis70.installed().is_err() && !is_required;
    let run = || {
        let server = Server::start(Flavor::Redis70).map_err(|missing| missing.to_string())?;
        under_load(&Shop::on_redis(&server));
        Ok(())
    };
    Trial::test(format!("redis::{UNDER_LOAD}"), run).with_ignored_flag(is_ignored)
}

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shop/locks.toml");
/// Far beyond what anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// What the processes share: a store, and a journal in a directory of their own.
struct Shop {
    directory: tempfile::TempDir,
    adapter: &'static str,
    url: String,
    /// In milliseconds; what a killed process held is free after it at the latest.
    ttl: &'static str,
}

impl Shop {
    fn on_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("locks.db").display());
        Self { directory, adapter: "sqlite", url, ttl: "10000" }
    }

    #[cfg(feature = "redis")]
    fn on_redis(server: &test_servers::Server) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Short, because nothing else tells the server that a process has died.
        Self { directory, adapter: "redis", url: server.url(), ttl: "2000" }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.env("SHOP_JOBS_ADAPTER", self.adapter).env("SHOP_JOBS_URL", &self.url);
        command.env("LEASEHOLD_ENTRIES__JOBS__TTL", self.ttl);
        command.env("SHOP_JOURNAL", self.directory.path().join("journal"));
        command.env_remove("LEASEHOLD_DEFAULT").env_remove("SHOP_LISTEN");
        command
    }

    fn load(&self, count: usize, addresses: &[&str]) -> Child {
        let count = count.to_string();
        let mut command = self.command();
        command.args(["load", &count]).args(addresses).stdout(Stdio::null());
        command.spawn().unwrap()
    }

    fn journal(&self) -> Vec<String> {
        let path = self.directory.path().join("journal");
        let text = fs::read_to_string(path).unwrap_or_default();
        // A last line that is being written has no end yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// Whether nobody holds and nobody waits.
    fn is_empty(&self) -> bool {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let survey = runtime.block_on(async {
            let builder = LockManager::builder().namespace("shop".parse()?);
            let manager = builder.connect(&self.url).await?;
            let survey = manager.survey().await?;
            manager.shutdown().await?;
            Ok::<_, leasehold::Error>(survey)
        });
        survey.unwrap().is_empty()
    }
}

struct Instance {
    child: Child,
    address: String,
    /// Kept open: it says a last word when it ends.
    _talk: BufReader<ChildStdout>,
}

impl Instance {
    fn start(shop: &Shop) -> Self {
        let mut command = shop.command();
        command.args(["serve", CONFIG]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut talk = BufReader::new(child.stdout.take().unwrap());
        talk.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { child, address, _talk: talk }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.pid()]).status().unwrap().success());
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, built as cargo builds the examples of this package.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/shop");
    assert!(program.exists(), "`cargo build -p leasehold-service --example shop` comes first");
    program
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        thread::yield_now();
    }
}

fn ended(child: &mut Child) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < LIMIT, "it does not end");
        thread::yield_now();
    }
}

/// Jobs never overlap: every beginning is followed by its end, but for the one of a killed process.
fn check(journal: &[String], killed: &str) {
    let mut running: Option<&str> = None;
    let mut cut_off = 0;
    for line in journal {
        match line.split_once(' ').unwrap() {
            ("begin", pid) => {
                if let Some(other) = running.replace(pid) {
                    assert_eq!(other, killed, "two jobs at once");
                    cut_off += 1;
                }
            }
            ("end", pid) => assert_eq!(running.take(), Some(pid), "an end without its beginning"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(running, None, "the last job came to its end");
    assert_eq!(cut_off, 1, "the killed instance was in the middle of a job");
}

fn under_load(shop: &Shop) {
    let (mut one, mut other) = (Instance::start(shop), Instance::start(shop));
    let mut first = shop.load(150, &[&one.address, &other.address]);
    let killed = one.pid();
    let begun = format!("begin {killed}");
    until("both have done jobs", || {
        let journal = shop.journal();
        let ends = |pid: &str| journal.iter().filter(|line| **line == format!("end {pid}")).count();
        ends(&killed) > 5 && ends(&other.pid()) > 5
    });
    // Stopped in the middle of a job, so that it is killed there.
    until("it is stopped within a job", || {
        one.signal("-STOP");
        let within = shop.journal().last() == Some(&begun);
        if !within {
            one.signal("-CONT");
        }
        within
    });
    one.signal("-KILL");
    assert!(!ended(&mut one.child).success());
    assert!(ended(&mut first).success(), "the other instance does all the jobs");

    let before = shop.journal().len();
    let mut second = shop.load(usize::MAX, &[&other.address]);
    until("the load has come", || shop.journal().len() > before + 10);
    other.signal("-TERM");
    assert!(ended(&mut other.child).success(), "it shuts down clean");
    assert!(!ended(&mut second).success(), "nobody answers any more");
    check(&shop.journal(), &killed);
    // What the killed one waited for goes within the liveness limit of waiters.
    until("nothing is left in the store", || shop.is_empty());
}

fn wrong_configuration(shop: &Shop) {
    let config = shop.directory.path().join("locks.toml");
    let text = fs::read_to_string(CONFIG).unwrap().replace("ttl = 10000", "ttl = 0\nretry = 1");
    fs::write(&config, text).unwrap();
    let mut command = shop.command();
    command.env_remove("SHOP_JOBS_URL").env_remove("LEASEHOLD_ENTRIES__JOBS__TTL");
    command.env("LEASEHOLD_DEFAULT", "locla").arg("serve").arg(&config);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "default: no entry is called \"locla\"; there are jobs, local (LEASEHOLD_DEFAULT \
             overrides the file)",
            "entries.jobs.connection.url: the environment variable SHOP_JOBS_URL is not set",
            "entries.jobs.retry: unknown field; there are adapter, connection, enabled, \
             namespace, ttl",
            "entries.jobs.ttl: 0 is not in 1..=2147483647",
        ]
    );
}

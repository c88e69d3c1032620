//! The example service, started twice on one store: a job runs once at a time under load, a killed
//! instance holds up nobody, and SIGTERM ends it in order.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use leasehold::LockManager;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shop/locks.toml");
/// Far beyond what anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

struct Instance {
    child: Child,
    address: String,
    /// Kept open: it says a last word when it ends.
    _talk: BufReader<ChildStdout>,
}

impl Instance {
    fn start(place: &Path) -> Self {
        let mut child = shop(place).args(["serve", CONFIG]).stdout(Stdio::piped()).spawn().unwrap();
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

fn shop(place: &Path) -> Command {
    let mut shop = Command::new(program());
    shop.env("SHOP_JOBS_URL", format!("sqlite:{}", place.join("locks.db").display()));
    shop.env("SHOP_JOURNAL", place.join("journal")).env_remove("SHOP_JOBS_ADAPTER");
    shop.env_remove("LEASEHOLD_DEFAULT").env_remove("SHOP_LISTEN");
    shop
}

fn load(place: &Path, count: usize, addresses: &[&str]) -> Child {
    let count = count.to_string();
    shop(place).args(["load", &count]).args(addresses).stdout(Stdio::null()).spawn().unwrap()
}

fn journal(place: &Path) -> Vec<String> {
    let text = fs::read_to_string(place.join("journal")).unwrap_or_default();
    // A last line that is being written has no end yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
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

#[test]
fn a_job_runs_once_at_a_time_under_load_a_kill_and_a_sigterm() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (mut one, mut other) = (Instance::start(place), Instance::start(place));
    let mut first = load(place, 150, &[&one.address, &other.address]);
    let killed = one.pid();
    let begun = format!("begin {killed}");
    until("both have done jobs", || {
        let journal = journal(place);
        let ends = |pid: &str| journal.iter().filter(|line| **line == format!("end {pid}")).count();
        ends(&killed) > 5 && ends(&other.pid()) > 5
    });
    // Stopped in the middle of a job, so that it is killed there.
    until("it is stopped within a job", || {
        one.signal("-STOP");
        let within = journal(place).last() == Some(&begun);
        if !within {
            one.signal("-CONT");
        }
        within
    });
    one.signal("-KILL");
    assert!(!ended(&mut one.child).success());
    assert!(ended(&mut first).success(), "the other instance does all the jobs");

    let before = journal(place).len();
    let mut second = load(place, usize::MAX, &[&other.address]);
    until("the load has come", || journal(place).len() > before + 10);
    other.signal("-TERM");
    assert!(ended(&mut other.child).success(), "it shuts down clean");
    assert!(!ended(&mut second).success(), "nobody answers any more");
    check(&journal(place), &killed);

    let url = format!("sqlite:{}", place.join("locks.db").display());
    let held = pollster::block_on(async {
        let manager = LockManager::builder().namespace("shop".parse()?).connect(&url).await?;
        let survey = manager.survey().await?;
        manager.shutdown().await?;
        Ok::<_, leasehold::Error>(survey)
    });
    assert!(held.unwrap().is_empty(), "nothing is left in the store");
}

#[test]
fn a_wrong_configuration_prints_every_mistake_with_its_path() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("locks.toml");
    let text = fs::read_to_string(CONFIG).unwrap().replace("ttl = 10000", "ttl = 0\nretry = 1");
    fs::write(&config, text).unwrap();
    let mut shop = shop(place.path());
    shop.env_remove("SHOP_JOBS_URL").env("LEASEHOLD_DEFAULT", "locla").arg("serve").arg(&config);
    let output = shop.output().unwrap();
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

//! The program on a server: what differs from a store that proves the death of processes.

#[path = "program/common.rs"]
mod common;
#[path = "redis/fleet.rs"]
mod fleet;
#[path = "redis/guardian.rs"]
mod guardian;
#[path = "program/session.rs"]
mod session;
#[path = "redis/signals.rs"]
mod signals;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use common::{SECTION, Store, eventually, lives, stderr, stdout};
use libtest_mimic::Trial;
use rustix::process::Signal;
use serde_json::Value;
use test_servers::{Flavor, Server};

/// A trial on a server of its own.
type Test = fn(&Server, &Store);

fn main() -> ExitCode {
    let tests: [(&str, Test); 8] = [
        ("two_take_turns", two_take_turns),
        ("the_group_of_a_killed_run_is_ended_and_the_ttl_frees_the_lock", killed_run),
        ("a_killed_waiter_delays_by_its_liveness_limit_at_most", killed_waiter),
        ("a_server_that_is_stopped_ends_the_command_in_time", stopped_server),
        ("a_server_without_its_data_is_a_lost_lease", lost_data),
        ("doctor_tells_what_is_wrong", doctor),
        ("no_password_is_told", no_password),
        ("a_success_is_recorded_for_all_machines", success),
    ];
    let mut trials = Vec::new();
    for flavor in Flavor::ALL {
        let missing = flavor.installed().is_err();
        for (name, test) in tests {
            let run = move || {
                let server = Server::start(flavor).expect("it is installed");
                test(&server, &Store::on_server(&server.url(), "t"));
                Ok(())
            };
            trials.push(
                Trial::test(format!("{}::{name}", flavor.name()), run).with_ignored_flag(missing),
            );
        }
    }
    let signals = signals::ALL.map(|(name, test)| ("signals", name, test));
    let guardian = guardian::ALL.map(|(name, test)| ("guardian", name, test));
    for (theme, name, test) in signals.into_iter().chain(guardian) {
        let on_server = move || {
            let server = Server::start(Flavor::Redis70).expect("it is installed");
            test(&Store::on_server(&server.url(), "t"));
        };
        let missing = Flavor::Redis70.installed().is_err();
        trials.push(
            common::trial(&format!("{theme}::server::{name}"), on_server)
                .with_ignored_flag(missing),
        );
        let on_file = move || test(&Store::new());
        trials.push(common::trial(&format!("{theme}::sqlite::{name}"), on_file));
    }
    for (name, test) in fleet::ALL {
        let missing = Flavor::Redis70.installed().is_err();
        trials.push(common::trial(&format!("fleet::{name}"), test).with_ignored_flag(missing));
    }
    common::run(trials)
}

fn two_take_turns(_: &Server, store: &Store) {
    let mut first = store.section(&["n"]);
    first.is_in();
    let mut second = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    let left = store.holder()["ttl_left_ms"].as_u64();
    assert!(left > Some(30_000) && left <= Some(60_000), "the default TTL: {left:?}");
    assert!(!second.has_begun());
    assert_eq!(first.finish(), Some(0));
    second.is_in();
    assert_eq!(second.finish(), Some(0));
    store.wait_for_counts(0, 0);
}

fn killed_run(_: &Server, store: &Store) {
    let killed = store.section(&["n"]);
    let command = killed.is_in();
    killed.signal(Signal::KILL);
    eventually("without --ttl, too, the command is ended", || !lives(command));
    assert!(store.output(&["break", "n", "--yes"]).status.success());
    let killed = store.section(&["n", "--ttl", "2s"]);
    let command = killed.is_in();
    let start = Instant::now();
    killed.signal(Signal::KILL);
    let mut next = store.section(&["n"]);
    next.is_in();
    assert!(!lives(command), "the lock has passed on while the command ran");
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    assert_eq!(next.finish(), Some(0));
}

fn killed_waiter(_: &Server, store: &Store) {
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let waiter = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    let mut last = store.section(&["n"]);
    store.wait_for_counts(1, 2);
    waiter.signal(Signal::KILL);
    let start = Instant::now();
    assert_eq!(holder.finish(), Some(0));
    last.is_in();
    // The liveness limit and a claim, and what a busy machine adds.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(last.finish(), Some(0));
}

fn stopped_server(server: &Server, store: &Store) {
    let ttl = Duration::from_secs(3);
    let mut section = store.script(&["n", "--ttl", "3s"], "trap '' TERM; echo in $$; read line");
    let command = section.is_in();
    let start = Instant::now();
    server.pause();
    eventually("the command is killed", || !lives(command));
    assert!(start.elapsed() < ttl, "the lock could have passed on; it took {:?}", start.elapsed());
    server.resume();
    assert_eq!(section.end().code(), Some(79));
    let next = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
}

fn lost_data(server: &Server, store: &Store) {
    let mut section = store.script(&["n", "--ttl", "3s"], SECTION);
    section.is_in();
    server.command(&["FLUSHALL"]);
    assert_eq!(section.end().code(), Some(79));
    let errors = section.errors();
    assert!(errors.starts_with("leasehold: mutex \"n\": the lease was lost"), "{errors}");
}

fn findings(store: &Store, url: &str, code: i32) -> Vec<Value> {
    let output = store.output(&["doctor", "--json", "--store", url]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["findings"].as_array().unwrap().clone()
}

fn doctor(server: &Server, store: &Store) {
    let url = store.url();
    let looked_at: Vec<_> = findings(store, &url, 0)
        .iter()
        .map(|one| one["what"].as_str().unwrap().to_owned())
        .collect();
    let all = [
        "server",
        "role",
        "persistence",
        "eviction",
        "memory",
        "rules",
        "pushes",
        "clock",
        "round trip",
        "hand-off",
    ];
    assert_eq!(looked_at, all);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let refused = findings(store, &url, 1);
    assert!(refused[0]["found"].as_str().unwrap().contains("allkeys-lru"), "{refused:?}");
    let allowed = findings(store, &format!("{url}&allow_eviction=true"), 1);
    let bad: Vec<_> = allowed.iter().filter(|one| one["healthy"] == false).collect();
    assert!(bad.len() == 1 && bad[0]["what"] == "eviction", "{bad:?}");
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&[
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">pw",
        "~t*",
        "resetchannels",
        "&t*",
        "+@all",
        "-zadd",
    ]);
    let lacking = findings(store, &format!("{}?prefix=t", server.url_with("app", "pw")), 1);
    let rules = lacking.iter().find(|one| one["what"] == "rules").unwrap();
    assert_eq!(rules["found"], "missing: +zadd", "{lacking:?}");
    assert_eq!(rules["healthy"], false);
    // A server that has just started is taken for one that has lost its data.
    let guard = |ms: &str, code| {
        let findings = findings(store, &format!("{url}&restart_guard_ms={ms}"), code);
        let about = |one: &Value| one["what"] == "restart guard";
        findings.into_iter().find(about).expect("something about the guard")
    };
    let held_back = guard("3600000", 1);
    assert_eq!(held_back["healthy"], false);
    assert!(held_back["found"].as_str().unwrap().contains("has lost its data"), "{held_back}");
    let over = guard("1", 0);
    assert_eq!(over["found"], "nothing is granted for 1ms after a loss of data");
    let nobody = findings(store, "redis://127.0.0.1:1", 1);
    assert_eq!(nobody.len(), 1);
    assert_eq!(nobody[0]["what"], "connection");
}

fn no_password(server: &Server, store: &Store) {
    server.command(&[
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">s#e@c/r:e%t",
        "~t*",
        "resetchannels",
        "&t*",
        "+@all",
    ]);
    let file = store.dir().join("password");
    std::fs::write(&file, "s#e@c/r:e%t\n").unwrap();
    let by_file =
        format!("{}?prefix=t&username=app&password_file={}", server.url(), file.display());
    for url in [format!("{}?prefix=t", server.url_with("app", "s#e@c/r:e%t")), by_file] {
        for args in [
            &["run", "n", "-v", "--", "true"][..],
            &["list", "-v"],
            &["list", "--json"],
            &["doctor"],
            &["doctor", "--json"],
            &["bench", "-v", "--time", "50ms", "--json"],
            &["release", "-v", "lh1/default/mutex/n/wrong"],
        ] {
            let output = store.output(&[&["--store", &*url], args].concat());
            assert!(matches!(output.status.code(), Some(0 | 79)), "{args:?}: {output:?}");
            let said = stdout(&output) + &stderr(&output);
            assert!(!said.contains("s#e") && !said.contains("s%23e"), "{said}");
        }
    }
    let wrong = format!("{}?prefix=t", server.url_with("app", "hunter2"));
    let output = store.output(&["run", "n", "--store", &wrong, "--", "true"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(!stderr(&output).contains("hunter2"), "{output:?}");
}

fn success(_: &Server, store: &Store) {
    let run =
        || stdout(&store.output(&["run", "n", "--at-most-once-per", "1h", "--", "echo", "ran"]));
    assert_eq!(run(), "ran\n");
    assert_eq!(run(), "");
}

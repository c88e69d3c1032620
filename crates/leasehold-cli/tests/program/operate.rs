//! What an operator does: wait, watch, cancel, break, bench.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use crate::common::{PROGRAM, Section, Store, eventually, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

trials! {
    wait_ends_when_nobody_holds_and_acquires_nothing,
    wait_for_any_permit_or_all,
    a_signal_ends_wait,
    cancel_rejects_those_who_wait_and_no_holder,
    break_says_whom_it_robs_and_needs_a_yes,
    several_kinds_of_one_name_are_told_apart,
    watch_tells_each_change,
    watch_sees_a_store_that_is_not_there_yet_and_ends_with_its_reader,
    bench_measures_and_leaves_nothing,
}

fn wait_ends_when_nobody_holds_and_acquires_nothing() {
    let store = Store::new();
    assert_eq!(store.output(&["wait", "n"]).status.code(), Some(0), "no store, no holder");
    assert!(!store.database().exists());
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let mut watcher = Section::start(store.leasehold(&["wait", "n"]));
    let refused = store.output(&["wait", "n", "--wait", "200ms"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    assert_eq!(stderr(&refused), "leasehold: mutex \"n\": not free within 200ms\n");
    assert_eq!(store.output(&["wait", "n", "--no-wait", "-E", "9"]).status.code(), Some(9));
    assert_eq!(store.counts(), (1, 0), "who only waits is not in the queue");
    assert!(watcher.process.try_wait().unwrap().is_none());
    assert_eq!(holder.finish(), Some(0));
    assert_eq!(watcher.end().code(), Some(0));
    assert_eq!(store.output(&["wait", "n"]).status.code(), Some(0));
}

fn wait_for_any_permit_or_all() {
    let store = Store::new();
    let ticket = store.ticket(&["n", "--permits", "2", "--ttl", "10m"]);
    assert_eq!(store.output(&["wait", "n", "--any"]).status.code(), Some(0));
    assert_eq!(store.output(&["wait", "n", "--no-wait"]).status.code(), Some(75));
    assert!(store.output(&["release", &ticket]).status.success());
    assert_eq!(store.output(&["wait", "n", "--no-wait"]).status.code(), Some(0));
}

fn a_signal_ends_wait() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let mut watcher = Section::start(store.leasehold(&["wait", "n", "-v"]));
    eventually("it waits", || store.counts() == (1, 0) && clients(&store) == 2);
    watcher.signal(Signal::TERM);
    assert_eq!(watcher.end().code(), Some(143));
    assert_eq!(holder.finish(), Some(0));
}

/// How many clients the store has.
fn clients(store: &Store) -> usize {
    fs::read_dir(store.dir().join("locks.db.d/clients"))
        .map_or(0, |entries| entries.flatten().count())
}

fn cancel_rejects_those_who_wait_and_no_holder() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let mut waiters = [store.section(&["n"]), store.section(&["n"])];
    store.wait_for_counts(1, 2);
    let output = store.output(&["cancel", "n", "--reason", "called off"]);
    assert_eq!(
        (output.status.code(), &*stdout(&output)),
        (Some(0), "mutex \"n\": 2 waiters rejected\n")
    );
    for waiter in &mut waiters {
        assert_eq!(waiter.end().code(), Some(75));
        assert_eq!(waiter.errors(), "leasehold: mutex \"n\": cancelled: called off\n");
    }
    assert_eq!(store.counts(), (1, 0));
    assert_eq!(holder.finish(), Some(0));
    let nobody = store.output(&["cancel", "n"]);
    assert_eq!(
        (nobody.status.code(), &*stderr(&nobody)),
        (Some(1), "leasehold: \"n\": not in use\n")
    );
}

fn break_says_whom_it_robs_and_needs_a_yes() {
    let store = Store::new();
    let mut holder = store.section(&["n", "--label", "work"]);
    holder.is_in();
    let mut waiter = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    let asked = store.output(&["break", "n"]);
    assert_eq!(asked.status.code(), Some(64));
    let (text, pid) = (stdout(&asked), holder.process.id());
    assert!(text.starts_with(&format!("mutex \"n\": would rob pid {pid} on ")), "{text}");
    assert!(text.contains("(work), who has held it for ") && text.contains("would be rejected"));
    assert!(stderr(&asked).ends_with("nothing was destroyed; say --yes to do it\n"));
    assert_eq!(store.counts(), (1, 1));
    let broken = store.output(&["break", "n", "--yes", "--reason", "host is gone"]);
    assert!(broken.status.success());
    assert!(stdout(&broken).contains("robs pid "), "{broken:?}");
    assert_eq!(holder.end().code(), Some(79));
    assert_eq!(waiter.end().code(), Some(75));
    let errors = waiter.errors();
    assert!(errors.contains("host is gone"), "{errors}");
    assert_eq!(store.output(&["break", "n", "--yes"]).status.code(), Some(1), "nobody is left");
}

fn several_kinds_of_one_name_are_told_apart() {
    let store = Store::new();
    let ticket = store.ticket(&["n", "--ttl", "10m"]);
    store.ticket(&["n", "--shared", "--ttl", "10m"]);
    for command in [&["show", "n"][..], &["cancel", "n"], &["break", "n", "--yes"], &["wait", "n"]]
    {
        let output = store.output(command);
        assert_eq!(output.status.code(), Some(64), "{command:?}");
        assert!(
            stderr(&output).contains("is in use as mutex and as rw-lock; say which with --kind")
        );
    }
    assert!(store.output(&["break", "n", "--kind", "rw-lock", "--yes"]).status.success());
    assert!(store.output(&["release", &ticket]).status.success(), "the other one stays");
    let typo = store.output(&["show", "n", "--kind", "mutx"]);
    assert!(stderr(&typo).contains("'mutex'"), "{typo:?}");
}

fn watch_tells_each_change() {
    let store = Store::new();
    let mut holder = store.section(&["n", "--label", "first"]);
    holder.is_in();
    let mut watch = Section::start(store.leasehold(&["watch", "n", "--json", "--every", "20ms"]));
    let event = |watch: &Section| {
        let line: Value = serde_json::from_str(&watch.line().expect("a line")).unwrap();
        (line["event"].as_str().unwrap().to_owned(), line["pid"].as_u64().unwrap())
    };
    let first = u64::from(holder.process.id());
    assert_eq!(event(&watch), ("holds".to_owned(), first));
    let mut waiter = store.section(&["n"]);
    let second = u64::from(waiter.process.id());
    assert_eq!(event(&watch), ("queued".to_owned(), second));
    assert_eq!(holder.finish(), Some(0));
    assert_eq!(event(&watch), ("ended".to_owned(), first));
    assert_eq!(event(&watch), ("granted".to_owned(), second));
    assert_eq!(waiter.finish(), Some(0));
    assert_eq!(event(&watch), ("ended".to_owned(), second));
    watch.signal(Signal::INT);
    assert_eq!(watch.end().code(), Some(130));
}

fn watch_sees_a_store_that_is_not_there_yet_and_ends_with_its_reader() {
    let store = Store::new();
    let script = format!("'{PROGRAM}' watch --all --every 20ms; echo $? >&2");
    let mut shell = Command::new("sh");
    store.surround(&mut shell).args(["-c", &format!("{{ {script}; }} | head -n 1")]);
    let mut watch = Section::start(shell);
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let line = watch.line().expect("a line");
    assert!(line.contains("default/mutex \"n\": granted to pid "), "{line}");
    // The next line finds nobody who reads.
    assert_eq!(holder.finish(), Some(0));
    watch.end();
    assert_eq!(watch.errors(), "0\n");
}

fn bench_measures_and_leaves_nothing() {
    let store = Store::new();
    let plot = store.dir().join("plot.svg");
    let plot_arg = plot.to_str().unwrap();
    let args = ["bench", "--time", "150ms", "--clients", "3", "--json", "--plot", plot_arg];
    let output = store.output(&args);
    assert!(output.status.success(), "{output:?}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    for figure in
        ["alone_pairs_per_s", "apart_pairs_per_s", "together_pairs_per_s", "gap_ms_median"]
    {
        assert!(figures[figure].as_f64() > Some(0.0), "{figure}: {figures}");
    }
    assert!(fs::read_to_string(plot).unwrap().starts_with("<svg"));
    assert_eq!(stdout(&store.output(&["list", "--all"])), "");
    let start = Instant::now();
    let mut long = Section::start(store.leasehold(&["bench", "--time", "1h"]));
    eventually("it runs", || !stdout(&store.output(&["list", "--all"])).is_empty());
    long.signal(Signal::TERM);
    assert_eq!(long.end().code(), Some(143));
    assert!(start.elapsed() < Duration::from_secs(60));
    eventually("nothing is held", || stdout(&store.output(&["list", "--all"])).is_empty());
}

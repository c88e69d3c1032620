//! The lease is lost while the command runs: its whole group is ended, in time.

use std::{
    fs,
    io::{BufRead, BufReader},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::common::{PROGRAM, SECTION, Store, eventually, lives};
use leasehold_core::{Backend, Destroyed, LockId, LockKind, LockName, Namespace};
use leasehold_sqlite::SqliteBackend;
use rustix::process::{Signal, kill_process_group};

trials! {
    a_destroyed_lock_ends_the_command,
    a_grace_that_no_clock_can_count_ends_the_command_all_the_same,
    who_ignores_term_is_killed_after_the_grace_with_the_whole_pipeline,
    those_left_behind_by_a_polite_command_get_their_grace_and_end_too,
    a_lease_is_renewed_for_longer_than_its_ttl,
    a_run_that_was_stopped_past_its_ttl_kills_its_command_first_of_all,
    a_holder_that_was_stopped_with_its_command_loses_its_grant_by_ttl_alone_and_learns_of_it,
    a_lease_that_its_command_gave_back_is_lost,
    a_store_that_does_not_answer_ends_the_command_before_the_lock_can_pass_on,
    a_store_that_answers_again_in_time_loses_nothing,
}

fn destroy(store: &Store, name: &str) {
    let backend = SqliteBackend::from_url(&store.url()).unwrap();
    let name = LockName::new(name).unwrap();
    let lock = Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(backend.destroy(&lock, None, "by the test")).unwrap();
    assert!(matches!(answer, Destroyed::Now { .. }));
    runtime.block_on(backend.close()).unwrap();
}

/// A command that hears TERM and says so.
const POLITE: &str = "trap 'echo told; exit 0' TERM; echo in $$; read line";

/// A pipeline whose three processes ignore TERM.
const STUBBORN: &str = "trap '' TERM; exec 3<&0 4>&1; \
    sh -c 'echo in $$ >&4; read line' <&3 | sh -c 'echo in $$ >&4; cat' & \
    echo in $$; read line; wait";

fn a_destroyed_lock_ends_the_command() {
    for ttl in [&[][..], &["--ttl", "30s"]] {
        let store = Store::new();
        let mut section = store.script(&[&["n"], ttl].concat(), POLITE);
        section.is_in();
        destroy(&store, "n");
        assert_eq!(section.line().as_deref(), Some("told"));
        assert_eq!(section.end().code(), Some(79), "{ttl:?}");
        let errors = section.errors();
        assert!(errors.starts_with("leasehold: mutex \"n\": the lease was lost"), "{errors}");
        assert!(errors.ends_with("; the command was ended\n"), "{errors}");
        assert_eq!(errors.matches("mutex").count(), 1, "{errors}");
    }
}

fn a_grace_that_no_clock_can_count_ends_the_command_all_the_same() {
    let store = Store::new();
    let mut section = store.script(&["n", "--grace", "18000000000000000000s"], POLITE);
    section.is_in();
    destroy(&store, "n");
    assert_eq!(section.line().as_deref(), Some("told"));
    assert_eq!(section.end().code(), Some(79));
}

fn who_ignores_term_is_killed_after_the_grace_with_the_whole_pipeline() {
    let store = Store::new();
    let mut section = store.script(&["n", "--grace", "400ms"], STUBBORN);
    let group = [section.is_in(), section.is_in(), section.is_in()];
    let start = Instant::now();
    destroy(&store, "n");
    assert_eq!(section.end().code(), Some(79));
    assert!(start.elapsed() >= Duration::from_millis(400), "no grace was given");
    for pid in group {
        eventually("a process of the pipeline ends", || !lives(pid));
    }
}

fn those_left_behind_by_a_polite_command_get_their_grace_and_end_too() {
    let store = Store::new();
    let script = "exec 3<&0; \
                  sh -c 'trap \"echo late\" TERM; echo in $$; read line; read line' <&3 & \
                  trap 'exit 0' TERM; echo in $$; read line";
    let mut section = store.script(&["n", "--grace", "300ms"], script);
    let pids = [section.is_in(), section.is_in()];
    destroy(&store, "n");
    assert_eq!(section.line().as_deref(), Some("late"));
    assert_eq!(section.end().code(), Some(79));
    for pid in pids {
        eventually("a process of the group ends", || !lives(pid));
    }
}

fn a_lease_is_renewed_for_longer_than_its_ttl() {
    let store = Store::new();
    // So long that a busy machine renews it in time.
    let mut section = store.section(&["n", "--ttl", "3s"]);
    section.is_in();
    let refused = store.output(&["run", "n", "--wait", "7s", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    assert!(store.list()[0]["holders"][0]["ttl_left_ms"].as_u64() <= Some(3000));
    assert_eq!(section.finish(), Some(0));
}

fn a_run_that_was_stopped_past_its_ttl_kills_its_command_first_of_all() {
    let store = Store::new();
    let mut stopped = store.script(&["n", "--ttl", "1s"], "trap '' TERM; echo in $$; read line");
    let command = stopped.is_in();
    stopped.signal(Signal::STOP);
    // It gets in because the TTL has run out.
    let next = store.section(&["n"]);
    next.is_in();
    assert!(lives(command), "a stopped program can do nothing");
    let start = Instant::now();
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.end().code(), Some(79));
    assert!(!lives(command));
    assert!(start.elapsed() < Duration::from_secs(2), "there is no grace past the deadline");
}

fn a_holder_that_was_stopped_with_its_command_loses_its_grant_by_ttl_alone_and_learns_of_it() {
    let store = Store::new();
    let ttl = Duration::from_secs(2);
    let start = Instant::now();
    let script = "trap '' TERM; echo in $$; read line";
    let mut stopped = store.script(&["n", "--ttl", "2s"], script);
    let command = stopped.is_in();
    stopped.signal(Signal::STOP);
    kill_process_group(command, Signal::STOP).unwrap();
    let mut next = store.section(&["n"]);
    next.is_in();
    assert!(start.elapsed() >= ttl, "the grant was over before its TTL");
    assert!(lives(command), "a stopped program can do nothing");
    kill_process_group(command, Signal::CONT).unwrap();
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.end().code(), Some(79));
    assert!(!lives(command));
    assert!(stopped.errors().ends_with("; the command was ended\n"));
    assert_eq!(store.counts(), (1, 0), "the late one takes nothing from who came next");
    assert_eq!(next.finish(), Some(0));
}

fn a_lease_that_its_command_gave_back_is_lost() {
    for ttl in [&[][..], &["--ttl", "1s"]] {
        let store = Store::new();
        // It may be told before `release` has come back. The shell would say of `sleep` that it was
        // terminated.
        let script = format!(
            "exec 2>/dev/null; trap told=yes TERM; '{PROGRAM}' release; echo $?
            until test $told; do sleep 0.02; done; echo told"
        );
        let mut section = store.script(&[&["n"], ttl].concat(), &script);
        assert_eq!(section.line().as_deref(), Some("0"));
        assert_eq!(section.line().as_deref(), Some("told"), "{ttl:?}");
        assert_eq!(section.end().code(), Some(79), "{ttl:?}");
        assert!(section.errors().starts_with("leasehold: mutex \"n\": the lease was lost: "));
    }
}

fn a_store_that_does_not_answer_ends_the_command_before_the_lock_can_pass_on() {
    let store = Store::new();
    let ttl = Duration::from_secs(3);
    let mut section = store.script(&["n", "--ttl", "3s"], "trap '' TERM; echo in $$; read line");
    let command = section.is_in();
    // So that the deadline to be kept is not that of the grant.
    eventually("it was renewed", || {
        let holder = store.holder();
        holder["held_for_ms"].as_u64() > Some(1000) && holder["ttl_left_ms"].as_u64() > Some(2000)
    });
    let blocked = Blocked::new(&store);
    let start = Instant::now();
    eventually("the command is killed", || !lives(command));
    assert!(start.elapsed() < ttl, "the lock could have passed on; it took {:?}", start.elapsed());
    drop(blocked);
    assert_eq!(section.end().code(), Some(79));
    let errors = section.errors();
    assert!(errors.contains("the lease could not be renewed in time"), "{errors}");
    let next = store.output(&["run", "n", "--wait", "10s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
}

fn a_store_that_answers_again_in_time_loses_nothing() {
    let store = Store::new();
    let mut section = store.script(&["n", "--ttl", "15s", "--grace", "100ms"], SECTION);
    section.is_in();
    let blocked = Blocked::new(&store);
    let mut errors = BufReader::new(section.process.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "leasehold: warning: mutex \"n\": the lease cannot be renewed now\n");
    drop(blocked);
    eventually("it is renewed", || store.holder()["ttl_left_ms"].as_u64() > Some(12_000));
    assert_eq!(section.finish(), Some(0));
}

/// Nobody can use the store while this lives, as if a process were stopped inside a transaction:
/// the lock around transactions is on a file beside the database.
struct Blocked {
    _locked: Vec<fs::File>,
}

impl Blocked {
    fn new(store: &Store) -> Self {
        let side = store.database().with_extension("db.d");
        let files: Vec<_> = fs::read_dir(side)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| {
                let file = fs::File::options().read(true).write(true).open(entry.path()).unwrap();
                file.lock().unwrap();
                file
            })
            .collect();
        assert!(!files.is_empty(), "there is a lock around transactions");
        Self { _locked: files }
    }
}

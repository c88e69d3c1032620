//! kill -9 of the program, as holder and as waiter.

use std::time::{Duration, Instant};

use crate::common::{Store, eventually, lives, stderr};
use rustix::process::{Signal, kill_process};

trials! {
    the_lock_is_held_until_the_command_of_a_killed_run_has_ended,
    and_until_those_who_inherited_it_have_ended,
    with_close_the_lock_ends_with_run,
    a_killed_waiter_delays_nobody,
    a_killed_command_frees_the_lock,
    reports_answer_while_a_process_is_stopped_inside_the_store,
}

/// Three times what a crash may cost (200 ms), for busy machines.
const AT_ONCE: Duration = Duration::from_millis(600);

fn the_lock_is_held_until_the_command_of_a_killed_run_has_ended() {
    let store = Store::new();
    let mut killed = store.section(&["n"]);
    let command = killed.is_in();
    let mut next = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().code(), None);
    let refused = store.output(&["run", "n", "--wait", "700ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "{}", stderr(&refused));
    assert!(!next.has_begun(), "the next is in while the command of the killed one runs");
    assert!(lives(command));
    let ended = Instant::now();
    killed.go_on();
    next.is_in();
    assert!(ended.elapsed() < AT_ONCE, "it took {:?}", ended.elapsed());
    assert_eq!(next.finish(), Some(0));
}

fn and_until_those_who_inherited_it_have_ended() {
    let store = Store::new();
    let script = "exec 3<&0; sh -c 'echo in $$; read line' <&3 & wait";
    let mut killed = store.script(&["n"], script);
    let grandchild = killed.is_in();
    killed.signal(Signal::KILL);
    killed.end();
    let refused = store.output(&["run", "n", "--wait", "300ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "{}", stderr(&refused));
    killed.go_on();
    eventually("the grandchild ends", || !lives(grandchild));
    let output = store.output(&["run", "n", "--wait", "10s", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
}

fn with_close_the_lock_ends_with_run() {
    let store = Store::new();
    let killed = store.section(&["n", "--close"]);
    let command = killed.is_in();
    let mut next = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    let start = Instant::now();
    killed.signal(Signal::KILL);
    next.is_in();
    assert!(start.elapsed() < AT_ONCE, "it took {:?}", start.elapsed());
    assert!(lives(command), "the command was promised nothing and goes on");
    assert_eq!(next.finish(), Some(0));
}

fn a_killed_waiter_delays_nobody() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let killed: Vec<_> = (1..=3)
        .map(|waiters| {
            let waiter = store.section(&["n"]);
            store.wait_for_counts(1, waiters);
            waiter
        })
        .collect();
    let mut last = store.section(&["n"]);
    store.wait_for_counts(1, 4);
    for mut waiter in killed {
        waiter.signal(Signal::KILL);
        waiter.end();
    }
    let start = Instant::now();
    assert_eq!(holder.finish(), Some(0));
    last.is_in();
    assert!(start.elapsed() < AT_ONCE, "it took {:?}", start.elapsed());
    assert_eq!(last.finish(), Some(0));
}

fn a_killed_command_frees_the_lock() {
    let store = Store::new();
    let mut section = store.section(&["n"]);
    let command = section.is_in();
    let mut next = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    kill_process(command, Signal::KILL).unwrap();
    assert_eq!(section.end().code(), Some(137));
    next.is_in();
    assert_eq!(next.finish(), Some(0));
}

fn reports_answer_while_a_process_is_stopped_inside_the_store() {
    let store = Store::new();
    let mut holder = store.section(&["held"]);
    holder.is_in();
    // A grant that is over and cannot be cleaned up.
    store.ticket(&["over", "--ttl", "1ms"]);
    let stopped = store.stop_inside_the_guard();
    let locks = store.list();
    assert_eq!(locks.len(), 1, "{locks:?}");
    assert_eq!(locks[0]["name"], "held");
    let shown = store.output(&["show", "held"]);
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(store.output(&["show", "over"]).status.code(), Some(1));
    drop(stopped);
    assert_eq!(holder.finish(), Some(0));
}

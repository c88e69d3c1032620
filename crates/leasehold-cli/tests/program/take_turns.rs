//! Two shells take turns, and so do N at a time, readers and writers.

use crate::common::{Store, eventually, stderr, stdout};

trials! {
    two_take_turns_and_list_shows_both,
    in_the_order_of_arrival_with_growing_fencing_tokens,
    a_semaphore_admits_as_many_as_it_has_permits,
    readers_share_and_a_queued_writer_goes_before_later_readers,
    who_will_not_wait_is_told_who_holds,
    namespaces_and_kinds_are_apart_and_kinds_are_warned_of,
    list_shows_one_namespace_or_all,
    names_with_any_characters,
}

fn two_take_turns_and_list_shows_both() {
    let store = Store::new();
    let mut first = store.section(&["demo", "--label", "first shell"]);
    first.is_in();
    let mut second = store.section(&["demo"]);
    store.wait_for_counts(1, 1);

    let locks = store.list();
    let [lock] = &locks[..] else { panic!("one lock, not {locks:?}") };
    assert_eq!(lock["namespace"], "default");
    assert_eq!(lock["kind"], "mutex");
    assert_eq!(lock["name"], "demo");
    assert_eq!(
        (&lock["capacity"], &lock["used"], &lock["free"]),
        (&1.into(), &1.into(), &0.into())
    );
    let holder = &lock["holders"][0];
    assert_eq!(holder["pid"], first.process.id());
    assert_eq!(holder["label"], "first shell");
    assert!(holder["held_for_ms"].is_u64());
    assert!(holder["ttl_left_ms"].is_null(), "without --ttl there is none: {holder}");
    assert!(holder["fencing_token"].as_u64() > Some(0));
    assert_eq!(holder["weight"], 1);
    let waiter = &lock["waiters"][0];
    assert_eq!(waiter["pid"], second.process.id());
    assert!(waiter["label"].is_null());

    let listed = store.output(&["list"]);
    let table = stdout(&listed);
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows[0].starts_with("KIND"), "{table}");
    assert!(rows[1].contains("demo") && rows[1].contains("(first shell)"), "{table}");
    assert!(stderr(&listed).contains(&store.url()), "the store's place is told");

    let shown = store.output(&["show", "demo"]);
    assert!(shown.status.success());
    let text = stdout(&shown);
    assert!(text.starts_with("mutex \"demo\" in namespace default\n"), "{text}");
    assert!(text.contains("holder 1: pid ") && text.contains("waiter 1: pid "), "{text}");

    assert!(!second.has_begun(), "both are in");
    assert_eq!(first.finish(), Some(0));
    assert_eq!(first.line().as_deref(), Some("out"));
    second.is_in();
    assert_eq!(second.finish(), Some(0));
    store.wait_for_counts(0, 0);
}

fn in_the_order_of_arrival_with_growing_fencing_tokens() {
    const SCRIPT: &str = "echo in $LEASEHOLD_FENCING_TOKEN; read line; exit 0";
    let store = Store::new();
    let mut sections = vec![store.script(&["queue"], SCRIPT)];
    store.wait_for_counts(1, 0);
    for waiters in 1..=4 {
        sections.push(store.script(&["queue"], SCRIPT));
        store.wait_for_counts(1, waiters);
    }
    let mut last = 0;
    for section in &mut sections {
        let line = section.line().expect("it gets its turn");
        let token: u64 = line.strip_prefix("in ").unwrap().parse().expect("a fencing token");
        assert!(token > last, "{token} is not above {last}");
        last = token;
        assert_eq!(section.finish(), Some(0));
    }
}

fn a_semaphore_admits_as_many_as_it_has_permits() {
    let store = Store::new();
    let three = ["slots", "--permits", "3"];
    let mut one = store.section(&three);
    let mut two = store.section(&["slots", "--permits", "3", "--weight", "2"]);
    one.is_in();
    two.is_in();
    let mut waiting = store.section(&three);
    store.wait_for_counts(2, 1);
    assert_eq!(store.list()[0]["used"], 3);
    assert_eq!(two.finish(), Some(0));
    waiting.is_in();
    assert_eq!(one.finish(), Some(0));
    assert_eq!(waiting.finish(), Some(0));
}

fn readers_share_and_a_queued_writer_goes_before_later_readers() {
    let store = Store::new();
    let mut readers =
        [store.section(&["table", "--shared"]), store.section(&["table", "--shared"])];
    for reader in &readers {
        reader.is_in();
    }
    let mut writer = store.section(&["table", "--exclusive"]);
    store.wait_for_counts(2, 1);
    let mut late = store.section(&["table", "--shared"]);
    store.wait_for_counts(2, 2);
    for reader in &mut readers {
        assert!(!writer.has_begun(), "the writer is in with a reader");
        assert_eq!(reader.finish(), Some(0));
    }
    writer.is_in();
    assert!(!late.has_begun(), "a reader is in with the writer");
    assert!(stdout(&store.output(&["list"])).contains("exclusive"));
    assert_eq!(writer.finish(), Some(0));
    late.is_in();
    assert_eq!(late.finish(), Some(0));
}

fn who_will_not_wait_is_told_who_holds() {
    let store = Store::new();
    let mut holder = store.section(&["busy", "--label", "long work"]);
    holder.is_in();
    for (args, code) in [
        (&["run", "busy", "--no-wait", "--", "true"][..], 75),
        (&["run", "busy", "--wait", "50ms", "--", "true"], 75),
        (&["run", "busy", "--wait", "0", "-E", "9", "--", "true"], 9),
    ] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let message = stderr(&output);
        assert!(message.starts_with("leasehold: mutex \"busy\": not "), "{message}");
        assert!(message.contains("(long work)"), "{message}");
        assert_eq!(stdout(&output), "");
    }
    store.wait_for_counts(1, 0);
    assert_eq!(holder.finish(), Some(0));
    let output = store.output(&["run", "busy", "--no-wait", "--", "echo", "free"]);
    assert_eq!(stdout(&output), "free\n");
}

fn namespaces_and_kinds_are_apart_and_kinds_are_warned_of() {
    let store = Store::new();
    let mut mutex = store.section(&["name"]);
    mutex.is_in();
    let other = store.output(&["run", "name", "--namespace", "other", "--no-wait", "--", "true"]);
    assert!(other.status.success(), "{other:?}");
    assert_eq!(stderr(&other), "");
    let output = store.output(&["run", "name", "--shared", "--no-wait", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        stderr(&output),
        "leasehold: warning: \"name\" is also in use as a mutex, which does not exclude this \
         read-write lock\n"
    );

    let mut readers = store.section(&["name", "--shared"]);
    readers.is_in();
    let both = store.output(&["show", "name"]);
    assert_eq!(both.status.code(), Some(64));
    assert_eq!(
        stderr(&both),
        "leasehold: \"name\" is in use as mutex and as rw-lock; say which with --kind\n"
    );
    let one = store.output(&["show", "name", "--kind", "rw-lock"]);
    assert!(stdout(&one).starts_with("read-write lock \"name\""), "{one:?}");
    assert_eq!(mutex.finish(), Some(0));
    assert_eq!(readers.finish(), Some(0));
}

fn list_shows_one_namespace_or_all() {
    let store = Store::new();
    let section = store.section(&["there", "--namespace", "other"]);
    section.is_in();
    assert!(store.list().is_empty());
    let all = stdout(&store.output(&["list", "--all"]));
    assert!(all.starts_with("NAMESPACE") && all.contains("there"), "{all}");
    let output = store.output(&["list", "--namespace", "other"]);
    assert!(stdout(&output).contains("there"), "{output:?}");
}

fn names_with_any_characters() {
    let store = Store::new();
    for name in ["a b", "a/b:c{d}", "line\nfeed", "🔒", "%00"] {
        let section = store.section(&["--label", "x", name]);
        section.is_in();
        let locks = store.list();
        assert_eq!(locks.len(), 1);
        assert_eq!(locks[0]["name"], name);
        drop(section);
        eventually("the lock is free again", || store.list().is_empty());
    }
}

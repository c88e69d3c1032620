//! Grants that outlive who acquired them: acquire, renew, release and adopt, across processes.

use std::process::{Command, Stdio};

use crate::common::{PROGRAM, SECTION, Section, Store, eventually, lives, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

trials! {
    acquired_in_one_shell_and_released_in_another,
    every_kind_in_every_namespace_and_fencing_tokens_grow,
    acquire_waits_in_line_and_gives_up_like_run,
    a_signal_ends_the_wait_of_acquire,
    a_ticket_that_nobody_gets_holds_nothing,
    renew_prolongs_and_sets_the_ttl,
    adopt_of_what_has_run_out_runs_nothing,
    adopt_renews_while_the_command_runs_and_frees_after,
    adopt_passes_code_and_signals_on,
    the_command_of_a_killed_adopt_is_ended_at_once,
    the_command_of_a_killed_adopt_goes_on_if_it_may_and_keeps_the_lock,
    the_command_of_run_extends_its_own_grant_and_renewals_do_not_shorten_it,
    what_is_held_without_a_ttl_stays_so,
}

/// What the other shell is told when it comes too late.
fn gone(store: &Store) -> String {
    let url = store.url();
    format!(
        "leasehold: mutex \"job\": the grant of this ticket is gone, or of another store than {url}\n"
    )
}

#[track_caller]
fn refused(store: &Store, name: &str) {
    let output = store.output(&["run", name, "--no-wait", "--", "true"]);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
}

fn acquired_in_one_shell_and_released_in_another() {
    let store = Store::new();
    let script = format!("t=$('{PROGRAM}' acquire job --ttl 10m --label nightly); echo \"$t\"");
    let mut shell = Command::new("sh");
    let acquired = store.surround(&mut shell).args(["-c", &script]).output().unwrap();
    let ticket = stdout(&acquired).trim().to_owned();

    // Whoever acquired it is gone for long enough to be proven dead.
    let waited = store.output(&["run", "job", "--wait", "700ms", "--", "true"]);
    assert_eq!(waited.status.code(), Some(75), "{}", stderr(&waited));
    let holder = store.holder();
    assert_eq!(holder["label"], "nightly");
    let left = holder["ttl_left_ms"].as_u64();
    assert!(left > Some(500_000) && left <= Some(600_000), "{holder}");
    let shown = stdout(&store.output(&["show", "job"]));
    assert!(shown.contains("(nightly)") && shown.contains("TTL left 9m"), "{shown}");

    let script = format!("t='{ticket}'; '{PROGRAM}' release \"$t\"");
    let mut shell = Command::new("sh");
    let released = store.surround(&mut shell).args(["-c", &script]).output().unwrap();
    assert_eq!((released.status.code(), stdout(&released)), (Some(0), String::new()));
    assert_eq!(stderr(&released), "");
    assert_eq!(store.counts(), (0, 0));

    let again = store.output(&["release", &ticket]);
    assert_eq!((again.status.code(), stderr(&again)), (Some(79), gone(&store)));
    assert!(store.output(&["run", "job", "--no-wait", "--", "true"]).status.success());
}

fn every_kind_in_every_namespace_and_fencing_tokens_grow() {
    let store = Store::new();
    let mut last = 0;
    for (args, kind, share) in [
        (&["a/b"][..], "mutex", "yes"),
        (&["a/b", "--permits", "3", "--weight", "2"], "semaphore", "2 of 3"),
        (&["a/b", "--shared"], "rw-lock", "shared by 1"),
        (&["a/b", "--exclusive"], "rw-lock", "exclusive"),
    ] {
        let rest = ["--ttl", "10m", "--json", "--namespace", "apart"];
        let output = store.output(&[&["acquire"], args, &rest].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["namespace"], "apart");
        assert_eq!((&document["kind"], &document["name"]), (&kind.into(), &"a/b".into()));
        assert_eq!(document["ttl_ms"], 600_000);
        let fencing = document["fencing_token"].as_u64().unwrap();
        assert!(fencing > last);
        last = fencing;
        let table = stdout(&store.output(&["list", "--namespace", "apart"]));
        assert!(table.contains(share), "{table}");
        // The ticket names the namespace.
        let ticket = document["ticket"].as_str().unwrap();
        assert!(store.output(&["release", ticket]).status.success());
        assert_eq!(store.output(&["list", "--namespace", "apart"]).stdout, b"");
    }
}

fn acquire_waits_in_line_and_gives_up_like_run() {
    let store = Store::new();
    let mut holder = store.section(&["job"]);
    holder.is_in();
    for (args, code) in [
        (&["--no-wait"][..], 75),
        (&["--wait", "50ms"], 75),
        (&["--no-wait", "-E", "9"], 9),
        (&["--permits", "1", "--weight", "2"], 64),
    ] {
        let output = store.output(&[&["acquire", "job", "--ttl", "10m"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert_eq!(stdout(&output), "");
    }
    let mut waiter = Section::start(store.leasehold(&["acquire", "job", "--ttl", "10m"]));
    store.wait_for_counts(1, 1);
    assert_eq!(holder.finish(), Some(0));
    assert!(waiter.line().unwrap().starts_with("lh1/default/mutex/job/"));
    assert_eq!(waiter.end().code(), Some(0));
    assert_eq!(store.counts(), (1, 0));
}

fn a_signal_ends_the_wait_of_acquire() {
    let store = Store::new();
    let mut holder = store.section(&["job"]);
    holder.is_in();
    let mut waiter = Section::start(store.leasehold(&["acquire", "job", "--ttl", "10m"]));
    store.wait_for_counts(1, 1);
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.end().code(), Some(143));
    assert_eq!(waiter.line(), None, "nothing was acquired");
    assert_eq!(store.counts(), (1, 0));
    assert_eq!(holder.finish(), Some(0));
    assert_eq!(store.counts(), (0, 0));
}

fn a_ticket_that_nobody_gets_holds_nothing() {
    let store = Store::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for stdout in [Stdio::from(full), Stdio::from(closed)] {
        let mut acquire = store.leasehold(&["acquire", "job", "--ttl", "10m"]);
        let output = acquire.stdout(stdout).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(74), "{output:?}");
        assert!(stderr(&output).contains("cannot write the output"), "{output:?}");
        assert_eq!(store.counts(), (0, 0));
    }
}

fn renew_prolongs_and_sets_the_ttl() {
    let store = Store::new();
    let ticket = store.ticket(&["job", "--ttl", "30s"]);
    let left = || store.holder()["ttl_left_ms"].as_u64().unwrap();
    let mut before = left();
    eventually("half a second has passed", || {
        before = left();
        before < 29_500
    });
    assert!(store.output(&["renew", &ticket]).status.success());
    assert!(left() > before, "it was not prolonged");
    assert!(store.output(&["renew", &ticket, "--ttl", "10m"]).status.success());
    assert!(left() > 500_000);
    assert!(store.output(&["renew", &ticket]).status.success());
    assert!(left() > 500_000, "a renewal uses the new TTL");
    assert!(store.output(&["renew", &ticket, "--ttl", "50ms"]).status.success());
    store.wait_for_counts(0, 0);
    for args in [&["renew", &ticket][..], &["renew", &ticket, "--ttl", "10m"]] {
        let output = store.output(args);
        assert_eq!((output.status.code(), stderr(&output)), (Some(79), gone(&store)));
    }
    assert_eq!(store.counts(), (0, 0), "a grant that is gone is never revived");
}

fn adopt_of_what_has_run_out_runs_nothing() {
    let store = Store::new();
    let ticket = store.ticket(&["job", "--ttl", "50ms"]);
    store.wait_for_counts(0, 0);
    let output = store.output(&["adopt", &ticket, "--", "echo", "ran"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(79), String::new()));
    assert_eq!(stderr(&output), gone(&store).replace('\n', "; the command was not started\n"));
    // Also when the lock is somebody else's by now.
    let mut next = store.section(&["job"]);
    next.is_in();
    let output = store.output(&["adopt", &ticket, "--", "echo", "ran"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(79), String::new()));
    assert_eq!(store.output(&["release", &ticket]).status.code(), Some(79));
    assert_eq!(store.counts(), (1, 0));
    assert_eq!(next.finish(), Some(0));
}

fn adopt_renews_while_the_command_runs_and_frees_after() {
    let store = Store::new();
    let ticket = store.ticket(&["job", "--ttl", "1s"]);
    let mut adopted = store.start("adopt", &[&ticket], SECTION);
    adopted.is_in();
    let mut next = store.section(&["job"]);
    eventually("more than the TTL has passed", || {
        store.holder()["held_for_ms"].as_u64() > Some(2500)
    });
    assert!(!next.has_begun(), "it was not renewed");
    assert_eq!(adopted.finish(), Some(0));
    next.is_in();
    assert_eq!(next.finish(), Some(0));
    assert_eq!(store.output(&["release", &ticket]).status.code(), Some(79));
}

fn adopt_passes_code_and_signals_on() {
    let store = Store::new();
    let adopt = |script: &str| {
        let ticket = store.ticket(&["job", "--ttl", "10m"]);
        store.output(&["adopt", &ticket, "--", "sh", "-c", script]).status.code()
    };
    assert_eq!(adopt("exit 7"), Some(7));
    assert_eq!(adopt("kill -TERM $$"), Some(143));
    let ticket = store.ticket(&["job", "--ttl", "10m"]);
    assert_eq!(store.output(&["adopt", &ticket, "--", "no-such-program"]).status.code(), Some(127));
    let ticket = store.ticket(&["job", "--ttl", "10m"]);
    let mut adopted =
        store.start("adopt", &[&ticket], "trap 'echo usr1' USR1; echo in $$; read x; read y");
    adopted.is_in();
    adopted.signal_until(Signal::USR1, "usr1");
    adopted.go_on();
    adopted.end();
    assert_eq!(store.counts(), (0, 0));
}

fn the_command_of_a_killed_adopt_is_ended_at_once() {
    let store = Store::new();
    for args in [&[][..], &["--close"]] {
        let ticket = store.ticket(&["job", "--ttl", "10m"]);
        let killed = store.start("adopt", &[&[&*ticket], args].concat(), SECTION);
        let command = killed.is_in();
        refused(&store, "job");
        killed.signal(Signal::KILL);
        let next = store.output(&["run", "job", "--wait", "10s", "--", "true"]);
        assert!(next.status.success(), "{next:?}");
        eventually("the command is ended", || !lives(command));
    }
}

fn the_command_of_a_killed_adopt_goes_on_if_it_may_and_keeps_the_lock() {
    let store = Store::new();
    let ticket = store.ticket(&["job", "--ttl", "10m"]);
    let mut killed = store.start("adopt", &[&ticket, "--keep-going"], SECTION);
    let command = killed.is_in();
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().code(), None);
    let refused = store.output(&["run", "job", "--wait", "700ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "{}", stderr(&refused));
    assert!(lives(command));
    killed.go_on();
    let next = store.output(&["run", "job", "--wait", "10s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
}

fn the_command_of_run_extends_its_own_grant_and_renewals_do_not_shorten_it() {
    let store = Store::new();
    let script = format!("'{PROGRAM}' renew --ttl 10m; echo $?; read line");
    let mut section = store.script(&["job", "--ttl", "1s"], &script);
    assert_eq!(section.line().as_deref(), Some("0"));
    let mut holder = store.holder();
    eventually("several renewals were due", || {
        holder = store.holder();
        holder["held_for_ms"].as_u64() > Some(2000)
    });
    assert!(holder["ttl_left_ms"].as_u64() > Some(500_000), "{holder}");
    section.say("");
    assert_eq!(section.finish(), Some(0));
    assert_eq!(store.counts(), (0, 0));
}

fn what_is_held_without_a_ttl_stays_so() {
    let store = Store::new();
    let script =
        format!("'{PROGRAM}' renew; echo $?; '{PROGRAM}' renew --ttl 10m 2>&1; echo $?; read line");
    let mut section = store.script(&["job"], &script);
    assert_eq!(section.line().as_deref(), Some("0"));
    let why = "leasehold: mutex \"job\": the grant has no TTL, it is held until it is given back";
    assert_eq!(section.line().as_deref(), Some(why));
    assert_eq!(section.line().as_deref(), Some("64"));
    assert!(store.holder()["ttl_left_ms"].is_null());
    section.say("");
    assert_eq!(section.finish(), Some(0));
}

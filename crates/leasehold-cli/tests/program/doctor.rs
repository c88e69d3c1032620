//! `doctor`: a healthy store, and what is wrong with others.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{Store, stdout};
use serde_json::Value;

trials! {
    a_healthy_store,
    a_store_that_was_not_there,
    living_clients_are_counted,
    a_place_that_is_open_to_others,
    no_database,
    a_process_that_stopped_inside,
}

fn findings(store: &Store, code: i32) -> Vec<Value> {
    let output = store.output(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["healthy"], code == 0);
    document["findings"].as_array().unwrap().clone()
}

/// The only thing that is wrong.
fn wrong(store: &Store) -> (String, String) {
    let findings = findings(store, 1);
    let bad: Vec<_> = findings.iter().filter(|finding| finding["healthy"] == false).collect();
    let [bad] = &bad[..] else { panic!("one finding, not {bad:?}") };
    assert!(bad["advice"].is_string(), "what to do about it");
    (bad["what"].as_str().unwrap().to_owned(), bad["found"].as_str().unwrap().to_owned())
}

fn a_healthy_store() {
    let store = Store::new();
    for _ in 0..2 {
        let looked_at: Vec<_> = findings(&store, 0)
            .iter()
            .map(|finding| finding["what"].as_str().unwrap().to_owned())
            .collect();
        let all = [
            "place",
            "permissions",
            "file system",
            "space",
            "boot",
            "guard",
            "liveness",
            "round trip",
            "hand-off",
        ];
        assert_eq!(looked_at, all);
    }
    let text = stdout(&store.output(&["doctor"]));
    assert!(text.starts_with(&format!("store {}\nok   place", store.url())), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ok ")).count(), 9, "{text}");
    assert_eq!(stdout(&store.output(&["list", "--all"])), "", "it leaves nothing");
}

fn a_store_that_was_not_there() {
    let store = Store::new();
    let place = || findings(&store, 0).into_iter().find(|finding| finding["what"] == "place");
    let made = place().expect("it is looked at");
    assert!(made["found"].as_str().unwrap().ends_with("made just now"), "{made}");
    assert!(made["advice"].is_string(), "what may be wrong");
    assert!(place().expect("it is looked at")["advice"].is_null());
}

fn living_clients_are_counted() {
    let store = Store::new();
    let section = store.section(&["n"]);
    section.is_in();
    let liveness = findings(&store, 0).into_iter().find(|finding| finding["what"] == "liveness");
    assert_eq!(liveness.unwrap()["found"], "1 other clients alive, 0 dead");
}

fn a_place_that_is_open_to_others() {
    let store = Store::new();
    fs::set_permissions(store.dir(), fs::Permissions::from_mode(0o777)).unwrap();
    let (what, found) = wrong(&store);
    assert!(what == "place" && found.contains("can be written by others"), "{what}: {found}");
}

fn no_database() {
    let store = Store::new();
    fs::write(store.database(), "no database at all, and long enough to be looked at\n".repeat(9))
        .unwrap();
    fs::set_permissions(store.database(), fs::Permissions::from_mode(0o600)).unwrap();
    let (what, found) = wrong(&store);
    assert!(what == "place" && found.contains("locks.db"), "{what}: {found}");
}

fn a_process_that_stopped_inside() {
    let store = Store::new();
    assert!(store.output(&["run", "n", "--", "true"]).status.success());
    let stopped = store.stop_inside_the_guard();
    let (what, found) = wrong(&store);
    let pid = std::process::id();
    assert!(what == "guard" && found.contains(&format!("by pid {pid}")), "{what}: {found}");
    drop(stopped);
    findings(&store, 0);
}

//! The holder program as it is used by hand.
#![forbid(unsafe_code)]

use std::process::Command;

use leasehold_conformance::{
    bench::Lock,
    holder::{Happened, HolderProcess, Order, Wish},
};
use leasehold_core::LockKind;

#[test]
fn two_holders_take_turns_and_a_killed_one_gives_way() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("locks.db").display());
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-holder"));
        command.arg(&address);
        HolderProcess::start(command)
    };
    let lock = Lock::new("default", LockKind::Mutex, "turns", 1);
    let (mut one, mut two) = (start(), start());
    let first = one.holds(Wish::new("a", &lock));
    two.waits(Wish::new("b", &lock));
    one.order(&Order::Extend { id: "a".into(), ttl_ms: Some(600_000) });
    one.expect("a", Happened::Extended);
    one.kill9();
    let second = two.expect("b", Happened::Held);
    assert!(second.at_us > first.at_us && second.fencing > first.fencing);
    two.releases("b");
    two.order(&Order::Release { id: "b".into() });
    two.expect("b", Happened::Unknown);
    two.order(&Order::Release { id: "never asked".into() });
    two.expect("never asked", Happened::Failed);
    two.order(&Order::Close);
    two.expect("", Happened::Closed);
}

#[test]
fn without_an_address_it_says_how_it_is_used() {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold-holder")).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("sqlite:PATH"));
}

//! Another boot, another host, another time namespace, and what outlives them.

mod support;

use std::{fs, path::Path};

use leasehold_core::{Backend, FaultKind};
use support::{Home, Peer, granted, is_busy, mutex, request, run, try_request};

/// Makes the store look as if it was last used in another boot.
fn pretend_another_boot(home: &Home) {
    let here = fs::read_to_string(home.side("boot")).unwrap();
    let (_, namespace) = here.split_once(' ').unwrap();
    fs::write(home.side("boot"), format!("00000000-0000-0000-0000-000000000000 {namespace}"))
        .unwrap();
}

/// Leaves a grant that is bound to its token, and a client that was killed.
fn leave_state(home: &Home) -> u64 {
    let (client, lock) = (home.open(), mutex("state"));
    let held = leasehold_core::Acquire {
        binding: leasehold_core::Binding::Token,
        ttl: support::ttl(3_600_000),
        ..request(&lock)
    };
    let fence = granted(&client, &held).fencing.get();
    run(client.close()).unwrap();
    let peer = Peer::start(&home.path(), &["hold", "other"]);
    peer.says("held");
    peer.kill();
    fence
}

#[test]
fn a_boot_wipes_the_state_and_not_the_fences() {
    let home = Home::new();
    let fence = leave_state(&home);
    let same_boot = home.open();
    assert!(is_busy(&same_boot, &try_request(&mutex("state"))));
    // A drop ends a client later, in its thread; until then it would be another host's.
    run(same_boot.close()).unwrap();
    pretend_another_boot(&home);
    let client = home.open();
    let after = granted(&client, &try_request(&mutex("state"))).fencing.get();
    assert!(after > fence, "L8: {after} is not above {fence}");
    assert!(run(client.survey(None)).unwrap().len() == 1);
    assert!(!fs::read_to_string(home.side("boot")).unwrap().starts_with("00000000-"));
}

#[test]
fn a_store_that_another_host_uses_is_not_wiped() {
    let home = Home::new();
    let peer = Peer::start(&home.path(), &["hold", "theirs"]);
    peer.says("held");
    pretend_another_boot(&home);
    let fault = home.fault();
    assert_eq!(fault.kind(), FaultKind::Unsafe);
    assert!(fault.to_string().contains("another host"), "{fault}");
    drop(peer);
    support::until("the other host has left", || home_opens(&home));
}

fn home_opens(home: &Home) -> bool {
    leasehold_sqlite::SqliteBackend::open(home.path()).is_ok()
}

#[test]
fn another_time_namespace_is_refused() {
    let home = Home::new();
    let client = home.open();
    let here = fs::read_to_string(home.side("boot")).unwrap();
    let (boot, _) = here.split_once(' ').unwrap();
    fs::write(home.side("boot"), format!("{boot} time:[1]\n")).unwrap();
    let fault = home.fault();
    assert_eq!(fault.kind(), FaultKind::Unsupported);
    assert!(fault.to_string().contains("time namespace"), "{fault}");
    drop(client);
}

#[test]
fn a_store_that_a_power_cut_has_spoilt_is_made_anew() {
    let home = Home::new();
    let fence = leave_state(&home);
    remove_logs(&home.path());
    fs::write(home.path(), vec![0x5a; 8192]).unwrap();
    // In the same boot nobody can say what happened to it.
    assert_eq!(home.fault().kind(), FaultKind::Corrupt);
    pretend_another_boot(&home);
    let after = granted(&home.open(), &try_request(&mutex("state"))).fencing.get();
    assert!(after > fence);
}

#[test]
fn fences_go_on_when_the_database_is_lost() {
    let home = Home::new();
    let fence = leave_state(&home);
    remove_logs(&home.path());
    fs::remove_file(home.path()).unwrap();
    let after = granted(&home.open(), &try_request(&mutex("state"))).fencing.get();
    assert!(after > fence, "{after} is not above {fence}");
}

#[test]
fn a_database_that_is_deleted_in_use_is_not_made_twice() {
    let home = Home::new();
    let client = home.open();
    granted(&client, &request(&mutex("mine")));
    fs::remove_file(home.path()).unwrap();
    let fault = home.fault();
    assert_eq!(fault.kind(), FaultKind::Unsafe);
    assert!(fault.to_string().contains("deleted while in use"), "{fault}");
}

#[test]
fn a_client_notices_that_the_rest_of_its_store_was_deleted() {
    let home = Home::new();
    let client = home.open();
    fs::remove_dir_all(home.0.path().join("locks.db.d")).unwrap();
    let fault = run(client.acquire(&request(&mutex("gone")))).unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Corrupt);
    assert!(fault.to_string().contains("deleted while in use"), "{fault}");
}

/// The power cut that spoils the fence may spoil the database as well.
#[test]
fn a_damaged_fence_file_is_made_anew_above_the_clock() {
    for damage in [&[0; 37][..], b"leasehold-fence many\n", &[b'9'; 4096]] {
        let home = Home::new();
        let fence = leave_state(&home);
        fs::write(home.side("fence"), damage).unwrap();
        let lock = mutex("fence");
        let client = home.open();
        let same_boot = granted(&client, &try_request(&lock)).fencing.get();
        run(client.close()).unwrap();
        assert!(same_boot > fence, "L8: {same_boot} is not above {fence}");
        fs::write(home.side("fence"), damage).unwrap();
        pretend_another_boot(&home);
        let after = granted(&home.open(), &try_request(&lock)).fencing.get();
        assert!(after > same_boot + 500_000_000, "{after} is not a block above {same_boot}");
        let said = fs::read_to_string(home.side("fence")).unwrap();
        let ceiling = said.strip_prefix("leasehold-fence ").unwrap().trim().parse::<u64>().unwrap();
        assert!(ceiling >= after, "{ceiling} was synced before {after} was given");
        assert_eq!(said.len(), 37, "{said:?}");
    }
}

#[test]
fn idle_locks_are_forgotten_and_their_fences_are_not() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("idle"));
    let held = request(&lock);
    let fence = granted(&client, &held).fencing;
    support::release(&client, &held);
    run(client.close()).unwrap();
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    let touched = "UPDATE locks SET touched = touched - 4000000000";
    assert_eq!(conn.execute(touched, []).unwrap(), 1);
    conn.close().unwrap();
    let client = home.open();
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    let rows: i64 = conn.query_row("SELECT COUNT(*) FROM locks", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0, "opening sweeps");
    assert!(granted(&client, &request(&lock)).fencing > fence);
}

fn remove_logs(path: &Path) {
    for suffix in ["-wal", "-shm"] {
        let mut log = path.as_os_str().to_owned();
        log.push(suffix);
        let _ = fs::remove_file(log);
    }
}

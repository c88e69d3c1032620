//! Servers that start without the data of before, and clients that then hold back grants for the
//! longest TTL (`restart_guard`).

use std::{error::Error as _, time::Duration};

use leasehold::{Error, FaultKind, LockManager, NamedMutex};
use test_servers::{Cluster, Data, Flavor, Server};

use crate::{
    PATIENCE, Test, run,
    scene::{Fleet, connect, on_node, queue, same},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_server_without_its_data_holds_back_its_grants", |flavor| {
        let server = Server::start(flavor).expect("installed");
        holds_back(&server, &server.url(), |locks, name| locks.mutex(name).expect("a name"));
    }),
    ("a_node_without_its_data_holds_back_its_grants", |flavor| {
        let cluster = Cluster::start(flavor, 0).expect("installed");
        holds_back(cluster.node(0), &cluster.url(), |locks, name| {
            on_node(&cluster, 0, locks, name)
        });
    }),
    ("a_server_with_its_data_holds_back_nothing", a_server_with_its_data_holds_back_nothing),
    ("a_replica_that_takes_over_with_the_data_holds_back_nothing", |flavor| {
        takes_over(flavor, Data::Kept);
    }),
    ("a_replica_that_takes_over_without_a_marker_holds_back", |flavor| {
        takes_over(flavor, Data::Lost);
    }),
    ("without_a_guard_nothing_is_held_back", without_a_guard_nothing_is_held_back),
    ("who_may_not_see_a_restart_is_refused_a_guard", who_may_not_see_a_restart),
];

/// Longer than a restart takes on a busy machine.
const GUARD: Duration = Duration::from_secs(10);

async fn guarded(url: &str) -> LockManager {
    let guard = GUARD.as_millis();
    connect(&format!("{url}?restart_guard_ms={guard}&command_timeout_ms=20000")).await
}

fn uptime(server: &Server) -> Duration {
    let seconds = server.info("server", "uptime_in_seconds").expect("a server");
    Duration::from_secs(seconds.parse().expect("a number"))
}

/// What an acquisition is told that does not wait for the end of the guard.
fn is_held_back(error: &Error) {
    assert_eq!(error.fault().map(leasehold::Fault::kind), Some(FaultKind::Unavailable), "{error}");
    assert!(error.is_retryable(), "{error}");
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    for part in ["without its data", "restart_guard"] {
        assert!(why.contains(part), "{part:?} is not in {why:?}");
    }
}

fn holds_back(server: &Server, url: &str, mutex: impl Fn(&LockManager, &str) -> NamedMutex) {
    run(async {
        let (ours, theirs) = (guarded(url).await, guarded(url).await);
        let orders = mutex(&ours, "orders");
        // A new server is taken for one that has lost its data.
        let lease = orders.lock().ttl(PATIENCE).await.expect("free after the guard");
        let other = mutex(&ours, "other").lock().ttl(PATIENCE).await.expect("free");
        let waiting = queue(same(&theirs, &orders)).await;

        server.restart(Data::Lost);
        // All but grants is answered as ever.
        assert!(!other.extend(PATIENCE).await.expect("answers"), "the server knows a lost lease");
        assert!(!lease.release().await.expect("answers"), "the server knows a lost lease");
        let fresh = mutex(&ours, "fresh");
        is_held_back(&fresh.try_lock().await.expect_err("the server is too young"));
        let impatient = fresh.lock().timeout(Duration::from_millis(100));
        is_held_back(&impatient.await.expect_err("the server is too young"));
        assert!(!waiting.is_finished(), "granted although somebody may hold");

        let next = waiting.await.expect("no panic");
        // Whole seconds are told, rounded down.
        assert!(uptime(server) + Duration::from_secs(1) >= GUARD, "granted too soon");
        assert!(next.fencing_token() > lease.fencing_token());
        assert!(next.release().await.expect("answers"));
        // Each client rounds for itself, so this one may still hold back for a moment.
        let late = fresh.lock().timeout(PATIENCE).await.expect("free after the guard");
        assert!(late.release().await.expect("answers"));
    });
}

fn a_server_with_its_data_holds_back_nothing(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = guarded(&server.url()).await;
        let orders = locks.mutex("orders").expect("a name");
        let lease = orders.lock().ttl(PATIENCE).await.expect("free after the guard");
        server.restart(Data::Kept);
        // Had it been held back, this would be an error.
        let fresh = locks.mutex("fresh").expect("a name");
        let other = fresh.try_lock().await.expect("answers").expect("free");
        assert!(orders.try_lock().await.expect("answers").is_none(), "granted twice");
        assert!(other.release().await.expect("answers"));
        assert!(lease.release().await.expect("answers"), "it was kept");
    });
}

/// Both servers are far younger than the guard, so it is the marker that decides.
fn takes_over(flavor: Flavor, marker: Data) {
    let fleet = Fleet::sentinels(flavor);
    run(async {
        assert_eq!(fleet.first().command(&["SET", "leasehold:guard", "1"]).text(), "OK");
        let an_hour = "restart_guard_ms=3600000&command_timeout_ms=20000";
        let locks = connect(&format!("{}?{an_hour}", fleet.url())).await;
        let orders = locks.mutex("orders").expect("a name");
        let fresh = locks.mutex("fresh").expect("a name");
        let lease = orders.lock().ttl(PATIENCE).await.expect("free");
        if marker == Data::Lost {
            assert_eq!(fleet.first().command(&["DEL", "leasehold:guard"]).int(), 1);
        }
        fleet.wait_until_replicated();
        fleet.fail_over();
        let granted = fresh.lock().timeout(PATIENCE / 4).await;
        if marker == Data::Lost {
            is_held_back(&granted.expect_err("it looks as if its data were lost"));
        } else {
            assert!(granted.expect("nothing is held back").release().await.expect("answers"));
        }
        assert!(lease.release().await.expect("answers"), "it was replicated");
    });
}

/// That it would be, were it asked for, is shown by the others.
fn without_a_guard_nothing_is_held_back(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&format!("{}?command_timeout_ms=20000", server.url())).await;
        let orders = locks.mutex("orders").expect("a name");
        let lease = orders.try_lock().ttl(PATIENCE).await.expect("answers").expect("free");
        server.restart(Data::Lost);
        let next = orders.try_lock().await.expect("answers").expect("free at once");
        assert!(next.fencing_token() > lease.fencing_token());
        assert!(next.release().await.expect("answers"));
        let marker = server.command(&["EXISTS", "leasehold:guard"]);
        assert_eq!(marker.int(), 0, "a marker without a guard");
    });
}

fn who_may_not_see_a_restart(flavor: Flavor) {
    let acl = "user app on >secret ~leasehold* resetchannels &leasehold* +@all -info";
    let server = Server::builder(flavor).acl_file(acl).start().expect("installed");
    run(async {
        let url = server.url_with("app", "secret");
        let _unguarded = connect(&url).await;
        let refused = leasehold::connect(&format!("{url}?restart_guard_ms=1000")).await;
        let error = refused.expect_err("a guard that sees nothing");
        assert_eq!(error.fault().map(leasehold::Fault::kind), Some(FaultKind::Denied), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    });
}

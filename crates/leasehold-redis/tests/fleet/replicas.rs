//! A grant that is delivered once replicas have it (`wait_replicas`).

use std::error::Error as _;

use leasehold::{ErrorKind, Remaining};

use crate::{
    PATIENCE, Test, run,
    scene::{Fleet, connect, queue, same},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_grant_waits_for_a_replica_in_a_cluster", |flavor| waits(&Fleet::cluster(flavor))),
    ("a_grant_waits_for_a_replica_by_sentinels", |flavor| waits(&Fleet::sentinels(flavor))),
    ("a_grant_that_a_replica_has_outlives_its_master", |flavor| outlives(&Fleet::cluster(flavor))),
];

const CAREFUL: &str = "wait_replicas=1&wait_replicas_timeout_ms=1000&command_timeout_ms=20000";

/// Without the replica it is given back, and the error says what was missing.
fn waits(fleet: &Fleet) {
    run(async {
        let ours = connect(&format!("{}?{CAREFUL}", fleet.url())).await;
        let theirs = fleet.client().await;
        let mutex = fleet.on_first(&ours, "orders");
        let lease = mutex.lock().ttl(PATIENCE).await.expect("a replica has it");
        assert!(lease.release().await.expect("answers"), "it was held");
        fleet.stop_replication();
        let error = mutex.lock().ttl(PATIENCE).await.expect_err("no replica can have it");
        assert_eq!(*error.kind(), ErrorKind::Backend);
        let why =
            format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default());
        for part in [mutex.name().as_str(), "0 of 1 replicas"] {
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        }
        let next = same(&theirs, &mutex).try_lock().timeout(PATIENCE / 4).await.expect("answers");
        let next = next.expect("it was given back");
        assert!(next.fencing_token() > lease.fencing_token());
        fleet.replica().resume();
    });
}

/// The master is killed as soon as each is granted, at once or after a wait, and its one replica is
/// elected.
fn outlives(fleet: &Fleet) {
    run(async {
        let ours = connect(&format!("{}?{CAREFUL}", fleet.url())).await;
        let theirs = connect(&format!("{}?{CAREFUL}", fleet.url())).await;
        let at_once = fleet.on_first(&ours, "at-once");
        let handed_over = fleet.on_first(&ours, "handed-over");
        let before = handed_over.lock().ttl(PATIENCE).await.expect("free");
        let waiting = queue(same(&theirs, &handed_over)).await;
        assert!(before.release().await.expect("answers"), "it was held");
        let waited = waiting.await.expect("granted in the end");
        let lease = at_once.lock().ttl(PATIENCE).await.expect("free");
        fleet.fail_over();
        for lease in [&waited, &lease] {
            // An extension would wait for a replica, and there is none any more.
            let left = lease.remaining().await.expect("answers");
            assert!(matches!(left, Remaining::Left(_)), "the replica had it: {left:?}");
            assert!(lease.release().await.expect("answers"), "it was held");
        }
    });
}

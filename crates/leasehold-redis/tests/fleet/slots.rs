//! A slot moves from one node of a cluster to another while its lock is held and waited for, a node
//! without a replica is down, and names are spread over all nodes.

use std::{collections::HashSet, time::Duration};

use leasehold::{Lease, LockManager, NamedSemaphore, Obstacle};
use test_servers::{Cluster, Flavor};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    PATIENCE, Test, run,
    scene::{connect, is_renewed, on_node, queue, same, slot_of},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_slot_moves_while_its_lock_is_held_and_waited_for", a_slot_moves),
    ("a_lock_that_has_moved_is_asked_for_where_it_is", a_moved_lock_is_asked_for),
    ("a_node_that_is_down_delays_no_other", a_node_that_is_down_delays_no_other),
    ("names_are_spread_over_all_nodes", names_are_spread_over_all_nodes),
];

/// So short that renewals come soon, on a machine however busy.
const TTL: Duration = Duration::from_secs(3);
const WAITERS: usize = 3;
/// Of one with several holders and a queue.
const KEYS_OF_A_LOCK: usize = 4;
const NAMES: usize = 2_000;

async fn client(cluster: &Cluster) -> LockManager {
    connect(&format!("{}?command_timeout_ms=20000", cluster.url())).await
}

/// Between its beginning and its end some keys of the lock are here and others nowhere: requests for
/// it wait until they can be answered (`ASK`, `TRYAGAIN`, `MOVED`).
fn a_slot_moves(flavor: Flavor) {
    let cluster = Cluster::start(flavor, 0).expect("installed");
    run(async {
        let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
        let mutex = on_node(&cluster, 0, &ours, "moves");
        let held = mutex.lock().ttl(TTL).renew().await.expect("free");
        let mut waiting = Vec::new();
        for _ in 0..WAITERS {
            waiting.push(queue(same(&theirs, &mutex)).await);
        }
        let slot = slot_of(&cluster, &mutex);
        cluster.begin_move(slot, 1);
        let late = tokio::spawn(queue(same(&theirs, &mutex)));
        assert!(cluster.move_keys(slot, 1) > 0);
        cluster.end_move(slot, 1);
        assert_eq!(cluster.owner(slot), 1);
        is_renewed(&held, TTL).await;
        waiting.push(late.await.expect("no panic"));
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "somebody holds");

        let mut last = held.fencing_token();
        assert!(held.release().await.expect("answers"), "it was held");
        // In the order in which they came.
        for _ in 0..=WAITERS {
            let next = waiting.remove(0).await.expect("granted in the end");
            assert!(next.fencing_token() > last);
            last = next.fencing_token();
            assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "not its turn");
            assert!(next.release().await.expect("answers"), "it was held");
        }
    });
}

/// All keys of a lock have moved and the move has not ended: its requests are answered where it is
/// (`ASK`), those of a lock without a queue of its own wait (`TRYAGAIN`).
fn a_moved_lock_is_asked_for(flavor: Flavor) {
    let cluster = Cluster::start(flavor, 0).expect("installed");
    run(async {
        let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
        let slot_of =
            |locks: &NamedSemaphore| cluster.slot(&format!("{{{}}}", locks.lock_id().key()));
        let exports = (0..)
            .map(|number| ours.semaphore(format!("exports-{number}"), 2).expect("a name"))
            .find(|exports| cluster.owner(slot_of(exports)) == 0)
            .expect("there is no end of names");
        let held = [
            exports.acquire().ttl(PATIENCE).await.expect("free"),
            exports.acquire().ttl(PATIENCE).await.expect("free"),
        ];
        let waiting = queue_for(&theirs, &exports).await;
        let slot = slot_of(&exports);
        cluster.begin_move(slot, 1);
        assert_eq!(cluster.move_keys(slot, 1), KEYS_OF_A_LOCK);
        assert_eq!(cluster.owner(slot), 0, "it is still on its way");

        let asked = async {
            assert!(held[0].extend(PATIENCE).await.expect("answers"), "it was held");
            let late = queue_for(&theirs, &exports).await;
            assert!(held[0].release().await.expect("answers"), "it was held");
            let next = waiting.await.expect("no panic").expect("granted in the end");
            assert!(next.fencing_token() > held[1].fencing_token());
            (next, late)
        };
        let (next, late) =
            tokio::time::timeout(PATIENCE / 4, asked).await.expect("it is asked for");
        assert_eq!(cluster.owner(slot), 0, "it was not asked for, but found after the move");
        assert!(!late.is_finished(), "both permits are held");

        cluster.end_move(slot, 1);
        assert!(next.release().await.expect("answers"), "it was held");
        let last = late.await.expect("no panic").expect("granted in the end");
        assert!(last.fencing_token() > next.fencing_token());
        assert!(last.release().await.expect("answers"), "it was held");
        assert!(held[1].release().await.expect("answers"), "it was held");
    });
}

/// Has a task wait for a permit; returns once it is queued.
async fn queue_for(
    locks: &LockManager,
    like: &NamedSemaphore,
) -> JoinHandle<leasehold::Result<Lease>> {
    let semaphore = locks.semaphore(like.name().clone(), 2).expect("a name");
    let (tell, queued) = oneshot::channel();
    let waiting = tokio::spawn(async move {
        let tell = move |_: &Obstacle| tell.send(()).expect("somebody listens");
        semaphore.acquire().ttl(PATIENCE).timeout(PATIENCE).on_queued(tell).await
    });
    queued.await.expect("is queued");
    waiting
}

/// It has no replica, so its slots are nowhere until it is back.
fn a_node_that_is_down_delays_no_other(flavor: Flavor) {
    let cluster = Cluster::start(flavor, 0).expect("installed");
    run(async {
        let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
        let mut held = Vec::new();
        for node in 0..3 {
            let mutex = on_node(&cluster, node, &ours, "held");
            held.push(mutex.lock().ttl(TTL).renew().await.expect("free"));
        }
        let waiting = queue(on_node(&cluster, 2, &theirs, "held")).await;
        cluster.node(1).kill();
        // It cannot be renewed where it is, and who holds it learns that in time.
        tokio::time::timeout(TTL, held[1].lost()).await.expect("within the lease's own time");
        for node in [0, 2] {
            is_renewed(&held[node], TTL).await;
            let new = on_node(&cluster, node, &theirs, "new").lock().await.expect("free");
            assert!(new.release().await.expect("answers"), "it was held");
        }
        assert!(held[2].release().await.expect("answers"), "it was held");
        drop(waiting.await.expect("granted"));
        cluster.node(1).start_again();
        let back = on_node(&cluster, 1, &theirs, "held").lock().timeout(PATIENCE / 4).await;
        assert!(back.expect("it is empty").fencing_token() > held[1].fencing_token());
        assert!(held[0].is_held());
    });
}

fn names_are_spread_over_all_nodes(flavor: Flavor) {
    let cluster = Cluster::start(flavor, 0).expect("installed");
    run(async {
        let locks = client(&cluster).await;
        let mut tasks = Vec::new();
        for number in 0..NAMES {
            let mutex = locks.mutex(format!("name-{number}")).expect("a name");
            tasks.push(tokio::spawn(async move { mutex.lock().ttl(PATIENCE).await }));
        }
        let mut leases = Vec::new();
        for task in tasks {
            leases.push(task.await.expect("no panic").expect("free"));
        }
        for node in cluster.nodes() {
            let keys = usize::try_from(node.command(&["DBSIZE"]).int()).expect("a count");
            // Two thirds of what an even third would be, at one key for a lock at least.
            assert!(keys > NAMES * 2 / 9, "only {keys} keys on a node");
        }
        let seen = locks.survey().await.expect("answers");
        let names: HashSet<_> = seen.iter().map(|state| state.lock.name().to_string()).collect();
        assert_eq!(names.len(), NAMES);
        assert!(seen.iter().all(|state| state.holders.len() == 1));
        for lease in &leases {
            assert!(lease.is_held());
        }
        locks.shutdown().await.expect("answers");
    });
}

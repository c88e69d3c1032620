//! A fleet with clients, and what is done to both.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use leasehold::{FencingToken, Lease, LockManager, NamedMutex, Obstacle};
use test_servers::{Cluster, Flavor, Sentinels, Server, wait_until};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::PATIENCE;

/// The replica of the first master in a cluster.
const REPLICA: usize = 3;

/// Several servers of either shape. The first master has a replica.
pub(crate) enum Fleet {
    Cluster(Cluster),
    Sentinels(Sentinels),
}

impl Fleet {
    pub(crate) fn cluster(flavor: Flavor) -> Self {
        Self::Cluster(Cluster::start(flavor, 1).expect("installed"))
    }

    pub(crate) fn sentinels(flavor: Flavor) -> Self {
        Self::Sentinels(Sentinels::start(flavor, 1).expect("installed"))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinels(sentinels) => sentinels.url(),
        }
    }

    /// A client whose commands outlast a failover.
    pub(crate) async fn client(&self) -> LockManager {
        connect(&format!("{}?command_timeout_ms=20000", self.url())).await
    }

    pub(crate) fn first(&self) -> &Server {
        match self {
            Self::Cluster(cluster) => cluster.node(0),
            Self::Sentinels(sentinels) => sentinels.server(0),
        }
    }

    pub(crate) fn replica(&self) -> &Server {
        match self {
            Self::Cluster(cluster) => cluster.node(REPLICA),
            Self::Sentinels(sentinels) => sentinels.server(1),
        }
    }

    /// A lock that the first master has, with a name that begins so.
    pub(crate) fn on_first(&self, locks: &LockManager, name: &str) -> NamedMutex {
        match self {
            Self::Cluster(cluster) => on_node(cluster, 0, locks, name),
            Self::Sentinels(_) => locks.mutex(name).expect("a name"),
        }
    }

    /// Returns once the replica has all that the first master has answered.
    pub(crate) fn wait_until_replicated(&self) {
        let offset = |server: &Server, key| -> u64 {
            let offset = server.info("replication", key).expect("a server with replication");
            offset.parse().expect("a number")
        };
        let answered = offset(self.first(), "master_repl_offset");
        wait_until("the replica has it all", || {
            offset(self.replica(), "slave_repl_offset") >= answered
        });
    }

    /// What the first master answers from now on is not replicated.
    pub(crate) fn stop_replication(&self) {
        // It would ask for what it has missed at once.
        self.replica().pause();
        let closed = self.first().command(&["CLIENT", "KILL", "TYPE", "replica"]).int();
        assert_eq!(closed, 1, "connections to replicas");
    }

    /// Kills the first master, and returns once its replica has its place.
    pub(crate) fn fail_over(&self) {
        self.first().kill();
        self.replica().resume();
        match self {
            Self::Cluster(cluster) => cluster.wait_until_master(REPLICA),
            Self::Sentinels(sentinels) => {
                assert_eq!(sentinels.wait_for_another(Some(0)), 1);
            }
        }
    }
}

pub(crate) async fn connect(url: &str) -> LockManager {
    leasehold::connect(url).await.expect("connects")
}

/// The slot of a lock.
pub(crate) fn slot_of(cluster: &Cluster, mutex: &NamedMutex) -> u16 {
    cluster.slot(&format!("{{{}}}", mutex.lock_id().key()))
}

/// A lock that this node has, with a name that begins so.
pub(crate) fn on_node(
    cluster: &Cluster,
    node: usize,
    locks: &LockManager,
    name: &str,
) -> NamedMutex {
    let mut mutexes = (0..).map(|number| locks.mutex(format!("{name}-{number}")).expect("a name"));
    let is_there = |mutex: &NamedMutex| cluster.owner(slot_of(cluster, mutex)) == node;
    mutexes.find(is_there).expect("there is no end of names")
}

/// The same lock as another client's.
pub(crate) fn same(locks: &LockManager, mutex: &NamedMutex) -> NamedMutex {
    locks.mutex(mutex.name().clone()).expect("a name")
}

/// Has a task wait for a lock; returns once it is queued.
pub(crate) async fn queue(mutex: NamedMutex) -> JoinHandle<Lease> {
    let (tell, queued) = oneshot::channel();
    let waiting = tokio::spawn(async move {
        let tell = move |_: &Obstacle| tell.send(()).expect("somebody listens");
        let request = mutex.lock().ttl(PATIENCE).timeout(PATIENCE);
        request.on_queued(tell).await.expect("granted in the end")
    });
    queued.await.expect("is queued");
    waiting
}

/// Returns once the lease was renewed by a request that was sent after this was called.
pub(crate) async fn is_renewed(lease: &Lease, ttl: Duration) {
    let begun = tokio::time::Instant::now();
    // More than that is certain of no renewal from before.
    let wait = async {
        while lease.certain_for().expect("has a TTL") + begun.elapsed() <= ttl {
            // sleep: between two looks at a condition with a deadline.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = wait => {}
        error = lease.lost() => panic!("lost instead: {error}"),
    }
}

/// The storage that a lock protects: it takes no write with a lower fencing token than it has seen.
#[derive(Debug, Default)]
pub(crate) struct Register(Mutex<Option<FencingToken>>);

impl Register {
    /// Whether it takes a write of this lease's holder.
    pub(crate) fn write(&self, lease: &Lease) -> bool {
        let mut highest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = highest.is_none_or(|highest| lease.fencing_token() >= highest);
        if takes {
            *highest = Some(lease.fencing_token());
        }
        takes
    }
}

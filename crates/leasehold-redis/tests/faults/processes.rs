//! Processes that are killed or stopped at every step: holding, queued, claimed, and between a request
//! and its answer (rules L3, L4, L10, N7). Nothing proves a death here, so times decide.

use std::time::{Duration, Instant};

use leasehold::{Lease, LockManager, NamedMutex};
use leasehold_core::defaults;
use test_servers::{
    Flavor, Server,
    proxy::{Fate, Proxy},
    wait_until,
};

use crate::{
    PATIENCE, Test,
    actor::{Actor, TTL},
    connect, is_free_in_the_end, run,
};

pub(crate) const TESTS: &[Test] = &[
    ("a_killed_holder_is_followed_after_its_ttl", a_killed_holder),
    ("a_stopped_holder_learns_that_it_has_lost", a_stopped_holder),
    ("a_hundred_killed_waiters_are_passed", a_hundred_killed_waiters),
    ("a_stopped_waiter_is_passed_and_queues_again", a_stopped_waiter),
    ("a_waiter_killed_with_its_claim_is_passed", a_killed_claimant),
    ("a_holder_killed_before_its_answer_is_followed", |flavor| unanswered(flavor, false)),
    ("a_waiter_killed_before_its_answer_is_passed", |flavor| unanswered(flavor, true)),
    ("a_holder_stopped_before_its_answer_does_not_take_it_for_a_lease", stopped_unanswered),
];

/// A grant that nobody confirms is back after this (rule L10).
const CLAIM: Duration = Duration::from_secs(2);
/// What a busy machine may need more.
const SLACK: Duration = Duration::from_secs(8);
const CROWD: usize = 100;

/// A server, a client of it, and its lock.
struct Scene {
    server: Server,
    locks: LockManager,
    mutex: NamedMutex,
}

impl Scene {
    async fn new(flavor: Flavor) -> Self {
        let server = Server::start(flavor).expect("installed");
        let locks = connect(&server.url()).await;
        let mutex = locks.mutex("orders").expect("a name");
        Self { server, locks, mutex }
    }

    fn actor(&self, times: usize) -> Actor {
        Actor::start(&self.server.url(), times)
    }

    async fn held(&self) -> Lease {
        self.mutex.lock().ttl(PATIENCE).await.expect("free")
    }

    /// Gets in, and says after how long.
    async fn next(&self) -> (Lease, Duration) {
        let begun = Instant::now();
        let lease = self.mutex.lock().ttl(PATIENCE).timeout(PATIENCE).await.expect("gets in");
        (lease, begun.elapsed())
    }

    async fn leaves_nothing(self, last: Lease) {
        assert!(last.release().await.expect("answers"), "who was gone ended another's lease");
        self.locks.shutdown().await.expect("answers");
        is_free_in_the_end(&self.server.url(), "orders").await;
    }
}

fn a_killed_holder(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let mut actor = scene.actor(1);
        actor.expect("held");
        actor.kill9();
        let (next, after) = scene.next().await;
        assert!(after <= TTL + SLACK, "only after {after:?}");
        scene.leaves_nothing(next).await;
    });
}

fn a_stopped_holder(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let actor = scene.actor(1);
        actor.expect("held");
        actor.stop();
        let (next, after) = scene.next().await;
        assert!(after <= TTL + SLACK, "only after {after:?}");
        assert!(actor.is_silent(), "it stood still");
        actor.go_on();
        actor.expect("lost");
        actor.expect("nothing to release");
        scene.leaves_nothing(next).await;
    });
}

/// Field report 12.
fn a_hundred_killed_waiters(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let held = scene.held().await;
        let mut actor = scene.actor(CROWD);
        for _ in 0..CROWD {
            actor.expect("queued");
        }
        let next = async {
            let lease = scene.mutex.lock().ttl(PATIENCE).timeout(PATIENCE).await.expect("gets in");
            (lease, Instant::now())
        };
        let release = async {
            while crate::queued(&scene.mutex).await <= CROWD {
                tokio::task::yield_now().await;
            }
            actor.kill9();
            let killed = Instant::now();
            assert!(held.release().await.expect("answers"));
            killed
        };
        let ((next, granted), killed) = tokio::join!(next, release);
        let after = granted - killed;
        assert!(after <= defaults::LIVENESS_LIMIT + CLAIM + SLACK, "only after {after:?}");
        scene.leaves_nothing(next).await;
    });
}

fn a_stopped_waiter(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let held = scene.held().await;
        let actor = scene.actor(1);
        actor.expect("queued");
        actor.stop();
        assert!(held.release().await.expect("answers"));
        let (next, after) = scene.next().await;
        assert!(after <= CLAIM + SLACK, "only after {after:?}");
        actor.go_on();
        assert!(next.release().await.expect("answers"), "still its own");
        actor.expect("held");
        drop(actor);
        let (last, after) = scene.next().await;
        assert!(after <= TTL + SLACK, "only after {after:?}");
        scene.leaves_nothing(last).await;
    });
}

fn a_killed_claimant(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let held = scene.held().await;
        // So that it is the claim that ends.
        let mut actor = Actor::start_with(&scene.server.url(), 1, PATIENCE);
        actor.expect("queued");
        actor.stop();
        assert!(held.release().await.expect("answers"));
        let state = scene.mutex.inspect().await.expect("answers").expect("in use");
        assert!(state.holders.iter().all(|holder| holder.claimed), "{state:?}");
        assert_eq!(state.holders.len(), 1);
        actor.kill9();
        let (next, after) = scene.next().await;
        assert!(after <= CLAIM + SLACK, "only after {after:?}");
        scene.leaves_nothing(next).await;
    });
}

/// The server has done what was asked for, and who asked dies without having heard of it.
fn unanswered(flavor: Flavor, is_queued: bool) {
    run(async {
        let scene = Scene::new(flavor).await;
        let held = if is_queued { Some(scene.held().await) } else { None };
        let proxy = Proxy::to(scene.server.address());
        proxy.on_request(|request| {
            let is_acquisition = request.name().starts_with("EVAL") && request.contains("orders");
            if is_acquisition { Fate::LoseReply } else { Fate::Pass }
        });
        let ttl = if is_queued { PATIENCE } else { TTL };
        let mut actor = Actor::start_with(&proxy.url(), 1, ttl);
        let state = || pollster::block_on(scene.mutex.inspect()).expect("answers");
        wait_until("the server has done it", || {
            state().is_some_and(|state| {
                if is_queued { state.waiters.len() == 1 } else { state.holders.len() == 1 }
            })
        });
        actor.kill9();
        if let Some(held) = held {
            assert!(held.release().await.expect("answers"));
        }
        let (next, after) = scene.next().await;
        let most = if is_queued { CLAIM } else { TTL };
        assert!(after <= most + SLACK, "only after {after:?}");
        scene.leaves_nothing(next).await;
    });
}

/// The answer that waits for it when it goes on is about a grant that has run out meanwhile.
fn stopped_unanswered(flavor: Flavor) {
    run(async {
        let scene = Scene::new(flavor).await;
        let proxy = Proxy::to(scene.server.address());
        proxy.on_request(|request| {
            let is_acquisition = request.name().starts_with("EVAL") && request.contains("orders");
            // Long enough to be stopped in, and not so long that it is asked for again.
            if is_acquisition { Fate::DelayReply(Duration::from_millis(400)) } else { Fate::Pass }
        });
        let actor = Actor::start(&proxy.url(), 1);
        wait_until("the server has done it", || {
            pollster::block_on(scene.mutex.is_locked()).expect("answers")
        });
        actor.stop();
        let (next, after) = scene.next().await;
        assert!(after <= TTL + SLACK, "only after {after:?}");
        assert!(actor.is_silent(), "it was stopped too late");
        proxy.clear();
        actor.go_on();
        match actor.says().as_str() {
            "held" => {
                actor.expect("lost");
                actor.expect("nothing to release");
            }
            // It was asked for once more, as another wait.
            "queued" => assert!(actor.is_silent(), "two hold at once"),
            other => panic!("an actor says {other:?}"),
        }
        drop(actor);
        scene.leaves_nothing(next).await;
    });
}

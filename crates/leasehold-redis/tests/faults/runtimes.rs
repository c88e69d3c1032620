//! Runtimes that their own callers block, that are many, and that end before an answer has come: the
//! client's thread sends instead, and nothing is lost, hangs or stays behind.

use std::{
    hint,
    pin::pin,
    sync::{Arc, mpsc::channel},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use leasehold::{Lease, LockManager, NamedMutex};
use leasehold_redis::{RedisBackend, RedisConfig};
use pollster::block_on;
use test_servers::{
    Flavor, Server,
    proxy::{Fate, Proxy},
    wait_until,
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    PATIENCE, Test, connect, is_free_in_the_end,
    witness::{Errors, Witness},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_blocked_runtime_loses_no_lease_and_hangs_no_call", blocks_its_runtime),
    ("a_wait_that_blocks_its_runtime_is_granted", waits_and_blocks_its_runtime),
    ("a_caller_that_spins_hangs_no_call", spins),
    ("many_blocking_calls_in_one_turn_of_a_task", many_calls_in_one_turn),
    ("two_runtimes_take_turns_until_one_ends", two_runtimes),
    ("what_a_runtime_had_asked_for_when_it_ended_is_given_back", asked_for_by_the_dead),
    ("an_answer_outlives_the_runtime_that_asked", outlives_its_runtime),
    ("runtimes_that_come_and_go_have_connections_of_their_own", come_and_go),
];

const TTL: Duration = Duration::from_millis(1_500);
/// More than have a connection of their own at one time.
const MANY: u64 = 12;

/// A runtime of one thread: who blocks it blocks its connection, too.
fn alone() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn orders(locks: &LockManager) -> NamedMutex {
    locks.mutex("orders").expect("a name")
}

fn blocks_its_runtime(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    let others = block_on(connect(&server.url()));
    alone().block_on(async {
        let locks = connect(&server.url()).await;
        let mutex = orders(&locks);
        // This opens the runtime's own connection.
        let lease = mutex.lock().ttl(TTL).renew().await.expect("free");
        // sleep: the runtime stands still for longer than the lease lasts.
        thread::sleep(TTL * 2);
        assert!(lease.is_held(), "it was not renewed");
        assert!(orders(&others).try_lock().blocking().expect("answers").is_none());
        assert!(block_on(lease.extend(PATIENCE)).expect("is answered"));
        assert!(lease.release_blocking().expect("is answered"));
        let again = mutex.lock().ttl(PATIENCE).blocking().expect("is answered");
        assert!(block_on(mutex.inspect()).expect("is answered").is_some());
        assert!(again.release_blocking().expect("is answered"));
        // And with turns for the runtime again, all is as ever.
        assert!(mutex.lock().await.expect("free").release().await.expect("answers"));
    });
    block_on(is_free_in_the_end(&server.url(), "orders"));
}

fn waits_and_blocks_its_runtime(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    let others = block_on(connect(&server.url()));
    let held = orders(&others).lock().ttl(PATIENCE).blocking().expect("free");
    alone().block_on(async {
        let locks = connect(&server.url()).await;
        assert!(orders(&locks).try_lock().await.expect("answers").is_none());
        let (tell, told) = channel();
        let next = thread::scope(|scope| {
            scope.spawn(move || {
                told.recv().expect("is queued");
                assert!(held.release_blocking().expect("answers"));
            });
            let queued = move |_: &leasehold::Obstacle| tell.send(()).expect("somebody listens");
            orders(&locks).lock().timeout(PATIENCE).on_queued(queued).blocking()
        });
        assert!(next.expect("granted in the end").release_blocking().expect("is answered"));
    });
    block_on(is_free_in_the_end(&server.url(), "orders"));
}

/// Polls without a pause and without a turn for anybody else in this thread.
fn spin<T>(future: impl Future<Output = T>) -> T {
    let (mut future, begun) = (pin!(future), Instant::now());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        assert!(begun.elapsed() < PATIENCE, "it hangs");
        hint::spin_loop();
    }
}

fn spins(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    alone().block_on(async {
        let locks = connect(&server.url()).await;
        let lease = orders(&locks).lock().ttl(TTL).renew().await.expect("free");
        let begun = Instant::now();
        while begun.elapsed() < TTL * 2 {
            assert!(lease.is_held(), "it was not renewed");
            hint::spin_loop();
        }
        assert!(spin(lease.release()).expect("is answered"));
        let again = spin(orders(&locks).lock().ttl(TTL).into_future()).expect("is answered");
        assert!(spin(again.release()).expect("is answered"));
    });
    block_on(is_free_in_the_end(&server.url(), "orders"));
}

/// The task's share of its turn is soon used up, and who blocks does not get another one.
fn many_calls_in_one_turn(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    let runtime = Runtime::new().expect("threads");
    let url = server.url();
    let calls = runtime.spawn(async move {
        let locks = connect(&url).await;
        for _ in 0..200 {
            let lease = orders(&locks).lock().blocking().expect("free");
            assert!(lease.release_blocking().expect("answers"));
        }
    });
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE / 2, calls).await });
    // What hangs in a worker would hang the runtime's end, too.
    runtime.shutdown_background();
    ended.expect("no call hangs").expect("no panic");
    block_on(is_free_in_the_end(&server.url(), "orders"));
}

fn two_runtimes(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    let locks = block_on(connect(&server.url()));
    let witness = Arc::new(Witness::default());
    let turns = |runtime: &Runtime| {
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let (mutex, witness) = (orders(&locks), Arc::clone(&witness));
                runtime.spawn(async move {
                    for _ in 0..20 {
                        witness.visit(&mutex, Errors::Hidden).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).expect("every turn was taken");
        }
    };
    let [first, second] = [alone(), alone()];
    thread::scope(|scope| {
        scope.spawn(|| turns(&first));
        scope.spawn(|| turns(&second));
    });
    drop(first);
    turns(&second);
    drop(second);
    block_on(witness.visit(&orders(&locks), Errors::Hidden));
    assert_eq!(witness.visits(), 3 * 2 * 20 + 1);
    block_on(is_free_in_the_end(&server.url(), "orders"));
}

/// A server, a client whose runtime has a connection, and a proxy between them that holds back the
/// answers to whatever is asked in scripts from now on.
struct Unanswered {
    server: Server,
    proxy: Proxy,
    runtime: Runtime,
    locks: LockManager,
    direct: LockManager,
}

impl Unanswered {
    fn new(flavor: Flavor) -> Self {
        let server = Server::start(flavor).expect("installed");
        let proxy = Proxy::to(server.address());
        let runtime = Runtime::new().expect("threads");
        let locks = block_on(connect(&proxy.url()));
        runtime.block_on(async {
            let lease = orders(&locks).lock().await.expect("free");
            assert!(lease.release().await.expect("answers"));
        });
        proxy.on_request(|request| {
            let is_script = request.name().starts_with("EVAL");
            if is_script { Fate::LoseReply } else { Fate::Pass }
        });
        let direct = block_on(connect(&server.url()));
        Self { server, proxy, runtime, locks, direct }
    }

    fn wait_until_it_is_held(&self) {
        wait_until("the server has granted it", || {
            block_on(orders(&self.direct).is_locked()).expect("answers")
        });
    }
}

fn asked_for_by_the_dead(flavor: Flavor) {
    let scene = Unanswered::new(flavor);
    let mutex = orders(&scene.locks);
    let asking = scene.runtime.spawn(async move { mutex.lock().ttl(PATIENCE).await });
    scene.wait_until_it_is_held();
    scene.runtime.shutdown_background();
    assert!(block_on(asking).expect_err("its runtime has ended").is_cancelled());
    scene.proxy.clear();
    // Long before its TTL.
    block_on(is_free_in_the_end(&scene.server.url(), "orders"));
}

fn outlives_its_runtime(flavor: Flavor) {
    let scene = Unanswered::new(flavor);
    let (mutex, handle) = (orders(&scene.locks), scene.runtime.handle().clone());
    let asking = thread::spawn(move || {
        let _inside = handle.enter();
        block_on(mutex.lock().ttl(PATIENCE).into_future())
    });
    scene.wait_until_it_is_held();
    let holder = || block_on(orders(&scene.direct).inspect()).expect("answers").expect("held");
    let granted = holder().holders[0].fencing;
    scene.proxy.clear();
    scene.runtime.shutdown_background();
    let lease: Lease = asking.join().expect("no panic").expect("asked again");
    assert_eq!(lease.fencing_token(), granted, "the same grant");
    assert!(lease.release_blocking().expect("answers"));
    block_on(is_free_in_the_end(&scene.server.url(), "orders"));
}

fn come_and_go(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    let config = RedisConfig::new(&server.url()).expect("a URL");
    let backend = Arc::new(block_on(RedisBackend::connect(config)).expect("connects"));
    let locks = LockManager::builder().shared(Arc::clone(&backend) as _);
    for number in 1..=MANY {
        let (before, _) = backend.requests();
        alone().block_on(async {
            let lease = orders(&locks).lock().await.expect("free");
            assert!(lease.release().await.expect("answers"));
        });
        let (by_callers, _) = backend.requests();
        assert!(by_callers >= before + 2, "runtime {number} has no connection of its own");
    }
}

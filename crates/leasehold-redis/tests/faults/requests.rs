//! How many requests an acquisition is, counted at the client (rule L6).

use std::sync::Arc;

use leasehold::{LockManager, NamedMutex};
use leasehold_redis::{RedisBackend, RedisConfig};
use test_servers::{Flavor, Server};
use tokio::sync::mpsc::unbounded_channel;

use crate::{PATIENCE, Test, run};

pub(crate) const TESTS: &[Test] =
    &[("l6_an_acquisition_is_few_requests_whatever_the_queue", l6_few_requests)];

/// Beats, renewals and looks at expiries go over the connection of the client's thread, which is
/// another one: only what callers ask is counted.
fn l6_few_requests(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let config = RedisConfig::new(&server.url()).expect("a URL");
        let backend = Arc::new(RedisBackend::connect(config).await.expect("connects"));
        let locks = LockManager::builder().shared(Arc::clone(&backend) as _);
        let mutex = locks.mutex("orders").expect("a name");
        // A script that the server does not know yet is sent twice.
        crowd(&mutex, 1).await;

        let mut before = backend.requests().0;
        let mut since = || {
            let now = backend.requests().0;
            now - std::mem::replace(&mut before, now)
        };
        let lease = mutex.lock().await.expect("free");
        assert_eq!(since(), 1, "an uncontended acquisition");
        assert!(mutex.try_lock().await.expect("answers").is_none());
        assert_eq!(since(), 1, "a try that finds it busy");
        let waiting = mutex.lock().timeout(std::time::Duration::from_millis(20)).await;
        assert!(waiting.expect_err("it is held").is_timeout());
        assert_eq!(since(), 2, "a wait that is given up");
        assert!(lease.release().await.expect("answers"));
        assert_eq!(since(), 1, "a release");
        for waiters in [1, 10, 300] {
            crowd(&mutex, waiters).await;
            assert_eq!(since(), 2 + 3 * waiters, "one holder, then {waiters} that queued");
        }
    });
}

/// Somebody holds the lock until so many wait for it, who then get in one after the other.
async fn crowd(mutex: &NamedMutex, waiters: u64) {
    let first = mutex.lock().ttl(PATIENCE).await.expect("free");
    let (tell, mut queued) = unbounded_channel();
    let mut tasks = Vec::new();
    for _ in 0..waiters {
        let (mutex, tell) = (mutex.clone(), tell.clone());
        tasks.push(tokio::spawn(async move {
            let tell = move |_: &leasehold::Obstacle| tell.send(()).expect("somebody listens");
            let acquire = mutex.lock().ttl(PATIENCE).timeout(PATIENCE).on_queued(tell);
            acquire.await.expect("granted").release().await.expect("answers")
        }));
    }
    for _ in 0..waiters {
        queued.recv().await.expect("every one of them is queued");
    }
    assert!(first.release().await.expect("answers"));
    for task in tasks {
        assert!(task.await.expect("no panic"));
    }
}

//! Renewal and loss (rules L2, L3).

mod common;

use std::{sync::Arc, time::Duration};

use common::{Probe, manual, ms, now};
use leasehold::{
    Backend, ErrorKind, LeaseState, LockManager, ManualClock, MemoryBackend, MemoryStore,
    Remaining, RunError,
};

/// Looks until `done` holds; the renewal thread works beside the test.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::yield_now();
    }
}

fn destroy(backend: &MemoryBackend, lock: &leasehold::LockId) {
    now(backend.destroy(&Arc::new(lock.clone()), None, "destroyed by the test")).unwrap();
}

#[test]
fn l2_a_lease_is_renewed_while_it_is_held() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    for _ in 0..10 {
        clock.advance(Duration::from_secs(20));
        let full = Remaining::Left(Duration::from_secs(60));
        eventually("renewed", || now(lease.remaining()).unwrap() == full);
    }
    assert_eq!(lease.state(), LeaseState::Held);
}

#[test]
fn l2_a_ttl_of_ones_own_is_not_renewed_unless_asked() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(60))).unwrap();
    clock.advance(Duration::from_secs(60));
    assert!(!lease.is_held());
    assert_eq!(lease.state(), LeaseState::Lost);
    drop(lease);

    let renewed = now(orders.lock().ttl(Duration::from_secs(6)).renew()).unwrap();
    clock.advance(Duration::from_secs(2));
    let full = Remaining::Left(Duration::from_secs(6));
    eventually("renewed", || now(renewed.remaining()).unwrap() == full);
}

#[test]
fn l2_max_hold_ends_the_renewal() {
    // Field reports 24 and 25.
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().max_hold(Duration::from_secs(30))).unwrap();
    clock.advance(Duration::from_secs(20));
    eventually("renewed once", || {
        now(lease.remaining()).unwrap() == Remaining::Left(Duration::from_secs(60))
    });
    clock.advance(Duration::from_secs(59));
    assert_eq!(now(lease.remaining()).unwrap(), Remaining::Left(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(now(lease.remaining()).unwrap(), Remaining::Gone);
}

#[test]
fn l2_later_renewals_use_the_extension() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    assert!(now(lease.extend(Duration::from_secs(300))).unwrap());
    clock.advance(Duration::from_secs(100));
    eventually("renewed with the extended TTL", || {
        now(lease.remaining()).unwrap() == Remaining::Left(Duration::from_secs(300))
    });
}

#[test]
fn l3_the_local_deadline_comes_before_the_stores() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(10))).unwrap();
    let mut lost = Probe::boxed_lost(lease);
    clock.advance(ms(9_899));
    assert!(lost.waits());
    clock.advance(ms(1));
    assert!(now(orders.is_locked()).unwrap(), "the store gives it 1 % longer");
    let error = lost.done();
    assert!(matches!(error.kind(), ErrorKind::Lost { .. }));
    assert!(error.to_string().contains("TTL ran out"), "{error}");
}

#[test]
fn l3_what_is_certain_gets_shorter_until_the_store_is_heard_from() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(10))).unwrap();
    assert_eq!(lease.certain_for(), Some(ms(9_900)));
    clock.advance(ms(900));
    assert_eq!(lease.certain_for(), Some(ms(9_000)));
    now(lease.extend(Duration::from_secs(1))).unwrap();
    assert_eq!(lease.certain_for(), Some(ms(990)));
    now(lease.extend(None)).unwrap();
    assert_eq!(lease.certain_for(), None);
    now(lease.release()).unwrap();
    assert_eq!(lease.certain_for(), Some(Duration::ZERO));
}

#[test]
fn l3_lost_completes_when_the_lock_is_destroyed() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock));
    let locks = LockManager::new(store.client());
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(None)).unwrap();
    let mut lost = Probe::boxed_lost(lease);
    destroy(&store.client(), orders.lock_id());
    assert!(lost.done().to_string().contains("destroyed"));
}

#[test]
fn l3_a_run_under_a_lost_lease_keeps_its_output() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let run = {
        let (orders, clock) = (orders.clone(), clock.clone());
        now(async move {
            orders
                .lock()
                .ttl(ms(100))
                .run(async |_| {
                    clock.advance(ms(200));
                    42
                })
                .await
        })
    };
    let Err(RunError::Lost { output: Some(42), error }) = run else {
        panic!("expected the loss, with the output: {run:?}");
    };
    assert!(matches!(error.kind(), ErrorKind::Lost { .. }));
    // Without `Debug` of the output, and as a plain error.
    let plain: leasehold::Error =
        RunError::Lost { output: Some(std::cell::Cell::new(1)), error }.into();
    assert!(plain.to_string().contains("mutex \"orders\""));
}

#[test]
fn l3_an_unknown_token_is_lost_at_the_next_renewal() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let locks = LockManager::new(store.client());
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let lock = Arc::new(orders.lock_id().clone());
    now(store.client().release(&lock, lease.token())).unwrap();
    assert!(lease.is_held(), "not known here yet");
    clock.advance(Duration::from_secs(20));
    eventually("lost", || lease.state() == LeaseState::Lost);
    // Field report 28: the release of a lost lease returns at once.
    assert!(!now(lease.release()).unwrap());
}

#[test]
fn a_released_lease_is_not_renewed() {
    // Field reports 20 and 23: a grant that somebody else brings about with the same token later
    // must not be kept alive by the first one's renewal.
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let token = leasehold::Token::new("mine").unwrap();
    let first = now(orders.lock().token(token.clone())).unwrap();
    now(first.release()).unwrap();
    let second = now(orders.lock().token(token).ttl(Duration::from_secs(60))).unwrap();
    let canary = now(locks.mutex("canary").unwrap().lock()).unwrap();
    clock.advance(Duration::from_secs(20));
    let full = Remaining::Left(Duration::from_secs(60));
    eventually("the renewal ran", || now(canary.remaining()).unwrap() == full);
    assert_eq!(now(second.remaining()).unwrap(), Remaining::Left(Duration::from_secs(40)));
}

impl Probe<leasehold::Error> {
    fn boxed_lost(lease: leasehold::Lease) -> Self {
        Self::pending(async move { lease.lost().await })
    }
}

/// A store whose renewals are answered when the test says so.
#[derive(Debug)]
struct SlowRenewal {
    store: MemoryBackend,
    gate: leasehold_core::Wake,
    asked: std::sync::atomic::AtomicU32,
}

mod slow {
    use leasehold_core::*;

    use super::{Arc, SlowRenewal};

    macro_rules! pass {
        ($($name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {
            $(fn $name(&self, $($arg: $type),*) $(-> $out)? { Backend::$name(&self.0.store, $($arg),*) })*
        };
    }

    #[derive(Clone, Debug)]
    pub(super) struct Shared(pub(super) Arc<SlowRenewal>);

    impl Backend for Shared {
        pass! {
            store() -> &'static str;
            capabilities() -> Capabilities;
            client() -> ClientId;
            clock() -> &Arc<dyn Clock>;
            store_time(local: LocalTime) -> StoreTime;
            part(lock: &LockId) -> u64;
            acquire(request: &Acquire) -> Call<Acquired>;
            confirm(lock: &Arc<LockId>, token: &Token) -> Call<Confirmed>;
            extend(lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended>;
            rebind(lock: &Arc<LockId>, token: &Token, to: Binding, ttl: Option<Ttl>) -> Call<Option<Grant>>;
            release(lock: &Arc<LockId>, token: &Token) -> Call<Released>;
            abandon(lock: &Arc<LockId>, token: &Token);
            remaining(lock: &Arc<LockId>, token: &Token) -> Call<Remaining>;
            watch(lock: &Arc<LockId>, generation: Option<Generation>, id: &Token, what: WatchFor) -> Call<Watched>;
            unwatch(lock: &Arc<LockId>, id: &Token);
            cancel_all(lock: &Arc<LockId>, reason: &str) -> Call<u64>;
            destroy(lock: &Arc<LockId>, generation: Option<Generation>, reason: &str) -> Call<Destroyed>;
            counts(lock: &Arc<LockId>) -> Call<Option<LockCounts>>;
            inspect(lock: &Arc<LockId>) -> Call<Option<LockState>>;
            survey(namespace: Option<&Namespace>) -> Call<Vec<LockState>>;
            close() -> Call<()>;
        }

        fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
            let inner = Arc::clone(&self.0);
            inner.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Call::pending(async move {
                // The store has answered; the answer is on its way.
                let answer = inner.store.renew(leases).await;
                inner.gate.notified().await;
                answer
            })
        }
    }
}

#[test]
fn an_extension_that_meets_a_renewal_ends_neither() {
    // Field report 19: the renewal must not stop in silence.
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let slow = Arc::new(SlowRenewal {
        store: store.client(),
        gate: leasehold_core::Wake::new(),
        asked: std::sync::atomic::AtomicU32::new(0),
    });
    let asked = |times| slow.asked.load(std::sync::atomic::Ordering::SeqCst) == times;
    let locks = LockManager::new(slow::Shared(Arc::clone(&slow)));
    let lease = now(locks.mutex("orders").unwrap().lock()).unwrap();
    clock.advance(Duration::from_secs(20));
    eventually("the renewal is on its way", || asked(1));
    clock.advance(ms(1));
    assert!(now(lease.extend(Duration::from_secs(3))).unwrap());
    slow.gate.notify();
    // The late answer does not undo the extension: lost by the local clock 1 % before the end.
    let mut renewed = 1;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(1));
        renewed += 1;
        eventually("renewed with the extended TTL", || asked(renewed));
        slow.gate.notify();
        let full = Remaining::Left(Duration::from_secs(3));
        eventually("answered", || now(lease.remaining()).unwrap() == full && lease.is_held());
    }
    // Without a TTL it rests, with one it goes on.
    assert!(now(lease.extend(None)).unwrap());
    clock.advance(Duration::from_secs(1000));
    assert!(lease.is_held());
    assert!(now(lease.extend(Duration::from_secs(3))).unwrap());
    clock.advance(Duration::from_secs(1));
    eventually("renewed again", || slow.asked.load(std::sync::atomic::Ordering::SeqCst) > renewed);
}

#[test]
fn the_order_of_ttl_and_renew_does_not_matter() {
    for renew_first in [true, false] {
        let (locks, clock) = manual();
        let orders = locks.mutex("orders").unwrap();
        let asking = if renew_first {
            orders.lock().renew().ttl(Duration::from_secs(6))
        } else {
            orders.lock().ttl(Duration::from_secs(6)).renew()
        };
        let lease = now(asking).unwrap();
        clock.advance(Duration::from_secs(2));
        let full = Remaining::Left(Duration::from_secs(6));
        eventually("renewed", || now(lease.remaining()).unwrap() == full);
    }
}

#[test]
fn t4_a_lease_that_is_lost_here_is_not_extended() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(10))).unwrap();
    clock.advance(ms(9_950));
    assert!(!lease.is_held());
    assert!(!now(lease.extend(Duration::from_secs(10))).unwrap());
}

//! What cannot be seen through the trait: which entries and timers the store keeps.

use std::time::Duration;

use super::*;
use crate::{
    Acquire, Acquired, AttemptId, Backend, Binding, Capacity, CapacityClaim, HolderInfo, LockId,
    LockKind, LockName, ManualClock, Namespace, Share, Token, Ttl, defaults,
};

fn id(n: usize) -> Arc<LockId> {
    let name = LockName::new(format!("n{n}")).unwrap();
    Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name))
}

fn request(lock: &Arc<LockId>, ttl: Option<Ttl>) -> Acquire {
    Acquire {
        lock: Arc::clone(lock),
        generation: None,
        capacity: CapacityClaim::Exactly(Capacity::ONE),
        share: Share::ONE,
        token: Token::random(),
        attempt: AttemptId::random(),
        ttl,
        binding: Binding::Client,
        wait: false,
        not_after: None,
        queue_limit: 10,
        info: Arc::new(HolderInfo::from_parts("host", 1, None)),
    }
}

fn take(client: &MemoryBackend, lock: &Arc<LockId>, ttl: Option<Ttl>) -> (Token, u64) {
    let request = request(lock, ttl);
    match client.acquire(&request).into_ready().unwrap().unwrap() {
        Acquired::Granted(grant) => (request.token, grant.fencing.get()),
        other => panic!("{other:?}"),
    }
}

/// Rule Q6, and no growth with names: those that were given back do not stay.
#[test]
fn names_that_are_not_used_again_do_not_pile_up() {
    let store = MemoryStore::new();
    let client = store.client();
    let held: Vec<_> = (0..40_000).map(|n| (id(n), take(&client, &id(n), None).0)).collect();
    assert_eq!(store.0.entries(), 40_000);
    for (lock, token) in &held {
        client.release(lock, token).into_ready().unwrap().unwrap();
    }
    let one_by_one = store.0.entries();
    assert!(one_by_one <= 32 * 513, "{one_by_one}");
    for n in 40_000..100_000 {
        let (token, _) = take(&client, &id(n), None);
        client.release(&id(n), &token).into_ready().unwrap().unwrap();
    }
    assert!(store.0.entries() <= 32 * 513, "{}", store.0.entries());
}

/// Nobody touches these names again and no timer waits for them; the names that come later pay.
#[test]
fn forgotten_expired_grants_do_not_pile_up() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let client = store.client();
    let ttl = Some(Ttl::new(Duration::from_millis(5)).unwrap());
    for n in 0..20_000 {
        take(&client, &id(n), ttl);
        if n % 100 == 0 {
            clock.advance(Duration::from_millis(10));
        }
    }
    assert!(store.0.entries() <= 32 * 200, "{}", store.0.entries());
    assert_eq!(clock.timers(), 0);
}

/// Rule L8: also for a name whose entry was dropped, with a clock that stands still.
#[test]
fn fencing_tokens_grow_over_a_dropped_entry() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let client = store.client();
    let lock = id(0);
    let mut last = 0;
    for round in 0..3 {
        for _ in 0..50 {
            let (token, fence) = take(&client, &lock, None);
            assert!(fence > last, "{fence} after {last}");
            last = fence;
            client.release(&lock, &token).into_ready().unwrap().unwrap();
        }
        // So many others that the idle entry goes.
        for n in 0..40_000 {
            let other = id(1 + round * 40_000 + n);
            let (token, _) = take(&client, &other, None);
            client.release(&other, &token).into_ready().unwrap().unwrap();
        }
    }
}

/// Rule N5: a destroy is remembered for its time, then the entry may go.
#[test]
fn a_remembered_destroy_goes_after_its_time() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let client = store.client();
    for n in 0..5_000 {
        client.destroy(&id(n), None, "gone").into_ready().unwrap().unwrap();
    }
    let use_others = |from: usize| {
        for n in from..from + 40_000 {
            let (token, _) = take(&client, &id(n), None);
            client.release(&id(n), &token).into_ready().unwrap().unwrap();
        }
    };
    let old_handle = || {
        let mut old = request(&id(0), None);
        old.generation = Some(crate::Generation(0));
        client.acquire(&old).into_ready().unwrap().unwrap()
    };
    use_others(100_000);
    let answer = old_handle();
    assert!(matches!(answer, Acquired::Refused(crate::Refusal::Destroyed)), "{answer:?}");
    clock.advance(defaults::DESTROYED_RETENTION);
    use_others(200_000);
    assert!(store.0.entries() <= 32 * 513, "{}", store.0.entries());
    let answer = old_handle();
    assert!(matches!(answer, Acquired::Granted(_)), "{answer:?}");
}

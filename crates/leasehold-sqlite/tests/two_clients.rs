//! Two clients at one store: they take turns, and each hears only what concerns it.

mod support;

use std::time::{Duration, Instant};

use leasehold_core::{
    Acquired, Backend, Binding, Confirmed, Destroyed, Extended, Fault, FaultKind, Generation,
    Refusal, Rejection, Released, Remaining, Renewal, Renewed, WatchFor, Watched,
};
use support::{
    Home, granted, is_busy, mutex, permits, queued, release, request, run, short_id, told,
    told_granted, try_request, ttl, until,
};

#[test]
fn waiters_of_two_clients_are_granted_in_the_order_of_their_arrival() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("turns"));
    let first = request(&lock);
    let fence = granted(&a, &first).fencing;
    let waiting: Vec<_> = (0..6)
        .map(|n| {
            let client = if n % 2 == 0 { &b } else { &a };
            let request = request(&lock);
            let place = queued(client, &request);
            assert_eq!(place.obstacle.ahead, Some(n));
            (client, request, place)
        })
        .collect();
    assert_eq!(release(&a, &first), Released::Holder);
    let mut last = fence;
    for (client, request, place) in &waiting {
        let grant = told_granted(client, request, place);
        assert!(grant.fencing > last, "L8: fences grow");
        last = grant.fencing;
        assert_eq!(release(client, request), Released::Holder);
    }
    assert!(run(a.counts(&lock)).unwrap().is_none(), "nobody uses it");
}

#[test]
fn try_never_barges_and_never_queues() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("try"));
    let held = permits(&lock, 3, 2);
    granted(&a, &held);
    let heavy = permits(&lock, 3, 3);
    let place = queued(&b, &heavy);
    // One permit is free, and somebody is queued before it (rule Q3).
    let light = leasehold_core::Acquire { wait: false, ..permits(&lock, 3, 1) };
    assert!(is_busy(&a, &light));
    assert_eq!(release(&a, &held), Released::Holder);
    told_granted(&b, &heavy, &place);
    assert_eq!(run(a.counts(&lock)).unwrap().unwrap().queued, 0);
}

#[test]
fn a_waiter_that_leaves_lets_in_those_behind_it() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("leaves"));
    let held = permits(&lock, 4, 2);
    granted(&a, &held);
    let (heavy, light) = (permits(&lock, 4, 3), permits(&lock, 4, 2));
    queued(&a, &heavy);
    let place = queued(&b, &light);
    match release(&a, &heavy) {
        Released::Waiter(Some(obstacle)) => assert_eq!(obstacle.ahead, Some(0)),
        other => panic!("{other:?}"),
    }
    told_granted(&b, &light, &place);
}

#[test]
fn an_expired_grant_passes_on_without_a_call_by_anybody() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("expiry"));
    let held = leasehold_core::Acquire { ttl: ttl(300), ..request(&lock) };
    granted(&a, &held);
    let start = Instant::now();
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    told_granted(&b, &wanted, &place);
    assert!(start.elapsed() >= Duration::from_millis(290), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    // T6: the late release of the expired grant touches nobody.
    assert_eq!(release(&a, &held), Released::Unknown);
    assert_eq!(run(a.remaining(&lock, &held.token)).unwrap(), Remaining::Gone);
    assert_eq!(run(a.remaining(&lock, &wanted.token)).unwrap(), Remaining::Never);
}

#[test]
fn an_extension_that_shortens_is_timed_by_the_waiting_client() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("shorter"));
    let held = leasehold_core::Acquire { ttl: ttl(3_600_000), ..request(&lock) };
    granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    assert_eq!(run(a.extend(&lock, &held.token, ttl(100))).unwrap(), Extended::Held);
    let start = Instant::now();
    told_granted(&b, &wanted, &place);
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
}

#[test]
fn a_claim_that_nobody_confirms_passes_on() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("claim"));
    let held = request(&lock);
    granted(&a, &held);
    let silent = leasehold_core::Acquire { ttl: ttl(400), ..request(&lock) };
    let forgotten = queued(&a, &silent);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    release(&a, &held);
    // L10: a claim lives no longer than the TTL.
    told_granted(&b, &wanted, &place);
    assert_eq!(told(&a, &silent, &forgotten), Confirmed::Unknown);
}

#[test]
fn renewal_never_undoes_an_extension() {
    let home = Home::new();
    let (a, lock) = (home.open(), mutex("renew"));
    let held = leasehold_core::Acquire { ttl: ttl(60_000), ..request(&lock) };
    granted(&a, &held);
    assert_eq!(run(a.extend(&lock, &held.token, ttl(3_600_000))).unwrap(), Extended::Held);
    let renewal = Renewal { lock: lock.clone(), token: held.token.clone() };
    let renewed = run(a.renew(vec![renewal.clone()])).unwrap();
    match renewed[..] {
        [Renewed::Held { remaining: Some(left) }] => assert!(left > Duration::from_secs(3500)),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(run(a.extend(&lock, &held.token, None)).unwrap(), Extended::Held);
    let renewed = run(a.renew(vec![renewal.clone()])).unwrap();
    assert_eq!(renewed, [Renewed::Held { remaining: None }]);
    release(&a, &held);
    assert_eq!(run(a.renew(vec![renewal])).unwrap(), [Renewed::Unknown]);
}

#[test]
fn retries_find_their_grant_and_their_place() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("retries"));
    let held = leasehold_core::Acquire { ttl: ttl(60_000), ..request(&lock) };
    let fence = granted(&a, &held).fencing;
    assert_eq!(granted(&a, &held).fencing, fence, "L7: the same grant");
    let stolen = leasehold_core::Acquire { attempt: leasehold_core::AttemptId(1), ..held.clone() };
    let refused = |answer| match answer {
        Acquired::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(run(b.acquire(&stolen)).unwrap()), Refusal::TokenInUse);
    let wanted = request(&lock);
    queued(&b, &wanted);
    let place = queued(&b, &wanted);
    assert_eq!(run(a.counts(&lock)).unwrap().unwrap().queued, 1, "one place");
    let stolen =
        leasehold_core::Acquire { attempt: leasehold_core::AttemptId(1), ..wanted.clone() };
    assert_eq!(refused(run(a.acquire(&stolen)).unwrap()), Refusal::TokenInUse);
    let late = leasehold_core::Acquire {
        not_after: Some(a.store_time(a.clock().now())),
        ..request(&lock)
    };
    assert_eq!(refused(run(a.acquire(&late)).unwrap()), Refusal::Stale);
    let other = permits(&lock, 2, 1);
    let registered = leasehold_core::Capacity::ONE;
    assert_eq!(refused(run(b.acquire(&other)).unwrap()), Refusal::ConfigMismatch { registered });
    let full = leasehold_core::Acquire { queue_limit: 1, ..request(&lock) };
    assert_eq!(refused(run(b.acquire(&full)).unwrap()), Refusal::QueueFull { limit: 1 });
    release(&a, &held);
    told_granted(&b, &wanted, &place);
}

#[test]
fn cancel_all_rejects_the_waiters_of_every_client_and_no_holder() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("cancel"));
    let held = request(&lock);
    granted(&a, &held);
    let waiting: Vec<_> = (0..100)
        .map(|n| {
            let client = if n % 2 == 0 { &a } else { &b };
            let request = request(&lock);
            let place = queued(client, &request);
            (client, request, place)
        })
        .collect();
    assert_eq!(run(b.cancel_all(&lock, "enough")).unwrap(), 100);
    for (client, request, place) in &waiting {
        let reason = "enough".to_owned();
        let told = told(client, request, place);
        assert_eq!(told, Confirmed::Rejected(Rejection::Cancelled { reason }));
        let again = run(client.confirm(&lock, &request.token)).unwrap();
        assert_eq!(again, Confirmed::Unknown, "told once");
    }
    assert_eq!(run(a.remaining(&lock, &held.token)).unwrap(), Remaining::Never);
}

#[test]
fn destroy_ends_a_generation_everywhere_and_fences_go_on() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("destroy"));
    let held = request(&lock);
    let grant = granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    let watcher = leasehold_core::Token::random();
    let Watched::Waiting(wake) = run(b.watch(&lock, None, &watcher, WatchFor::Destroyed)).unwrap()
    else {
        panic!("it is not destroyed");
    };
    let old = Some(grant.generation);
    let next = Generation(grant.generation.0 + 1);
    assert_eq!(run(a.destroy(&lock, old, "gone")).unwrap(), Destroyed::Now { next });
    assert_eq!(run(b.destroy(&lock, old, "gone")).unwrap(), Destroyed::Before);
    let reason = "gone".to_owned();
    assert_eq!(told(&b, &wanted, &place), Confirmed::Rejected(Rejection::Destroyed { reason }));
    run(wake.notified());
    assert!(matches!(
        run(b.watch(&lock, old, &watcher, WatchFor::Destroyed)).unwrap(),
        Watched::Done
    ));
    assert!(matches!(
        run(b.watch(&lock, old, &watcher, WatchFor::Destroyed)).unwrap(),
        Watched::Destroyed
    ));
    assert_eq!(release(&a, &held), Released::Unknown);
    let late = leasehold_core::Acquire { generation: old, ..try_request(&lock) };
    assert!(matches!(run(a.acquire(&late)).unwrap(), Acquired::Refused(Refusal::Destroyed)));
    // Another capacity is fine now (rule N5), and the fences go on.
    let again = permits(&lock, 5, 1);
    let after = granted(&b, &again);
    assert_eq!(after.generation, next);
    assert!(after.fencing > grant.fencing);
}

#[test]
fn watchers_hear_of_frees_and_not_of_hand_overs() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("watch"));
    let held = request(&lock);
    granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&a, &wanted);
    let id = leasehold_core::Token::random();
    let watch = || run(b.watch(&lock, None, &id, WatchFor::Unlocked)).unwrap();
    let Watched::Waiting(wake) = watch() else { panic!("it is held") };
    release(&a, &held);
    told_granted(&a, &wanted, &place);
    assert!(matches!(watch(), Watched::Waiting(_)), "U1: a hand-off is not an unlock");
    release(&a, &wanted);
    run(wake.notified());
    // It stays done although the lock is held again by now.
    granted(&a, &request(&lock));
    assert!(matches!(watch(), Watched::Done));
    // Told once: the next one is a new watcher.
    assert!(matches!(watch(), Watched::Waiting(_)));
    b.unwatch(&lock, &id);
}

#[test]
fn a_watcher_hears_of_an_expiry() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("watch-expiry"));
    granted(&a, &leasehold_core::Acquire { ttl: ttl(200), ..request(&lock) });
    let id = leasehold_core::Token::random();
    let watch = run(b.watch(&lock, None, &id, WatchFor::AnyPermit)).unwrap();
    let Watched::Waiting(wake) = watch else { panic!("it is held") };
    let start = Instant::now();
    run(wake.notified());
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    assert!(matches!(run(b.watch(&lock, None, &id, WatchFor::AnyPermit)).unwrap(), Watched::Done));
}

#[test]
fn a_grant_bound_to_its_token_outlives_its_client() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("ticket"));
    let held = request(&lock);
    granted(&a, &held);
    let rebind = |client: &leasehold_sqlite::SqliteBackend, binding, ttl| {
        run(client.rebind(&lock, &held.token, binding, ttl))
    };
    let refused: Fault = rebind(&a, Binding::Token, None).unwrap_err();
    assert_eq!(refused.kind(), FaultKind::Unsupported, "T8: it needs a TTL");
    assert!(rebind(&a, Binding::Token, ttl(60_000)).unwrap().is_some());
    assert_eq!(run(a.extend(&lock, &held.token, None)).unwrap(), Extended::NeedsTtl);
    run(a.close()).unwrap();
    assert!(is_busy(&b, &try_request(&lock)), "N6: tokens keep what they hold");
    assert!(rebind(&b, Binding::Client, None).unwrap().is_some());
    assert_eq!(release(&b, &held), Released::Holder);
    assert!(rebind(&b, Binding::Client, None).unwrap().is_none());
}

#[test]
fn closing_ends_what_is_bound_to_the_client_and_nothing_else() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("close"));
    granted(&a, &request(&lock));
    let (mine, theirs) = (request(&lock), request(&lock));
    let gone = queued(&a, &mine);
    let place = queued(&b, &theirs);
    run(a.close()).unwrap();
    run(a.close()).unwrap();
    told_granted(&b, &theirs, &place);
    run(gone.wake.notified());
    let after = run(a.confirm(&lock, &mine.token)).unwrap_err();
    assert_eq!(after.kind(), FaultKind::Closed);
    let after = run(a.acquire(&request(&lock))).unwrap_err();
    assert_eq!(after.kind(), FaultKind::Closed);
    let files = std::fs::read_dir(home.side("clients")).unwrap().count();
    assert_eq!(files, 1, "only the other client is left");
}

#[test]
fn dropping_a_client_has_the_same_effect_a_little_later() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("drop"));
    granted(&a, &request(&lock));
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    drop(a);
    told_granted(&b, &wanted, &place);
    until("the files of the dropped client are gone", || {
        std::fs::read_dir(home.side("clients")).unwrap().count() == 1
    });
}

#[test]
fn abandoning_undoes_an_acquisition_that_is_on_its_way() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("abandon"));
    for _ in 0..100 {
        let given_up = request(&lock);
        // Never polled: whatever becomes of it, nothing of it must stay.
        drop(a.acquire(&given_up));
        a.abandon(&lock, &given_up.token);
    }
    until("everything is given back", || run(b.counts(&lock)).unwrap().is_none());
}

#[test]
fn inspection_shows_holders_and_waiters_in_order() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("inspect"));
    let holders = [permits(&lock, 3, 1), permits(&lock, 3, 2)];
    for holder in &holders {
        granted(&a, holder);
    }
    let waiters = [permits(&lock, 3, 2), permits(&lock, 3, 1)];
    for waiter in &waiters {
        queued(&b, waiter);
    }
    let state = run(b.inspect(&lock)).unwrap().unwrap();
    let shown: Vec<_> = state.holders.iter().map(|holder| holder.short_id.clone()).collect();
    assert_eq!(shown, holders.each_ref().map(short_id));
    let shown: Vec<_> = state.waiters.iter().map(|waiter| waiter.short_id.clone()).collect();
    assert_eq!(shown, waiters.each_ref().map(short_id));
    assert_eq!((state.used, state.free()), (3, 0));
    let all = run(a.survey(None)).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(&all[0].lock, &*lock);
}

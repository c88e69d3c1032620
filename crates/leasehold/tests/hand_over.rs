//! Tickets, restored references and adoption (rules T8, T9; acceptance SL1 to SL5).

mod common;

use std::time::Duration;

use common::{Probe, manual, ms, now, two};
use leasehold::{ErrorKind, Remaining, Ticket, Token};

#[test]
fn sl1_restored_from_its_token_it_can_be_released() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    let slot = now(exports.acquire()).unwrap();
    let restored = exports.restore(slot.token().clone());
    assert_eq!(restored.token(), slot.token());
    assert!(now(restored.is_held()).unwrap());
    assert!(now(restored.release()).unwrap());
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
    assert_eq!(now(slot.remaining()).unwrap(), Remaining::Gone);
    assert!(!now(slot.release()).unwrap());
}

#[test]
fn sl2_one_token_through_three_references_gives_one_permit_back() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 2).unwrap();
    let slot = now(exports.acquire()).unwrap();
    let other = now(exports.acquire()).unwrap();
    let references = [0, 1, 2].map(|_| exports.restore(slot.token().clone()));
    let freed = references.iter().filter(|restored| now(restored.release()).unwrap()).count();
    assert_eq!(freed, 1);
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
    assert!(other.is_held());
}

#[test]
fn sl3_an_unknown_token_holds_nothing() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    let unknown = exports.restore(Token::new("nobody").unwrap());
    assert!(!now(unknown.is_held()).unwrap());
    assert!(!now(unknown.release()).unwrap());
    assert!(!now(unknown.extend(ms(100))).unwrap());
    assert_eq!(now(unknown.remaining()).unwrap(), Remaining::Gone);
    assert!(now(unknown.adopt()).unwrap().is_none());
}

#[test]
fn sl5_a_queued_token_is_held_once_it_is_granted() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    let slot = now(exports.acquire()).unwrap();
    let token = Token::new("mine").unwrap();
    let mut waiter = Probe::pending(exports.acquire().token(token.clone()));
    let restored = exports.restore(token);
    assert!(!now(restored.is_held()).unwrap());
    assert!(!now(restored.release()).unwrap(), "a waiter is no grant");
    now(slot.release()).unwrap();
    let _second = waiter.granted();
    assert!(now(restored.is_held()).unwrap());
    assert!(now(restored.release()).unwrap());
}

#[test]
fn l2_a_reference_renews_by_the_grant_s_own_ttl_and_never_shortens() {
    let (here, there, clock) = two();
    let ttl = Duration::from_secs(600);
    let ticket = now(here.mutex("orders").unwrap().lock().ttl(ttl).detached()).unwrap();
    let restored = there.restore(ticket.ticket()).unwrap();
    clock.advance(Duration::from_secs(500));
    assert!(now(restored.renew()).unwrap());
    assert_eq!(now(restored.remaining()).unwrap(), Remaining::Left(ttl));
    assert!(now(restored.extend(ttl * 2)).unwrap());
    clock.advance(ttl);
    assert!(now(restored.renew()).unwrap());
    assert_eq!(now(restored.remaining()).unwrap(), Remaining::Left(ttl * 2));
    clock.advance(ttl * 2);
    assert!(!now(restored.renew()).unwrap(), "a grant that is gone is never revived");
    let endless = now(here.mutex("endless").unwrap().lock().ttl(None)).unwrap();
    let restored = here.mutex("endless").unwrap().restore(endless.token().clone());
    assert!(now(restored.renew()).unwrap());
    assert_eq!(now(restored.remaining()).unwrap(), Remaining::Never);
}

#[test]
fn t8_a_ticket_outlives_the_manager_that_made_it() {
    let (here, there, clock) = two();
    let exports = here.semaphore("exports", 3).unwrap();
    let slots = now(exports.acquire_many(2).ttl(Duration::from_secs(600))).unwrap();
    clock.advance(Duration::from_secs(500));
    let text = now(slots.into_ticket()).unwrap().to_string();
    now(here.shutdown()).unwrap();
    drop((exports, here));
    let ticket: Ticket = text.parse().unwrap();
    let restored = there.restore(&ticket).unwrap();
    // The full TTL counts from the hand-over.
    assert_eq!(now(restored.remaining()).unwrap(), Remaining::Left(Duration::from_secs(600)));
    let lease = now(restored.adopt()).unwrap().unwrap();
    let theirs = there.semaphore("exports", 3).unwrap();
    assert_eq!(now(theirs.free_permits()).unwrap(), 1);
    // Bound to its new client, it ends like any lease.
    drop(lease);
    assert_eq!(now(theirs.free_permits()).unwrap(), 3);
}

#[test]
fn t8_a_detached_grant_ends_with_its_ttl_only() {
    let (here, there, clock) = two();
    let orders = here.mutex("orders").unwrap();
    let detached = now(orders.lock().detached()).unwrap();
    assert!(detached.fencing_token().get() > 0);
    drop((orders, here));
    let theirs = there.mutex("orders").unwrap();
    let mut waiter = Probe::pending(theirs.lock().timeout(None));
    clock.advance(ms(59_999));
    assert!(waiter.waits());
    let restored = there.restore(detached.ticket()).unwrap();
    assert!(now(restored.extend(Duration::from_secs(10))).unwrap());
    clock.advance(ms(9_999));
    assert!(waiter.waits());
    clock.advance(ms(1));
    drop(waiter.granted());
}

#[test]
fn t8_without_a_ttl_nothing_is_handed_over() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let error = now(orders.lock().ttl(None).detached()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    let lease = now(orders.lock().ttl(None)).unwrap();
    let failed = now(lease.into_ticket()).unwrap_err();
    assert!(matches!(failed.error().kind(), ErrorKind::InvalidArgument { .. }));
    // The lease is not lost by the attempt.
    let lease = failed.into_lease();
    assert!(lease.is_held() && now(orders.is_locked()).unwrap());
    // Nor does a token-bound grant ever lose its TTL.
    now(lease.extend(ms(1000))).unwrap();
    let ticket = now(lease.into_ticket()).unwrap();
    assert!(now(locks.restore(&ticket).unwrap().extend(None)).is_err());
}

#[test]
fn t9_an_expired_ticket_adopts_nothing() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let ticket = now(orders.lock().ttl(ms(50)).detached()).unwrap().into_ticket();
    clock.advance(ms(50));
    assert!(now(locks.restore(&ticket).unwrap().adopt().renew()).unwrap().is_none());
    assert!(!now(orders.is_locked()).unwrap());
}

#[test]
fn t9_an_adopted_lease_is_renewed_when_asked() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let ticket = now(orders.lock().ttl(Duration::from_secs(60)).detached()).unwrap().into_ticket();
    let lease = now(locks.restore(&ticket).unwrap().adopt().renew()).unwrap().unwrap();
    clock.advance(Duration::from_secs(20));
    let start = std::time::Instant::now();
    while now(lease.remaining()).unwrap() != Remaining::Left(Duration::from_secs(60)) {
        assert!(start.elapsed() < Duration::from_secs(20), "not renewed");
        std::thread::yield_now();
    }
}

#[test]
fn tickets_that_are_none_are_refused() {
    let (locks, _) = manual();
    assert!(locks.restore("hunter2").is_err());
    let owned = String::from("lh1/default/mutex/orders/token");
    assert_eq!(locks.restore(&owned).unwrap().lock().name().as_str(), "orders");
}

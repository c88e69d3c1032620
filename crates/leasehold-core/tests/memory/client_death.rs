//! What ends with a client, and what does not (rules N6, N7, T8).

use leasehold_core::{Backend, Binding, FaultKind, Released, Remaining, Token, WatchFor};

use crate::kit::{Ask, Kit, answer, is_set, result};

/// Field report 12: the dead are gone at once, from the head, the middle and the tail, and nobody
/// of them is granted on the way.
#[test]
fn a_dead_clients_grants_and_waiters_go_and_the_others_get_in() {
    let kit = Kit::with_capacity(4);
    let (dead, alive) = (kit.client(), kit.client());
    dead.granted(&kit.weighing(3));
    let kept = kit.request();
    alive.granted(&kept);
    dead.queued(&kit.whole());
    let first = alive.queued(&kit.weighing(2));
    let mut detached = kit.lasting(60_000);
    detached.binding = Binding::Token;
    dead.queued(&detached);
    let second = alive.queued(&kit.request());
    dead.queued(&kit.request());
    drop(dead);
    assert!(is_set(&first.wake) && is_set(&second.wake));
    let state = answer(alive.inspect(&kit.lock)).unwrap();
    assert_eq!((state.used, state.waiters.len(), state.holders.len()), (4, 0, 3));
    let fences: Vec<_> = state.holders.iter().map(|holder| holder.fencing.get()).collect();
    // Consecutive while the clock stands still: nobody got one in between.
    assert_eq!(fences[2], fences[1] + 1);
    assert_eq!(alive.left(&kept), Remaining::Never);
}

/// Rule T8: what is bound to its token outlives its client, and may be bound again.
#[test]
fn token_bound_grants_outlive_their_client() {
    let kit = Kit::mutex();
    let (first, second) = (kit.client(), kit.client());
    let mut detached = kit.lasting(60_000);
    detached.binding = Binding::Token;
    first.granted(&detached);
    drop(first);
    assert_eq!(kit.used(), 1);
    let adopted = answer(second.rebind(&kit.lock, &detached.token, Binding::Client, None));
    assert!(adopted.is_some());
    drop(second);
    assert_eq!(kit.used(), 0);
}

/// A grant that was handed to another client is that client's.
#[test]
fn a_rebound_grant_follows_its_new_client() {
    let kit = Kit::mutex();
    let (first, second) = (kit.client(), kit.client());
    let request = kit.request();
    first.granted(&request);
    answer(second.rebind(&kit.lock, &request.token, Binding::Client, None)).unwrap();
    drop(first);
    assert_eq!(second.left(&request), Remaining::Never);
    second.gives_back(&request);
}

/// Rule N6: refused from then on, others untouched, and closing again is fine.
#[test]
fn a_closed_client_is_refused() {
    let kit = Kit::mutex();
    let (client, other) = (kit.client(), kit.client());
    let (held, waiting) = (kit.request(), kit.request());
    client.granted(&held);
    let place = client.queued(&waiting);
    answer(client.close());
    answer(client.close());
    // Who still polls learns of it.
    assert!(is_set(&place.wake));
    let closed = |fault: leasehold_core::Fault| fault.kind() == FaultKind::Closed;
    assert!(closed(result(client.acquire(&held)).unwrap_err()));
    assert!(closed(result(client.confirm(&kit.lock, &waiting.token)).unwrap_err()));
    assert!(closed(result(client.release(&kit.lock, &held.token)).unwrap_err()));
    assert!(closed(result(client.survey(None)).unwrap_err()));
    assert!(closed(result(client.renew(vec![renewal(&kit, &held)])).unwrap_err()));
    client.abandon(&kit.lock, &held.token);
    let next = kit.request();
    other.granted(&next);
    drop(client);
    other.gives_back(&next);
}

fn renewal(kit: &Kit, request: &leasehold_core::Acquire) -> leasehold_core::Renewal {
    leasehold_core::Renewal { lock: kit.lock.clone(), token: request.token.clone() }
}

/// Watchers and untold rejections leave with their client; those of others stay.
#[test]
fn a_dead_clients_watchers_leave() {
    let kit = Kit::mutex();
    let (dead, alive) = (kit.client(), kit.client());
    let holder = kit.lasting(60_000);
    alive.granted(&holder);
    dead.queued(&kit.request());
    answer(alive.cancel_all(&kit.lock, "never told"));
    let gone = dead.watching(&kit.lock, &Token::random(), WatchFor::Unlocked);
    let id = Token::random();
    let stays = alive.watching(&kit.lock, &id, WatchFor::Unlocked);
    drop(dead);
    assert!(is_set(&gone));
    assert!(!is_set(&stays));
    assert_eq!(kit.clock.timers(), 1);
    assert_eq!(answer(alive.release(&kit.lock, &holder.token)), Released::Holder);
    assert!(is_set(&stays));
    assert!(alive.is_done(&kit.lock, &id, WatchFor::Unlocked));
}

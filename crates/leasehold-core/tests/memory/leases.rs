//! Renewing, extending, rebinding (rules L2, T4, T8).

use leasehold_core::{
    Backend, Binding, Extended, FaultKind, Released, Remaining, Renewal, Renewed,
};

use crate::kit::{Ask, Kit, answer, ms, result, ttl};

/// Acceptance SL11, SL12, SL16: now + d, may shorten, `None` removes; a gone grant stays gone.
#[test]
fn extending_sets_the_expiry_and_never_revives() {
    let kit = Kit::mutex();
    let client = kit.client();
    let request = kit.lasting(50);
    client.granted(&request);
    kit.clock.advance(ms(30));
    let extend = |to| answer(client.extend(&kit.lock, &request.token, to));
    assert_eq!(extend(ttl(100)), Extended::Held);
    kit.clock.advance(ms(40));
    assert_eq!(client.left(&request), Remaining::Left(ms(60)));
    assert_eq!(extend(None), Extended::Held);
    assert_eq!(client.left(&request), Remaining::Never);
    kit.clock.advance(ms(1_000_000));
    assert_eq!(extend(ttl(10)), Extended::Held);
    kit.clock.advance(ms(10));
    assert_eq!(extend(ttl(100)), Extended::Gone);
    assert_eq!(client.left(&request), Remaining::Gone);
}

/// Rule L2: a renewal never shortens, and uses what the last extension set.
#[test]
fn renewing_never_undoes_an_extension() {
    let kit = Kit::with_capacity(3);
    let client = kit.client();
    let (short, endless, gone) = (kit.lasting(100), kit.request(), kit.lasting(1));
    for request in [&short, &endless, &gone] {
        client.granted(request);
    }
    answer(client.extend(&kit.lock, &short.token, ttl(1_000)));
    kit.clock.advance(ms(400));
    let renewals = [&short, &endless, &gone]
        .map(|request| Renewal { lock: kit.lock.clone(), token: request.token.clone() });
    let renewed = answer(client.renew(renewals.to_vec()));
    let expected = [
        Renewed::Held { remaining: Some(ms(1_000)) },
        Renewed::Held { remaining: None },
        Renewed::Unknown,
    ];
    assert_eq!(renewed, expected);
    answer(client.extend(&kit.lock, &short.token, ttl(50)));
    assert_eq!(client.left(&short), Remaining::Left(ms(50)));
}

/// Rule T8: a grant bound to its token must end by itself.
#[test]
fn token_bound_grants_need_a_ttl() {
    let kit = Kit::mutex();
    let client = kit.client();
    let request = kit.request();
    client.granted(&request);
    let rebind = |to| result(client.rebind(&kit.lock, &request.token, Binding::Token, to));
    assert_eq!(rebind(None).unwrap_err().kind(), FaultKind::Unsupported);
    assert_eq!(client.left(&request), Remaining::Never);
    assert_eq!(rebind(ttl(100)).unwrap().unwrap().remaining, Some(ms(100)));
    kit.clock.advance(ms(40));
    // Set before, so none is needed, and the expiry stays.
    assert_eq!(rebind(None).unwrap().unwrap().remaining, Some(ms(60)));
    let unbounded = client.extend(&kit.lock, &request.token, None);
    assert_eq!(answer(unbounded), Extended::NeedsTtl);
    assert_eq!(client.left(&request), Remaining::Left(ms(60)));
    kit.clock.advance(ms(60));
    assert!(rebind(ttl(100)).unwrap().is_none());
    let mut detached = kit.request();
    detached.binding = Binding::Token;
    assert_eq!(result(client.acquire(&detached)).unwrap_err().kind(), FaultKind::Unsupported);
    assert_eq!(kit.used(), 0);
}

/// Acceptance SL1, SL3, SL5: a token is held from its grant to its end, whoever asks.
#[test]
fn a_token_is_found_only_while_it_holds() {
    let kit = Kit::mutex();
    let (one, two) = (kit.client(), kit.client());
    let (holder, waiter) = (kit.request(), kit.lasting(1_000));
    one.granted(&holder);
    one.queued(&waiter);
    assert_eq!(two.left(&waiter), Remaining::Gone);
    assert_eq!(answer(two.extend(&kit.lock, &waiter.token, ttl(5))), Extended::Gone);
    assert!(answer(two.rebind(&kit.lock, &waiter.token, Binding::Client, None)).is_none());
    two.gives_back(&holder);
    assert_eq!(two.left(&waiter), Remaining::Left(ms(1_000)));
    two.gives_back(&waiter);
    let unknown = kit.request();
    assert_eq!(answer(two.release(&kit.lock, &unknown.token)), Released::Unknown);
}

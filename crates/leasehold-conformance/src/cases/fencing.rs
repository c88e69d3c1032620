//! The fencing token grows with every grant of a name, whatever happens in between (rule L8).

use leasehold_core::{Binding, FencingToken};

use crate::{Bench, bench::DEATH_BOUND, case::theme};

theme! {
    Nothing, "L8", l8_fencing_grows_with_every_grant;
    Nothing, "L8", l8_fencing_grows_with_concurrent_grants;
    Nothing, "L8", l8_fencing_grows_over_idle_times;
    Nothing, "L8, N5", l8_fencing_grows_over_generations;
    Nothing, "L8, T3", l8_fencing_grows_over_expiry_and_claims;
    Proof, "L8, T8", l8_fencing_grows_over_the_death_of_clients;
    Nothing, "L8", l8_fencing_is_not_behind_the_clock_of_the_store;
    Nothing, "L8", l8_fencing_of_a_grant_never_changes;
}

#[track_caller]
fn assert_grows(tokens: &[FencingToken]) {
    assert!(tokens.is_sorted_by(|one, next| one < next), "fencing tokens step back: {tokens:?}");
}

/// The store's clock may stand still between two grants.
fn l8_fencing_grows_with_every_grant(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("every"));
    let mut tokens = Vec::new();
    for _ in 0..50 {
        let first = a.acquire(&lock).held();
        let waiter = b.acquire(&lock).queued();
        first.release();
        let second = waiter.granted();
        tokens.extend([first.fencing(), second.fencing()]);
        second.release();
    }
    assert_grows(&tokens);
}

fn l8_fencing_grows_with_concurrent_grants(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.rw_lock("concurrent", 10));
    let write = a.acquire(&lock).whole().held();
    let reads: Vec<_> = (0..10).map(|_| a.acquire(&lock).queued()).collect();
    write.release();
    let mut tokens = vec![write.fencing()];
    tokens.extend(reads.iter().map(|read| read.granted().fencing()));
    assert_grows(&tokens);
    let told: Vec<_> = a.inspect(&lock).holders.iter().map(|holder| holder.fencing).collect();
    assert_eq!(told, tokens[1..], "as the store lists them");
}

fn l8_fencing_grows_over_idle_times(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("idle", 2));
    let mut tokens = Vec::new();
    for capacity in [2, 2, 5, 1] {
        let held = a.acquire(&lock.claiming(capacity)).held();
        tokens.push(held.fencing());
        held.release();
        a.assert_empty();
        bench.pass(1);
    }
    assert_grows(&tokens);
}

fn l8_fencing_grows_over_generations(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("generations"));
    let mut tokens = Vec::new();
    for _ in 0..5 {
        tokens.push(a.acquire(&lock).held().fencing());
        a.destroy(&lock, None, "next");
    }
    assert_grows(&tokens);
}

fn l8_fencing_grows_over_expiry_and_claims(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("expiry"));
    let expires = a.acquire(&lock).ttl(bench.steps(1)).held();
    let (silent, next) = (a.acquire(&lock).queued(), a.acquire(&lock).queued());
    bench.pass(1);
    silent.woken();
    let claimed = a.inspect(&lock).holders[0].fencing;
    bench.pass_a_claim();
    let next = next.granted();
    assert_grows(&[expires.fencing(), claimed, next.fencing()]);
}

fn l8_fencing_grows_over_the_death_of_clients(bench: &Bench) {
    let (watcher, lock) = (bench.client(), bench.mutex("death"));
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let client = bench.client();
        tokens.push(client.acquire(&lock).held().fencing());
        bench.kill(client);
        watcher.eventually_unused(&lock, DEATH_BOUND);
    }
    assert_grows(&tokens);
}

/// So that it keeps growing when the store's state was lost in between.
fn l8_fencing_is_not_behind_the_clock_of_the_store(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("clock"));
    for _ in 0..2 {
        bench.pass(2);
        // What a client knows of the store's time may be off by a step.
        let least = a
            .store_time()
            .0
            .saturating_sub(u64::try_from(bench.steps(1).as_micros()).expect("a step is short"));
        let held = a.acquire(&lock).held();
        assert!(held.fencing().get() >= least, "{} at {least} µs", held.fencing());
        held.release();
    }
}

fn l8_fencing_of_a_grant_never_changes(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("same"));
    let held = a.acquire(&lock).ttl(bench.steps(90)).held();
    held.renew();
    held.extend(Some(bench.steps(95)));
    let restored = b.restore(&lock, held.token());
    for binding in [Binding::Token, Binding::Client] {
        let grant = restored.rebind(binding, None).expect("the grant has a TTL").expect("held");
        assert_eq!(grant.fencing, held.fencing());
    }
    assert_eq!(a.inspect(&lock).holders[0].fencing, held.fencing());
}

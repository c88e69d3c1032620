//! Names, kinds, namespaces and capacities (rules N1 to N3).

use leasehold_core::{LockKind, Refusal};

use crate::{
    Bench,
    bench::{Held, Lock, capacity_of},
    case::theme,
};

theme! {
    Nothing, "N1, acceptance G4", n1_one_name_in_three_kinds_is_three_locks;
    Nothing, "N1, acceptance G15", n1_namespaces_are_apart;
    Nothing, "N1, acceptance G1, G5", n1_equal_names_are_one_lock_for_all_clients;
    Nothing, "N3", n3_any_characters_name_a_lock_of_its_own;
    Nothing, "N3", n3_any_characters_name_a_namespace_of_its_own;
    Nothing, "N3", n3_the_longest_names_work;
    Nothing, "N3", n3_unicode_is_not_normalized_and_case_counts;
    Nothing, "N2, acceptance G6, G7", n2_another_capacity_is_refused_while_in_use;
    Nothing, "N2", n2_a_token_bound_grant_keeps_the_capacity;
    Nothing, "N2, field report 56", n2_an_idle_lock_takes_the_capacity_of_who_asks_next;
    Nothing, "N2, acceptance G7", n2_no_capacity_given_takes_what_is_registered;
    Nothing, "N2", n2_the_largest_capacity_works;
}

/// Texts that an encoding with separators, patterns, quotes or ends of text would mix up.
const TEXTS: [&str; 24] = [
    "a",
    "A",
    "a/b",
    "a%2Fb",
    "{a}",
    "a}b{c",
    "a:b",
    "a::b",
    "a b",
    " a",
    "a ",
    "a\nb",
    "a\r\n",
    "\0",
    "a\0b",
    "🔒",
    "%",
    "%00",
    "mutex",
    "default/mutex/a",
    "é",
    "e\u{301}",
    "'; --",
    "*?[a]",
];

fn n1_one_name_in_three_kinds_is_three_locks(bench: &Bench) {
    let a = bench.client();
    let locks = [bench.mutex("same"), bench.semaphore("same", 3), bench.rw_lock("same", 5)];
    let mutex = a.acquire(&locks[0]).held();
    let semaphore = a.acquire(&locks[1]).weight(3).token(mutex.token()).held();
    let write = a.acquire(&locks[2]).whole().held();
    mutex.release();
    assert!(semaphore.is_held() && write.is_held());
    let kinds: Vec<_> = a.survey(None).iter().map(|state| state.lock.kind()).collect();
    assert_eq!(kinds, [LockKind::Semaphore, LockKind::RwLock]);
    a.destroy(&locks[2], None, "only this one");
    assert!(semaphore.is_held() && !write.is_held());
}

fn n1_namespaces_are_apart(bench: &Bench) {
    let a = bench.client();
    let [one, two] = ["one", "two"].map(|space| Lock::new(space, LockKind::Mutex, "same", 1));
    let held = [a.acquire(&one).held(), a.acquire(&two).held()];
    let spaces = |namespace| -> Vec<String> {
        a.survey(namespace).iter().map(|state| state.lock.namespace().to_string()).collect()
    };
    assert_eq!(spaces(Some("one")), ["one"]);
    assert_eq!(spaces(None), ["one", "two"]);
    held[0].release();
    assert!(held[1].is_held());
    assert!(spaces(Some("one")).is_empty());
    assert!(spaces(Some("never used")).is_empty());
}

fn n1_equal_names_are_one_lock_for_all_clients(bench: &Bench) {
    let (a, b) = (bench.client(), bench.client());
    let held = a.acquire(&bench.mutex("equal")).held();
    b.acquire(&bench.mutex("equal")).busy();
    held.release();
    b.acquire(&bench.mutex("equal")).held().release();
}

fn n3_any_characters_name_a_lock_of_its_own(bench: &Bench) {
    let locks = TEXTS.map(|text| bench.mutex(text));
    all_are_apart(bench, &locks);
}

fn n3_any_characters_name_a_namespace_of_its_own(bench: &Bench) {
    let locks = TEXTS.map(|text| Lock::new(text, LockKind::Mutex, "a", 1));
    all_are_apart(bench, &locks);
}

/// Holds all at once, which only distinct locks allow, reads them back and gives them back.
#[track_caller]
fn all_are_apart(bench: &Bench, locks: &[Lock]) {
    let (a, b) = (bench.client(), bench.client());
    let held: Vec<_> = locks.iter().map(|lock| a.acquire(lock).held()).collect();
    let survey = b.survey(None);
    assert_eq!(survey.len(), locks.len());
    for lock in locks {
        b.acquire(lock).busy();
        assert!(survey.iter().any(|state| state.lock == *lock.id), "{:?} is not listed", lock.id);
    }
    held.iter().for_each(Held::release);
    a.assert_empty();
}

fn n3_the_longest_names_work(bench: &Bench) {
    let a = bench.client();
    // Every byte of these is three in a percent encoding.
    let (long, other) = ("🔒".repeat(128), "🔒".repeat(127) + "🔓");
    let lock = Lock::new(&long, LockKind::Semaphore, &long, 2);
    let neighbour = Lock::new(&long, LockKind::Semaphore, &other, 2);
    let held = a.acquire(&lock).weight(2).held();
    a.acquire(&neighbour).held().release();
    assert_eq!(a.survey(Some(&long)).len(), 1);
    held.release();
    a.assert_empty();
}

fn n3_unicode_is_not_normalized_and_case_counts(bench: &Bench) {
    let locks = ["é", "e\u{301}", "É", "ß", "ẞ", "ss", "SS", "ı", "i", "I", "İ"];
    all_are_apart(bench, &locks.map(|name| bench.mutex(name)));
}

fn n2_another_capacity_is_refused_while_in_use(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("capacity", 2));
    let held = a.acquire(&lock).held();
    let mismatch = Refusal::ConfigMismatch { registered: capacity_of(2) };
    assert_eq!(b.acquire(&lock.claiming(5)).refused(), mismatch);
    assert_eq!(b.acquire(&lock.claiming(1)).try_only().refused(), mismatch);
    assert_eq!(a.counts(&lock).capacity, capacity_of(2));
    let heavy = a.acquire(&lock).weight(2).queued();
    held.release();
    let heavy = heavy.granted();
    assert_eq!(b.acquire(&lock.claiming(5)).refused(), mismatch);
    heavy.release();
    a.assert_empty();
}

fn n2_a_token_bound_grant_keeps_the_capacity(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("capacity", 2));
    let held = a.acquire(&lock).detached().ttl(bench.steps(2)).held();
    bench.kill(a);
    let mismatch = Refusal::ConfigMismatch { registered: capacity_of(2) };
    let (refused, token) = (b.acquire(&lock.claiming(3)).refused(), held.token());
    assert_eq!(refused, mismatch);
    bench.pass(2);
    assert!(!b.restore(&lock, token).is_held());
    b.acquire(&lock.claiming(3)).weight(3).held().release();
}

fn n2_an_idle_lock_takes_the_capacity_of_who_asks_next(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("idle", 2));
    a.acquire(&lock).weight(2).held().release();
    let five = b.acquire(&lock.claiming(5)).weight(5).held();
    assert_eq!(five.grant().capacity, capacity_of(5));
    assert_eq!(a.counts(&lock).capacity, capacity_of(5));
    five.release();
    a.acquire(&lock.claiming(1)).held().release();
    a.assert_empty();
}

fn n2_no_capacity_given_takes_what_is_registered(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("registered", 3));
    let read = a.acquire(&lock).held();
    let other = b.acquire(&lock.registered_or(1 << 29)).held();
    assert_eq!(other.grant().capacity, capacity_of(3));
    read.release();
    other.release();
    let first = b.acquire(&lock.registered_or(7)).held();
    assert_eq!(first.grant().capacity, capacity_of(7), "nothing was registered any more");
    let mismatch = Refusal::ConfigMismatch { registered: capacity_of(7) };
    assert_eq!(a.acquire(&lock).refused(), mismatch);
    first.release();
}

fn n2_the_largest_capacity_works(bench: &Bench) {
    let largest = leasehold_core::defaults::PERMITS_MAX;
    let (a, lock) = (bench.client(), bench.semaphore("largest", largest));
    let all = a.acquire(&lock).weight(largest).held();
    let waiters = [a.acquire(&lock).weight(largest - 1).queued(), a.acquire(&lock).queued()];
    all.release();
    let held = waiters.map(|waiter| waiter.granted());
    assert_eq!(a.inspect(&lock).free(), 0);
    held.iter().for_each(Held::release);
    a.assert_empty();
}

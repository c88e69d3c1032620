//! The same with threads, where grants, searches and drops meet at any instant.

use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_sync::{Error, Mutex, RwLock};

use crate::Random;

const THREADS: u64 = 4;
const ROUNDS: usize = 4_000;

/// Takes three locks, one within the other.
async fn nested(locks: &[RwLock<u64>], at: [usize; 3], writes: usize) -> Result<u64, Error> {
    let last = async || match writes & 4 {
        0 => locks[at[2]].run_shared(async |n| *n).await,
        _ => {
            locks[at[2]]
                .run_exclusive(async |n| {
                    *n += 1;
                    *n
                })
                .await
        }
    };
    // Others go on in between, in optimized builds too, which are over before anybody can meet them.
    let last = async || {
        std::thread::yield_now();
        last().await
    };
    let second = async || match writes & 2 {
        0 => locks[at[1]].run_shared(async |_| last().await).await?,
        _ => locks[at[1]].run_exclusive(async |_| last().await).await?,
    };
    match writes & 1 {
        0 => locks[at[0]].run_shared(async |_| second().await).await?,
        _ => locks[at[0]].run_exclusive(async |_| second().await).await?,
    }
}

/// Three of the locks, in their order.
fn three(random: &mut Random) -> [usize; 3] {
    let first = random.below(3);
    let second = first + 1 + random.below(3 - first);
    let third = second + 1 + random.below(4 - second);
    [first, second, third]
}

#[test]
fn threads_that_keep_to_an_order_are_told_of_nothing() {
    let locks = std::array::from_fn::<_, 5, _>(|_| RwLock::new(0));
    std::thread::scope(|threads| {
        for seed in 0..THREADS {
            let locks = &locks;
            threads.spawn(move || {
                let mut random = Random::new(seed + 1);
                for _ in 0..ROUNDS {
                    let (at, writes) = (three(&mut random), random.below(8));
                    let told = pollster::block_on(nested(locks, at, writes));
                    assert!(told.is_ok(), "{told:?}");
                }
            });
        }
    });
}

#[test]
fn threads_in_any_order_never_get_stuck() {
    let locks = std::array::from_fn::<_, 5, _>(|_| RwLock::new(0));
    let told = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for seed in 0..THREADS {
            let (locks, told) = (&locks, &told);
            threads.spawn(move || {
                let mut random = Random::new(seed + 1);
                for _ in 0..ROUNDS {
                    let mut at = three(&mut random);
                    at.rotate_left(random.below(3));
                    match pollster::block_on(nested(locks, at, random.below(8))) {
                        Ok(_) => {}
                        Err(error) => {
                            assert!(error.is_deadlock(), "{error}");
                            told.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    // That every thread came to its end is the proof; that any had to be told makes it one.
    // About a third of all rounds, so one at least.
    assert!(told.into_inner() > 0);
}

#[test]
fn a_mutex_that_all_want_is_told_of_nothing() {
    let (outer, inner) = (Mutex::new(0_u64), Mutex::new(0_u64));
    std::thread::scope(|threads| {
        for seed in 0..THREADS {
            let (outer, inner) = (&outer, &inner);
            threads.spawn(move || {
                let mut random = Random::new(seed + 1);
                for _ in 0..ROUNDS {
                    let both = outer.run_exclusive(async |a| {
                        *a += 1;
                        inner.run_exclusive(async |b| *b += 1).await
                    });
                    if random.one_in(3) {
                        assert_eq!(pollster::block_on(inner.run_exclusive(async |_| ())), Ok(()));
                    } else {
                        assert_eq!(pollster::block_on(both), Ok(Ok(())));
                    }
                }
            });
        }
    });
}

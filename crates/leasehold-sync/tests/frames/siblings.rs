//! Branches of one task that open frames of their own are independent (rule R1).

use std::{cell::Cell, pin::pin};

use leasehold_sync::{Mutex, RwLock, scope};

use crate::{done, pause, waits};

#[test]
fn branches_take_turns_and_are_no_reentrancy() {
    let (outer, mutex) = (Mutex::new(()), Mutex::new(0));
    let turns = Cell::new(0);
    let branch = async || {
        let inner = mutex.run_exclusive(async |n| {
            *n += 1;
            pause().await;
            turns.set(turns.get() + 1);
        });
        inner.await
    };
    let mut task = pin!(outer.run_exclusive(async |_| {
        let (mut one, mut two) = (pin!(branch()), pin!(scope(branch())));
        waits(one.as_mut());
        waits(two.as_mut());
        pause().await;
        done(one).unwrap();
        waits(two.as_mut());
        pause().await;
        done(two).unwrap();
    }));
    waits(task.as_mut());
    waits(task.as_mut());
    assert_eq!(done(task), Ok(()));
    assert_eq!((turns.get(), *mutex.try_lock().unwrap()), (2, 2));
}

#[test]
fn branches_read_and_write_in_turns() {
    let lock = RwLock::new(0);
    let mut task = pin!(scope(async {
        let mut write = pin!(lock.run_exclusive(async |n| {
            *n += 1;
            pause().await;
        }));
        let mut read = pin!(lock.run_shared(async |n| *n));
        waits(write.as_mut());
        waits(read.as_mut());
        done(write).unwrap();
        done(read).unwrap()
    }));
    assert_eq!(done(task.as_mut()), 1);
}

#[test]
fn a_branch_that_waits_for_a_branch_that_runs_is_no_deadlock() {
    let (a, b, c) = (Mutex::new(()), Mutex::new(()), Mutex::new(()));
    let mut task = pin!(c.run_exclusive(async |_| {
        let mut holds = pin!(a.run_exclusive(async |_| {
            pause().await;
            pause().await;
        }));
        let mut wants = pin!(b.run_exclusive(async |_| a.run_exclusive(async |_| ()).await));
        waits(holds.as_mut());
        waits(wants.as_mut());
        waits(holds.as_mut());
        done(holds).unwrap();
        done(wants).unwrap().unwrap();
    }));
    assert_eq!(done(task.as_mut()), Ok(()));
}

/// What an executor polls inside of a frame is not inside of that frame if it was spawned.
#[cfg(feature = "tokio")]
#[test]
fn tasks_that_a_local_set_polls_inside_of_a_frame_are_independent_of_it() {
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mutex, local) = (Rc::new(Mutex::new(0)), LocalSet::new());
        let other = mutex.clone();
        let spawned = local.spawn_local(async move {
            let own = other.run_exclusive(async |n| {
                *n += 1;
                // Its own frame is there, across awaits.
                tokio::task::yield_now().await;
                other.run_exclusive(async |_| ()).await.unwrap_err().is_reentrant()
            });
            own.await
        });
        let outer = mutex.run_exclusive(async |n| {
            let inside = async {
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                // Nor does what was spawned stand between this and its frame.
                mutex.run_exclusive(async |_| ()).await.unwrap_err().is_reentrant()
            };
            let told = local.run_until(inside).await;
            (std::mem::replace(n, 1), told)
        });
        assert_eq!(outer.await, Ok((0, true)));
        assert_eq!(local.run_until(spawned).await.unwrap(), Ok(true));
        assert_eq!(*mutex.lock().await, 2);
        local.run_until(async { spawn_local(async {}).await.unwrap() }).await;
    });
}

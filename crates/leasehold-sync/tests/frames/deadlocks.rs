//! Every shape of a deadlock over structured holds is told, with the places of each lock (rule R4).

use std::{
    cell::RefCell,
    future::{Future, pending},
    pin::{Pin, pin},
    time::Duration,
};

use leasehold_sync::{Blocker, Error, LockKind, Mutex, RwLock, scope};

use crate::{cycle, done, lines, pause, ready, waits};

#[test]
fn two_mutexes_in_opposite_orders() {
    let (a, b) = (Mutex::new(1_u8), Mutex::new("text"));
    let first = line!() + 1;
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        b.run_exclusive(async |_| ()).await
    }));
    let second = line!() + 1;
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    let error = done(two).unwrap().unwrap_err();
    // Each lock with its two places: B is waited for by the first task and held by the second.
    assert_eq!(lines(&error), [(second + 2, first), (first + 2, second)]);
    let [step, other] = cycle(&error) else { panic!("{error}") };
    assert_eq!((step.of, other.of), ("u8", "&str"));
    assert_eq!((step.task.line(), other.task.line()), (second, first));
    assert_eq!((step.lock, step.blocked_by), (LockKind::Mutex, Blocker::Holder));
    // The one that was told has let go, so the other goes on.
    assert_eq!(done(one), Ok(Ok(())));
}

#[test]
fn three_tasks_in_a_ring() {
    let locks = [Mutex::new(()), Mutex::new(()), Mutex::new(())];
    let work = async |at: usize| {
        locks[at]
            .run_exclusive(async |_| {
                pause().await;
                locks[(at + 1) % 3].run_exclusive(async |_| ()).await
            })
            .await
    };
    let mut tasks = [0, 1, 2].map(|at| Box::pin(work(at)));
    tasks.iter_mut().for_each(|task| waits(task.as_mut()));
    waits(tasks[1].as_mut());
    waits(tasks[0].as_mut());
    let error = done(tasks[2].as_mut()).unwrap().unwrap_err();
    assert_eq!(cycle(&error).len(), 3);
    assert_eq!(done(tasks[1].as_mut()), Ok(Ok(())));
    assert_eq!(done(tasks[0].as_mut()), Ok(Ok(())));
}

/// Two locks, two tasks: the first takes A and then B, the second B and then A, each as told.
fn crossing(first: [bool; 2], second: [bool; 2]) -> Option<Error> {
    let locks = [RwLock::new(()), RwLock::new(())];
    let work = async |at: [usize; 2], writes: [bool; 2]| {
        let then = async || match writes[1] {
            true => locks[at[1]].run_exclusive(async |_| ()).await,
            false => locks[at[1]].run_shared(async |_| ()).await,
        };
        match writes[0] {
            true => {
                locks[at[0]]
                    .run_exclusive(async |_| {
                        pause().await;
                        then().await
                    })
                    .await
            }
            false => {
                locks[at[0]]
                    .run_shared(async |_| {
                        pause().await;
                        then().await
                    })
                    .await
            }
        }
    };
    let (mut one, mut two) = (Box::pin(work([0, 1], first)), Box::pin(work([1, 0], second)));
    waits(one.as_mut());
    waits(two.as_mut());
    let waits_for_two = crate::poll(one.as_mut()).is_pending();
    let told = done(two.as_mut()).unwrap().err();
    if waits_for_two {
        assert_eq!(done(one.as_mut()), Ok(Ok(())));
    }
    told
}

#[test]
fn reads_and_writes_in_opposite_orders() {
    for bits in 0..16_u8 {
        let [a, b, c, d] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let told = crossing([a, b], [c, d]);
        // The first holds A as `a` and wants B as `b`, the second holds B as `c` and wants A as `d`.
        let stuck = (a || d) && (b || c);
        assert_eq!(told.is_some(), stuck, "{bits:04b}");
        if let Some(error) = told {
            assert_eq!(cycle(&error).len(), 2);
            assert_eq!(error.lock_kind(), if d { LockKind::Write } else { LockKind::Read });
        }
    }
}

#[test]
fn a_write_waits_for_every_reader_so_one_of_them_is_enough() {
    let (lock, mutex) = (RwLock::new(()), Mutex::new(()));
    let free = async || {
        lock.run_shared(async |_| {
            pause().await;
            pause().await
        })
        .await
    };
    let (mut one, mut three) = (pin!(free()), pin!(free()));
    let mut two = pin!(lock.run_shared(async |_| {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(three.as_mut());
    let mut writer = pin!(mutex.run_exclusive(async |_| lock.run_exclusive(async |_| ()).await));
    waits(writer.as_mut());
    let error = done(two).unwrap().unwrap_err();
    assert_eq!(cycle(&error).len(), 2);
    drop(error);
    waits(writer.as_mut());
    waits(one.as_mut());
    waits(three.as_mut());
    assert_eq!((done(one), done(three)), (Ok(()), Ok(())));
    assert_eq!(done(writer), Ok(Ok(())));
}

#[test]
fn a_read_behind_a_queued_write_waits_for_what_that_waits_for() {
    let (lock, mutex) = (RwLock::new(()), Mutex::new(()));
    let reads = line!() + 1;
    let mut reader = pin!(lock.run_shared(async |_| {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(reader.as_mut());
    let mut writer = pin!(lock.run_exclusive(async |_| ()));
    let writes = line!() - 1;
    waits(writer.as_mut());
    let both = line!() + 1;
    let mut other = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        lock.run_shared(async |_| ()).await
    }));
    waits(other.as_mut());
    waits(reader.as_mut());
    // The read itself excludes nobody who holds: it waits for the write before it.
    let error = done(other).unwrap().unwrap_err();
    assert_eq!(lines(&error), [(both + 2, writes), (writes, reads), (reads + 2, both)]);
    let blockers = cycle(&error).iter().map(|step| step.blocked_by).collect::<Vec<_>>();
    assert_eq!(blockers, [Blocker::Earlier, Blocker::Holder, Blocker::Holder]);
    assert_eq!(done(reader), Ok(Ok(())));
    assert_eq!(done(writer), Ok(()));
}

#[test]
fn a_wait_in_any_branch_keeps_the_frame() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(a.run_exclusive(async |_| {
        let (mut idle, mut busy) =
            (pin!(pending::<()>()), pin!(scope(b.run_exclusive(async |_| ()))));
        std::future::poll_fn(|cx| {
            assert!(idle.as_mut().poll(cx).is_pending());
            busy.as_mut().poll(cx)
        })
        .await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(two.as_mut());
    waits(one.as_mut());
    assert!(done(two).unwrap().unwrap_err().is_deadlock());
    assert_eq!(done(one), Ok(Ok(())));
}

#[test]
fn branches_of_one_task_that_wait_for_one_another() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let branch = async |first: &Mutex<()>, second: &Mutex<()>| {
        let inner = first.run_exclusive(async |_| {
            pause().await;
            second.run_exclusive(async |_| ()).await
        });
        inner.await
    };
    let told = RefCell::new(Vec::new());
    let mut task = pin!(scope(async {
        let mut branches = [Box::pin(branch(&a, &b)), Box::pin(branch(&b, &a))];
        let mut left = 2;
        std::future::poll_fn(|cx| {
            for branch in &mut branches {
                if told.borrow().len() + left == 2
                    && let std::task::Poll::Ready(end) = branch.as_mut().poll(cx)
                {
                    told.borrow_mut().push(end);
                    left -= 1;
                    return if left == 0 {
                        std::task::Poll::Ready(())
                    } else {
                        std::task::Poll::Pending
                    };
                }
            }
            std::task::Poll::Pending
        })
        .await;
    }));
    waits(task.as_mut());
    waits(task.as_mut());
    let told = told.take();
    assert!(told[0].as_ref().unwrap().as_ref().unwrap_err().is_deadlock());
}

#[test]
fn a_request_with_a_timeout_or_a_cancellation_waits_all_the_same() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(a.lock().timeout(HOUR).run(async |_| {
        pause().await;
        b.lock().timeout(HOUR).run(async |_| ()).await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.lock().cancel_on(pending::<()>()).run(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    assert!(done(two).unwrap().unwrap_err().is_deadlock());
    assert_eq!(done(one), Ok(Ok(())));
}

#[test]
fn an_attempt_that_does_not_wait_is_no_part_of_it() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        b.run_exclusive(async |_| ()).await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.lock().timeout(Duration::ZERO).run(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    assert!(done(two).unwrap().unwrap_err().is_timeout());
    assert_eq!(done(one), Ok(Ok(())));
}

#[test]
fn a_request_that_is_moved_into_a_frame_is_looked_at_again() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let slot = RefCell::new(None::<Pin<Box<dyn Future<Output = Result<(), Error>> + '_>>>);
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        let moved = slot.take().expect("put there meanwhile");
        moved.await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    let mut alone: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(b.run_exclusive(async |_| ()));
    waits(alone.as_mut());
    waits(two.as_mut());
    // So far nothing holds anything while it waits for `b`.
    slot.replace(Some(alone));
    let error = done(one).unwrap().unwrap_err();
    assert_eq!(cycle(&error).len(), 2);
    assert_eq!(done(two), Ok(Ok(())));
    assert_eq!(ready(b.run_exclusive(async |_| ())), Ok(()));
}

#[test]
fn a_request_that_is_moved_into_a_frame_that_holds_its_lock_is_reentrant() {
    let a = Mutex::new(());
    let slot = RefCell::new(None::<Pin<Box<dyn Future<Output = Result<(), Error>> + '_>>>);
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        let moved = slot.take().expect("put there meanwhile");
        moved.await
    }));
    waits(one.as_mut());
    let mut late: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(a.run_exclusive(async |_| ()));
    waits(late.as_mut());
    slot.replace(Some(late));
    assert!(done(one).unwrap().unwrap_err().is_reentrant());
    assert_eq!(a.queued(), 0);
}

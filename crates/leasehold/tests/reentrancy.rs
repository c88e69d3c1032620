//! What an enclosing frame holds, asked for again: leases are checked as plain locks are (rules R2
//! and R2b).

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold::{
    Error, ErrorKind, InCurrentScope, LeaseMutex, LeaseRwLock, LockManager, Mutex, RunError, scope,
};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

async fn pause() {
    let mut paused = false;
    poll_fn(|_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

#[track_caller]
fn places(error: &Error) -> (u32, u32) {
    match error.kind() {
        ErrorKind::Reentrant { held, asked } => {
            assert!(error.is_reentrant() && !error.is_retryable());
            assert!(error.to_string().contains(&format!("asked for at {asked}")), "{error}");
            (held.line(), asked.line())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn r2b_a_named_mutex_within_itself_is_told_with_name_and_places() {
    pollster::block_on(async {
        let locks = LockManager::in_memory();
        let orders = locks.mutex("orders")?;
        let again = locks.mutex("orders")?;
        let inner = async || again.run_exclusive(async |_| ()).await;
        let asked = line!() - 1;
        let told = orders.run_exclusive(async |_| inner().await).await?;
        let held = line!() - 1;
        let error = Error::from(told.unwrap_err());
        assert_eq!(places(&error), (held, asked));
        assert!(error.to_string().contains("orders"), "{error}");
        assert!(!orders.is_locked().await?);
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn r2b_another_name_kind_or_manager_is_granted() {
    pollster::block_on(async {
        let (locks, others) = (LockManager::in_memory(), LockManager::in_memory());
        let (a, b) = (locks.mutex("a")?, locks.mutex("b")?);
        let (read, other) = (locks.rw_lock("a")?, others.mutex("a")?);
        let inner = async || -> Result<u8, Error> {
            Ok(read.run_exclusive(async |_| other.run_exclusive(async |_| 5).await).await??)
        };
        let deep =
            a.run_exclusive(async |_| b.run_exclusive(async |_| inner().await).await).await?;
        assert_eq!(deep??, 5);
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn r2b_a_ttl_a_timeout_and_an_attempt_are_checked_all_the_same() {
    pollster::block_on(async {
        let lock = LeaseMutex::new();
        let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let told = lock.lock().ttl(minute).run(async |_| {
            let timed = lock.lock().timeout(second).ttl(minute).run(async |_| ()).await;
            (timed, lock.try_lock().run(async |_| ()).await)
        });
        let (timed, tried) = told.await?;
        assert!(matches!(&timed, Err(RunError::Acquire(error)) if error.is_reentrant()));
        assert!(matches!(&tried, Err(RunError::Acquire(error)) if error.is_reentrant()));
        // Plain acquisitions are not checked: this one is told that the lock is busy.
        let busy = lock.run_exclusive(async |_| lock.try_lock().await).await?;
        assert!(busy?.is_none());
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn w6_r2b_an_argument_is_refused_before_reentrancy() {
    pollster::block_on(async {
        let lock = LeaseMutex::new();
        let told = lock.run_exclusive(async |_| lock.lock().weight(2).run(async |_| ()).await);
        let error = Error::from(told.await?.unwrap_err());
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn r2b_writes_and_reads_within_one_another_are_told_and_reads_share_the_lease() {
    pollster::block_on(async {
        let lock = LeaseRwLock::with_max_readers(1)?;
        let told = lock.run_exclusive(async |_| lock.run_shared(async |_| ()).await).await?;
        assert!(Error::from(told.unwrap_err()).is_reentrant());
        let told = lock.run_shared(async |_| lock.run_exclusive(async |_| ()).await).await?;
        assert!(Error::from(told.unwrap_err()).is_reentrant());
        let fences = lock.run_shared(async |outer| {
            let inner = lock.run_shared(async |inner| inner.fencing_token()).await;
            (outer.fencing_token(), inner, lock.active_readers().await)
        });
        let (outer, inner, readers) = fences.await?;
        assert_eq!((outer, readers?), (inner?, 1));
        assert_eq!(lock.active_readers().await?, 0);
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn r2b_a_read_within_a_read_does_not_wait_behind_a_writer() {
    let lock = LeaseRwLock::new();
    let mut outer = pin!(lock.run_shared(async |_| {
        pause().await;
        lock.run_shared(async |_| 5).await
    }));
    assert!(poll(outer.as_mut()).is_pending());
    let mut writer = pin!(lock.run_exclusive(async |_| 6));
    assert!(poll(writer.as_mut()).is_pending());
    assert!(matches!(poll(outer.as_mut()), Poll::Ready(Ok(Ok(5)))));
    assert!(matches!(pollster::block_on(writer), Ok(6)));
}

#[test]
fn r2b_the_last_reader_of_a_lease_releases_it() {
    let lock = LeaseRwLock::new();
    for outer_is_dropped in [false, true] {
        let mut inner = Box::pin(lock.run_shared(async |lease| {
            pause().await;
            lease.is_held()
        }));
        {
            let mut outer = pin!(lock.run_shared(async |_| {
                assert!(poll(inner.as_mut()).is_pending());
                if outer_is_dropped {
                    pause().await;
                }
            }));
            assert_eq!(poll(outer.as_mut()).is_pending(), outer_is_dropped);
        }
        assert_eq!(pollster::block_on(lock.active_readers()).unwrap(), 1);
        assert!(matches!(poll(inner.as_mut()), Poll::Ready(Ok(true))));
        drop(inner);
        assert_eq!(pollster::block_on(lock.active_readers()).unwrap(), 0);
    }
}

#[test]
fn r2b_what_a_child_task_remembers_keeps_no_lease() {
    let lock = LeaseRwLock::new();
    let child = {
        let mut outer = pin!(lock.run_shared(async |_| {
            let child = async { lock.run_exclusive(async |_| 5).await }.in_current_scope();
            // Neither the child, which was never polled, nor the drop leave anything behind.
            pause().await;
            Some(child)
        }));
        assert!(poll(outer.as_mut()).is_pending());
        pollster::block_on(outer).unwrap().unwrap()
    };
    assert_eq!(pollster::block_on(lock.active_readers()).unwrap(), 0);
    assert!(matches!(pollster::block_on(child), Ok(5)));
}

#[test]
fn r4_a_lease_is_no_part_of_a_deadlock() {
    let (plain, lease) = (Mutex::new(()), LeaseMutex::new());
    let mut one = pin!(plain.run_exclusive(async |_| {
        pause().await;
        lease.run_exclusive(async |_| 1).await
    }));
    // Its TTL ends the lease, whatever its holder waits for.
    let minute = lease.lock().ttl(Duration::from_secs(60));
    let mut two = pin!(minute.run(async |_| {
        pause().await;
        let mut waits = pin!(plain.run_exclusive(async |_| 2));
        assert!(poll(waits.as_mut()).is_pending());
    }));
    assert!(poll(one.as_mut()).is_pending());
    assert!(poll(two.as_mut()).is_pending());
    assert!(poll(one.as_mut()).is_pending());
    assert!(matches!(pollster::block_on(two), Ok(())));
    assert!(matches!(pollster::block_on(one), Ok(Ok(1))));
}

#[test]
fn r2_plain_locks_and_leases_share_their_frames() {
    let (plain, lease) = (Mutex::new(()), LeaseMutex::new());
    let told = pollster::block_on(scope(plain.run_exclusive(async |_| {
        lease.run_exclusive(async |_| plain.run_exclusive(async |_| ()).await).await
    })));
    let plain = told.unwrap().unwrap().unwrap_err();
    let error = Error::from(plain.clone());
    assert!(error.is_reentrant());
    assert_eq!(error.to_string(), plain.to_string());
}

#[tokio::test]
async fn r2b_works_that_can_be_spawned_are_spawned() {
    let lock = LeaseRwLock::new();
    let work = async move {
        let inner = lock.run_shared(async |_| lock.run_shared(async |_| 5).await);
        inner.await
    };
    assert!(matches!(tokio::spawn(work).await.unwrap(), Ok(Ok(5))));
}

//! Checked requests (rules R2, R4 and K4): the lines of `preventReentrancy`.

use leasehold_sync::{Error, KeyedLock, ObjectLock, scope};

use crate::{poll, ready};

type Lock = KeyedLock<u8>;

#[test]
fn a_checked_lock_tells_of_a_request_that_would_wait_for_itself() {
    let keys = Lock::new().checked();
    let program = scope(async {
        let write = keys.write(1).await?;
        for nested in [keys.write(1).await, keys.read(1).await] {
            assert!(nested.unwrap_err().is_reentrant(), "write in write, read in write");
        }
        assert!(keys.write_all().await.unwrap_err().is_reentrant(), "all in a key");
        drop((keys.write(2).await?, keys.read(3).await?));
        drop(write);
        drop(keys.write(1).await?);

        let read = keys.read(1).await?;
        assert!(keys.write(1).await.unwrap_err().is_reentrant(), "write in read");
        drop((keys.read(1).await?, read));

        let all = keys.read_all().await?;
        assert!(keys.write(1).await.unwrap_err().is_reentrant(), "a key in all");
        drop((keys.read(1).await?, all));
        let all = keys.write_all().await?;
        assert!(keys.read(1).await.unwrap_err().is_reentrant());
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
        drop(all);
        Ok::<(), Error>(())
    });
    ready(program).unwrap();
    assert!(keys.unchecked().is_empty());
}

#[test]
fn different_locks_and_unchecked_requests_are_nobody_s_business() {
    let (keys, others) = (Lock::new().checked(), Lock::new().checked());
    let program = scope(async {
        let held = (keys.write(1).await?, others.write(1).await?);
        assert!(keys.unchecked().try_write(1).is_none());
        assert!(poll(Box::pin(keys.unchecked().write(1)).as_mut()).is_pending(), "it waits");
        drop(held);
        Ok::<(), Error>(())
    });
    ready(program).unwrap();
    // Outside of frames nothing is checked: it waits.
    let held = ready(keys.write(1)).unwrap();
    assert!(poll(Box::pin(keys.write(1)).as_mut()).is_pending());
    drop(held);
    assert!(keys.unchecked().is_empty() && others.unchecked().is_empty());
}

/// A read within a read shares the grant, so a queued write cannot come between (rule R2).
#[test]
fn a_read_within_a_read_does_not_wait_for_a_queued_write() {
    let keys = Lock::new();
    for outer_is_whole in [false, true] {
        let mut write = Box::pin(keys.write(1));
        let program = async {
            assert!(poll(write.as_mut()).is_pending());
            keys.read(1).run(async || ()).await
        };
        let outer = if outer_is_whole { keys.read_all() } else { keys.read(1) };
        ready(outer.run(async move || program.await)).unwrap().unwrap();
        drop(ready(write));
        assert!(keys.is_empty() && keys.queued() == 0);
    }
}

/// The guard of an inner read may outlive the outer one: the last one gives the grant back.
#[test]
fn a_shared_grant_ends_with_its_last_guard() {
    let keys = Lock::new().checked();
    for outer_is_whole in [false, true] {
        let program = scope(async {
            let outer = if outer_is_whole { keys.read_all().await? } else { keys.read(1).await? };
            let inner = keys.read(1).await?;
            drop(outer);
            assert!(keys.unchecked().try_write(1).is_none(), "the inner guard still reads");
            drop(inner);
            assert!(keys.unchecked().try_write_all().is_some());
            Ok::<(), Error>(())
        });
        ready(program).unwrap();
        assert!(keys.unchecked().is_empty());
    }
}

/// Two frames that take two keys in opposite order.
#[test]
fn a_deadlock_is_told_to_who_closes_it() {
    let keys = Lock::new();
    let (go, stop) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    let gate = |open: &std::cell::Cell<bool>| open.get();
    let until = |open| {
        std::future::poll_fn(move |_| match gate(open) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
    };
    let mut first = Box::pin(keys.write(1).run(async || {
        until(&go).await;
        keys.write(2).run(async || ()).await
    }));
    let mut second = Box::pin(keys.write(2).run(async || {
        until(&stop).await;
        keys.write(1).run(async || ()).await
    }));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    go.set(true);
    assert!(poll(first.as_mut()).is_pending());
    stop.set(true);
    let told = ready(second).unwrap().unwrap_err();
    assert!(told.is_deadlock(), "{told}");
    let text = told.to_string();
    let places: std::collections::BTreeSet<_> =
        text.split([' ', ',', ';']).filter(|word| word.contains("checked.rs:")).collect();
    assert_eq!(places.len(), 4, "both source lines of each lock: {told}");
    ready(first).unwrap().unwrap();
    assert!(keys.is_empty());
}

#[test]
fn objects_are_always_checked() {
    let object = std::sync::Arc::new(5_u8);
    let lock = ObjectLock::of_arc(&object);
    let program = scope(async {
        let held = lock.write().await?;
        assert!(lock.read().await.unwrap_err().is_reentrant());
        drop(held);
        Ok::<(), Error>(())
    });
    ready(program).unwrap();
    assert!(lock.try_write().is_some());
}

#[test]
fn owned_and_try_forms_of_a_checked_lock_are_checked_too() {
    let keys = std::sync::Arc::new(Lock::new().checked());
    let program = scope(async {
        let held = keys.clone().write_owned(1).await?;
        assert!(keys.clone().read_owned(1).await.unwrap_err().is_reentrant());
        assert!(keys.clone().read_all_owned().await.unwrap_err().is_reentrant());
        assert!(keys.try_write(1).is_none() && keys.try_read_all().is_none(), "busy");
        drop(held);

        let tried = keys.clone().try_write_owned(1).expect("free");
        assert!(keys.write(1).await.unwrap_err().is_reentrant(), "the frame remembers it");
        drop(tried);

        let outer = keys.read(1).await?;
        let mut write = Box::pin(keys.unchecked().write(1));
        assert!(poll(write.as_mut()).is_pending());
        let inner = keys.try_read(1).expect("it shares the outer grant");
        drop(outer);
        assert!(poll(write.as_mut()).is_pending(), "the inner one still reads");
        drop(inner);
        drop(ready(write));
        Ok::<(), Error>(())
    });
    ready(program).unwrap();
    assert!(keys.unchecked().is_empty());
}

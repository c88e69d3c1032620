//! Auto traits, names and messages of the public API.

mod common;

use common::{manual, now};
use leasehold::{
    Acquire, Acquiring, Error, Lease, LockManager, LockName, NamedMutex, NamedRwLock,
    NamedSemaphore, RunError, Token, TryAcquire, TryAcquiring,
};

const fn send<T: Send>() {}
const fn sync<T: Sync>() {}
const fn unpin<T: Unpin>() {}
const fn error<T: std::error::Error + Send + Sync + 'static>() {}

#[test]
fn auto_traits_are_pinned() {
    send::<(LockManager, NamedMutex, NamedSemaphore, NamedRwLock, Lease, Token)>();
    sync::<(LockManager, NamedMutex, NamedSemaphore, NamedRwLock, Lease, Token)>();
    unpin::<(LockManager, Lease, Acquiring, TryAcquiring)>();
    send::<(Acquire, TryAcquire, Acquiring, TryAcquiring)>();
    error::<Error>();
    error::<RunError<u32>>();
}

#[test]
fn futures_can_be_spawned() {
    fn spawnable<F: Future + Send + 'static>(_: F) {}
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    spawnable(async move {
        orders.run_exclusive(async |lease| lease.fencing_token()).await.unwrap();
        let lease = orders.lock().await.unwrap();
        tokio::select! {
            why = lease.lost() => drop(why),
            () = std::future::ready(()) => {}
        }
        lease.extend(None).await.unwrap();
        lease.release().await.unwrap();
        locks.shutdown().await.unwrap();
    });
}

#[test]
fn n1_one_name_is_one_lock_per_kind() {
    let (locks, _) = manual();
    let (one, two) = (locks.mutex("x").unwrap(), locks.mutex("x").unwrap());
    let _lease = now(one.lock()).unwrap();
    assert!(now(two.try_lock()).unwrap().is_none());
    let _slot = now(locks.semaphore("x", 2).unwrap().try_acquire()).unwrap().unwrap();
    let _read = now(locks.rw_lock("x").unwrap().try_read()).unwrap().unwrap();
}

#[test]
fn n3_names_of_all_sorts_are_locks_of_their_own() {
    let (locks, _) = manual();
    let names = ["{a}", "a:b", "a/b", "a b", "a\nb", "🔒", "\0", "a%2Fb", "A/B"];
    let leases: Vec<_> = names
        .iter()
        .map(|name| now(locks.mutex(*name).unwrap().try_lock()).unwrap().expect(name))
        .collect();
    let found: Vec<_> = now(locks.survey()).unwrap();
    assert_eq!(found.len(), names.len());
    drop(leases);
    assert!(now(locks.survey()).unwrap().is_empty());
    assert!(locks.mutex("").is_err());
    assert!(locks.mutex("x".repeat(513)).is_err());
    assert!(locks.mutex(LockName::new("typed").unwrap()).is_ok());
}

#[test]
fn fencing_tokens_grow_with_every_grant() {
    let (locks, _) = manual();
    let mut last = 0;
    for _ in 0..100 {
        // The handle goes, too: the name is idle in between.
        let lease = now(locks.mutex("orders").unwrap().lock()).unwrap();
        assert!(lease.fencing_token().get() > last);
        last = lease.fencing_token().get();
    }
}

#[test]
fn secrets_are_not_shown() {
    let (locks, _) = manual();
    let lease =
        now(locks.mutex("x").unwrap().lock().token(Token::new("hunter2").unwrap())).unwrap();
    let shown = format!("{lease:?} {:?}", now(locks.survey()).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn urls_that_are_none_are_refused_by_name() {
    for bad in ["", "orders", "redis://user:secret@host", "memory:x", "sqlite:", "file:x"] {
        let error = leasehold::connect(bad).await.unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    leasehold::connect("memory:").await.unwrap();
}

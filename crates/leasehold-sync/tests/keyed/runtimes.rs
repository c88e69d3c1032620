//! The same behaviour wherever it is polled (rule W8), and `Send`, `Sync` and `Unpin` as promised.

use std::{cell::Cell, future::Future, marker::PhantomPinned, rc::Rc, sync::Arc, time::Duration};

use leasehold_sync::{AcquireKeyed, AcquireKeyedWith, KeyedGuard, KeyedLock, ObjectLock};
use smol::future::{yield_now, zip};

/// Every place that a future may run in.
fn everywhere<F>(body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    pollster::block_on(body());
    smol::block_on(body());
    #[cfg(feature = "tokio")]
    {
        use tokio::runtime::Builder;
        let multi = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        multi.block_on(multi.spawn(body())).unwrap();
        Builder::new_current_thread().enable_all().build().unwrap().block_on(body());
        let paused = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        paused.block_on(body());
        Builder::new_current_thread().build().unwrap().block_on(body());
    }
}

#[test]
fn a_key_and_the_whole_set_are_handed_over() {
    everywhere(|| async {
        let lock = KeyedLock::new();
        let held = lock.write("key").await;
        let work = async {
            yield_now().await;
            drop(held);
        };
        let waiting = zip(async { drop(lock.write("key").await) }, async {
            drop(lock.read_all().await);
        });
        zip(waiting, work).await;
        assert!(lock.is_empty());
    });
}

#[test]
fn a_wait_ends_at_its_timeout() {
    everywhere(|| async {
        let lock = Arc::new(KeyedLock::new());
        let held = lock.clone().write_owned(1).await;
        let error = lock.write(1).timeout(Duration::from_millis(20)).await.unwrap_err();
        assert!(error.is_timeout());
        let error = lock.write_all().timeout(Duration::from_millis(20)).await.unwrap_err();
        assert!(error.is_timeout());
        drop(held);
        assert!(lock.is_empty());
    });
}

/// A task that takes what is free, again and again, lets others run.
#[cfg(feature = "tokio")]
#[test]
fn tokio_s_budget_is_asked_first() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let lock = Arc::new(KeyedLock::new());
        let other = lock.clone();
        let greedy = tokio::spawn(async move {
            for _ in 0..10_000 {
                drop(other.write(1).await);
            }
        });
        tokio::task::yield_now().await;
        assert!(!greedy.is_finished(), "it took all turns");
        assert!(lock.is_empty(), "it sleeps while it holds");
        greedy.await.unwrap();
    });
}

/// Whether a type has a trait, found out by which method is the nearer one.
macro_rules! has {
    ($trait:ident, $type:ty) => {{
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "found only where the nearer one is missing")]
        trait No {
            const ANSWER: bool = false;
        }
        impl<T: ?Sized> No for Probe<T> {}
        #[allow(dead_code, reason = "the answer is the point, not the place")]
        impl<T: ?Sized + $trait> Probe<T> {
            const ANSWER: bool = true;
        }
        <Probe<$type>>::ANSWER
    }};
}

macro_rules! pinned {
    ($($type:ty => $send:literal $sync:literal $unpin:literal;)*) => {
        $(
            let found = (has!(Send, $type), has!(Sync, $type), has!(Unpin, $type));
            assert_eq!(found, ($send, $sync, $unpin), stringify!($type));
        )*
    };
}

/// Keys move between threads with the table, and are never shared: they need `Send`, not `Sync`.
#[test]
fn auto_traits() {
    type Borrowed<K> = &'static KeyedLock<K>;
    pinned! {
        KeyedLock<String> => true true true;
        KeyedLock<Cell<u8>> => true true true;
        KeyedLock<Rc<u8>> => false false true;
        KeyedGuard<Borrowed<String>> => true true true;
        KeyedGuard<Borrowed<Rc<u8>>> => false false true;
        KeyedGuard<Arc<KeyedLock<u8>>> => true true true;
        AcquireKeyed<Borrowed<String>> => true true true;
        AcquireKeyed<Borrowed<Rc<u8>>> => false false true;
        AcquireKeyed<Arc<KeyedLock<u8>>> => true true true;
        AcquireKeyedWith<Borrowed<u8>> => true true true;
        AcquireKeyedWith<Borrowed<u8>, Rc<u8>> => false false true;
        AcquireKeyedWith<Borrowed<u8>, PhantomPinned> => true true false;
        ObjectLock<Arc<u8>> => true true true;
        KeyedGuard<ObjectLock<&'static u8>> => true true true;
        KeyedGuard<ObjectLock<&'static Cell<u8>>> => false false true;
    }
}

//! The locks of objects (rule K5).

use std::{future::ready as now, sync::Arc, task::Poll, time::Duration};

use leasehold_sync::{Error, ErrorKind, ObjectLock};

use crate::{Count, poll, ready};

/// What must be granted at once.
fn granted<G>(request: impl Future<Output = Result<G, Error>>) -> G {
    ready(request).expect("nothing in the way")
}

fn object() -> ObjectLock<Arc<u32>> {
    ObjectLock::of_arc(&Arc::new(0))
}

/// acceptance AO1, AO2
#[test]
fn ao1_ao2_a_fresh_object_is_free() {
    let lock = object();
    let write = granted(lock.write());
    assert!(lock.try_read().is_none(), "it is held until the guard is dropped");
    drop(write);
    drop(granted(lock.read()));
}

/// acceptance AO3
#[test]
fn ao3_a_read_waits_for_the_write() {
    let lock = object();
    let write = granted(lock.write());
    let mut read = Box::pin(lock.read());
    assert!(poll(read.as_mut()).is_pending());
    drop(write);
    assert!(poll(read.as_mut()).is_ready());
}

/// acceptance AO4, AO5
#[test]
fn ao4_ao5_reads_share_and_a_write_waits_for_all_of_them() {
    let lock = object();
    let (one, other) = (granted(lock.read()), granted(lock.read()));
    let mut write = Box::pin(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    drop(one);
    assert!(poll(write.as_mut()).is_pending());
    drop(other);
    assert!(poll(write.as_mut()).is_ready());
}

/// acceptance AO6
#[test]
fn ao6_in_the_order_of_arrival() {
    let lock = object();
    let held = granted(lock.write());
    let (mut read, mut write) = (Box::pin(lock.read()), Box::pin(lock.write()));
    assert!(poll(read.as_mut()).is_pending() && poll(write.as_mut()).is_pending());
    drop(held);
    let read = granted(read);
    assert!(poll(write.as_mut()).is_pending());
    drop(read);
    assert!(poll(write.as_mut()).is_ready());
}

/// acceptance AO7
#[test]
fn ao7_cancelled_before_the_call() {
    let error = ready(object().write().cancel_on(now("given up"))).unwrap_err();
    assert_eq!(error.to_string(), "object lock (write): cancelled: given up");
}

/// acceptance AO8
#[test]
fn ao8_the_queue_goes_on_behind_a_cancelled_waiter() {
    let lock = object();
    let held = granted(lock.write());
    let stop = std::cell::Cell::new(false);
    let stopped = std::future::poll_fn(|_| match stop.get() {
        true => Poll::Ready("Timeout"),
        false => Poll::Pending,
    });
    let mut waiter = Box::pin(lock.write().cancel_on(stopped));
    assert!(poll(waiter.as_mut()).is_pending());
    stop.set(true);
    let Poll::Ready(Err(error)) = poll(waiter.as_mut()) else { panic!("not cancelled") };
    assert_eq!(error.to_string(), "object lock (write): cancelled: Timeout");
    drop(held);
    drop(granted(lock.write()));
}

/// acceptance AO13
#[test]
fn ao13_objects_are_independent() {
    let (one, other) = (object(), object());
    let held = granted(one.write());
    drop(granted(other.write()));
    drop(held);
}

/// acceptance AO14
#[test]
fn ao14_a_hundred_writes_run_each_once() {
    let count = Arc::new(Count::default());
    let lock = ObjectLock::of_arc(&count);
    let executor = smol::LocalExecutor::new();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (lock, count) = (lock.clone(), count.clone());
            executor.spawn(async move {
                let _alone = lock.write().await.unwrap();
                let before = count.get();
                smol::future::yield_now().await;
                assert_eq!(count.get(), before);
                std::task::Wake::wake(count);
            })
        })
        .collect();
    smol::block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));
    assert_eq!(count.get(), 100);
}

struct Printer {
    head: u64,
    pages: std::sync::Mutex<Vec<u32>>,
}

impl Printer {
    /// An exclusive method, written by hand.
    async fn print(&self, pages: u32, waits: usize) {
        let _alone = ObjectLock::of(self).expect("it has a size").write().await.unwrap();
        for _ in 0..waits {
            smol::future::yield_now().await;
        }
        self.pages.lock().unwrap().push(pages);
    }
}

/// acceptance AO22
#[test]
fn ao22_independent_calls_of_a_method_finish_in_call_order() {
    let printer = Printer { head: 0, pages: Vec::new().into() };
    let executor = smol::LocalExecutor::new();
    let calls = [(1, 50), (2, 0), (3, 10)];
    let tasks = calls.map(|(pages, waits)| executor.spawn(printer.print(pages, waits)));
    smol::block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));
    assert_eq!(*printer.pages.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn an_object_is_known_by_place_and_type() {
    let printer = Arc::new(Printer { head: 0, pages: Vec::new().into() });
    let whole = ObjectLock::of(&*printer).expect("it has a size");
    let head = ObjectLock::of(&printer.head).expect("it has a size");
    let held = granted(whole.write());
    assert!(head.try_write().is_some(), "a field is another object, also in the same place");
    assert!(ObjectLock::of_arc(&printer).try_read().is_none(), "shared or borrowed, it is one");
    drop(held);
    assert!(ObjectLock::of_arc(&printer).try_read().is_some());
}

#[test]
fn a_guard_keeps_the_shared_object_alive() {
    let object = Arc::new(5_u8);
    let weak = Arc::downgrade(&object);
    let guard = granted(ObjectLock::of_arc(&object).write());
    drop(object);
    assert!(weak.upgrade().is_some(), "or its place could become another object's");
    drop(guard);
    assert!(weak.upgrade().is_none());
}

#[test]
fn what_has_no_size_has_no_identity() {
    struct Empty;
    let error = ObjectLock::of(&Empty).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    assert!(error.to_string().contains("has no size"), "{error}");
    // A share has a place of its own.
    let (one, other) = (Arc::new(Empty), Arc::new(Empty));
    let _held = granted(ObjectLock::of_arc(&one).write());
    assert!(ObjectLock::of_arc(&other).try_write().is_some());
}

#[test]
fn unsized_objects_have_locks_too() {
    let text: Arc<str> = "text".into();
    let lock = ObjectLock::of_arc(&text);
    let held = granted(lock.write());
    let error = ready(lock.read().timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(error.to_string(), "object lock (read): not free");
    drop(held);
}

//! What the queue promises, one module per kind of fault.

mod bad_input;
mod cancellation;
mod capacity_changes;
mod fairness;
mod lost_permits;
mod upgrades;
mod weights;

use leasehold_queue::{Enqueued, PermitQueue, WaiterKey};

/// A queue whose waiters have names.
type Queue = PermitQueue<&'static str>;

/// The permits of a read-write lock in these tests: a read weighs 1, a write all of them.
const READERS: u32 = 10;

/// Queues a request that has to wait.
#[track_caller]
fn queued(queue: &mut Queue, weight: u32, name: &'static str) -> WaiterKey {
    match queue.enqueue(weight, name) {
        Ok(Enqueued::Queued(key)) => key,
        other => panic!("{name} should wait, but: {other:?}"),
    }
}

/// Takes permits that are there.
#[track_caller]
fn held(queue: &mut Queue, weight: u32) {
    assert_eq!(queue.enqueue(weight, "holder"), Ok(Enqueued::Granted("holder")));
}

/// Names granted by one step, in order.
fn granted<R>(step: impl FnOnce(&mut dyn FnMut(WaiterKey, u32, &'static str)) -> R) -> Names {
    let mut names = Vec::new();
    step(&mut |_, _, name| names.push(name));
    names
}

/// The sink of a step that may grant nobody.
fn nobody(_: WaiterKey, _: u32, name: &'static str) {
    panic!("{name} got in");
}

type Names = Vec<&'static str>;

fn names(queue: &Queue) -> Names {
    queue.iter().map(|(_, _, name)| *name).collect()
}

#[test]
fn a_queue_is_as_mobile_as_its_waiters() {
    fn check<T: Send + Sync + Unpin>() {}
    check::<PermitQueue<u64>>();
    check::<WaiterKey>();
    // A lock may build one in a `const`, as its own constructor is one.
    const FRESH: PermitQueue<u64> = match leasehold_queue::Permits::new(1) {
        Ok(permits) => PermitQueue::with_permits(permits),
        Err(_) => panic!("1 is a capacity"),
    };
    assert!({ FRESH }.is_idle());
}

#[test]
fn a_secret_in_a_waiter_never_shows_in_debug() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    queued(&mut queue, 1, "secret");
    let shown = format!("{queue:?}");
    assert_eq!(shown, "PermitQueue { capacity: 1, used: 1, upgradable: None, queued: 1 }");
}

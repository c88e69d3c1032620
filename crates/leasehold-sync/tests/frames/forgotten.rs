//! A future that is forgotten keeps what it holds, and is taken for nobody else.

use std::{mem::forget, pin::pin};

use leasehold_sync::Mutex;

use crate::{done, waits};

#[test]
fn a_mutex_in_the_place_of_one_that_a_forgotten_future_holds_is_another_one() {
    let mut both = [Mutex::new(1), Mutex::new(2)];
    for _ in 0..2 {
        {
            let [a, b] = &both;
            let held = b.try_lock();
            let mut lost = Box::pin(a.run_exclusive(async |_| b.run_exclusive(async |_| ()).await));
            waits(lost.as_mut());
            forget(lost);
            drop(held);
        }
        // In the same places.
        both = [Mutex::new(3), Mutex::new(4)];
        let [a, b] = &both;
        let held = a.try_lock();
        let mut task = pin!(b.run_exclusive(async |_| a.run_exclusive(async |n| *n).await));
        waits(task.as_mut());
        drop(held);
        assert_eq!(done(task), Ok(Ok(3)));
    }
}

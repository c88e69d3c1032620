//! Under loom there is no time: a timer is a thread that looks at any moment, and finds everything due.

use std::task::{Context, Poll};

use super::slots::{self, Renewed, Slot, SlotId};

/// Begins a wait.
pub(super) fn begin(timeout: u64, cx: &Context<'_>) -> Slot {
    let slot = Slot::fresh(timeout, cx.waker().clone());
    let shard = slot.id().shard();
    loom::thread::spawn(move || {
        let mut due = Vec::new();
        slots::look(shard, || u64::MAX, &mut due);
        due.into_iter().for_each(std::task::Waker::wake);
    });
    slot
}

/// Lets a wait wake this task, if `waits` still says that it waits.
pub(super) fn renew(slot: SlotId, cx: &Context<'_>, waits: impl FnOnce() -> bool) -> Poll<()> {
    match slot.renew(cx.waker().clone(), 0, waits) {
        Renewed::Waits(_) => Poll::Pending,
        Renewed::Due | Renewed::Over => Poll::Ready(()),
    }
}

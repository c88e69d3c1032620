//! [`Watch`]: waiting until a lock is free, without acquiring it (rules U).

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use crate::{
    block::block_on,
    raw::{Node, Phase, Raw, WatchFor},
};

pin_project! {
    /// The future of `wait_for_unlock` and its like. It acquires nothing: when it is ready, the
    /// lock was free at that moment, and somebody else may have taken it since.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves nothing behind.
    #[must_use = "futures do nothing unless polled"]
    pub struct Watch<'a> {
        raw: &'a Raw,
        what: WatchFor,
        #[pin]
        node: Node,
    }

    impl PinnedDrop for Watch<'_> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if this.node.phase() == Phase::Queued {
                this.raw.unwatch(this.node.as_ref());
            }
        }
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(raw: &'a Raw, what: WatchFor) -> Self {
        Self { raw, what, node: Node::new() }
    }

    /// Blocks this thread instead of a task. Not for async code, where it would hold up others.
    pub fn blocking(self) {
        block_on(self);
    }
}

impl Future for Watch<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let node = this.node.as_ref();
        let done = match node.phase() {
            Phase::Outside => {
                this.raw.holds(*this.what) || this.raw.watch(node, *this.what, cx.waker().clone())
            }
            Phase::Queued => this.raw.renew_waker(node, cx.waker()) != Phase::Queued,
            Phase::Granted | Phase::Rejected => true,
        };
        if done { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("what", &self.what).finish_non_exhaustive()
    }
}

//! Tokio's budget: a task that takes a free lock in a loop must still let others run.

#[cfg(all(feature = "tokio", not(leasehold_loom)))]
pub(crate) use tokio::task::coop::poll_proceed;

#[cfg(not(all(feature = "tokio", not(leasehold_loom))))]
pub(crate) use self::none::poll_proceed;

#[cfg(not(all(feature = "tokio", not(leasehold_loom))))]
mod none {
    use std::task::{Context, Poll};

    /// Without Tokio there is no budget.
    pub(crate) struct Progress;

    impl Progress {
        #[inline]
        #[allow(clippy::unused_self, reason = "has the shape of Tokio's")]
        pub(crate) const fn made_progress(&self) {}
    }

    #[inline]
    pub(crate) const fn poll_proceed(_cx: &mut Context<'_>) -> Poll<Progress> {
        Poll::Ready(Progress)
    }
}

//! What random programs are made of. Those of `leasehold`, with leases, are made of the same.
#![allow(dead_code, reason = "each test uses a part")]

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A task, or a branch of one.
pub(crate) type Task<'a, T = ()> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// xorshift64*: the same programs every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 0 ..= `below` − 1.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).expect("31 bits") % below
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Polls once, by hand: these programs need no wakes, as everything is polled again and again.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Ready after that many more polls.
pub(crate) async fn polls(mut left: usize) {
    poll_fn(|_| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        Poll::Pending
    })
    .await;
}

/// Polls all branches until all are ready, each from another start; as `join!` does.
pub(crate) async fn join(mut branches: Vec<Task<'_>>) {
    let mut turn = 0;
    poll_fn(|cx| {
        turn += 1;
        let mut at = 0;
        if !branches.is_empty() {
            let start = turn % branches.len();
            branches.rotate_left(start);
        }
        while at < branches.len() {
            match branches[at].as_mut().poll(cx) {
                Poll::Ready(()) => drop(branches.remove(at)),
                Poll::Pending => at += 1,
            }
        }
        if branches.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

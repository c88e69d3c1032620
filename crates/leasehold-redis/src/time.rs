//! Waiting on the client's clock, in any runtime or in none.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use leasehold_core::{Clock, LocalTime, Sleep};
use rand::RngExt as _;

/// What the future gives, or `None` when the limit came first. No timer is set for a future that is
/// ready at once.
pub(crate) async fn before<T>(limit: Sleep, future: impl Future<Output = T>) -> Option<T> {
    let (mut limit, mut future) = (pin!(limit), pin!(future));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Waits until `at`.
pub(crate) async fn until(clock: &Arc<dyn Clock>, at: LocalTime) {
    Sleep::until(Arc::clone(clock), at).await;
}

/// Pauses between tries: doubled from `first` up to `most`, each drawn from its upper half, so that
/// clients that failed together do not come back together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackOff {
    next: Duration,
    most: Duration,
}

impl BackOff {
    pub(crate) const fn new(first: Duration, most: Duration) -> Self {
        Self { next: first, most }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next.mul_f64(rand::rng().random_range(0.5..1.0));
        self.next = (self.next * 2).min(self.most);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let (first, most) = (Duration::from_millis(10), Duration::from_millis(50));
        let mut back_off = BackOff::new(first, most);
        let pauses: Vec<_> = (0..6).map(|_| back_off.pause()).collect();
        for (pause, next) in pauses.iter().zip([10, 20, 40, 50, 50, 50]) {
            let next = Duration::from_millis(next);
            assert!((next / 2..=next).contains(pause), "{pauses:?}");
        }
    }
}

//! A future that is ready at a time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{Clock, LocalTime, timers::TimerId};

/// Ready once its clock has reached a time. The clock decides, the timer only wakes: an early or
/// late timer changes nothing about the answer (rule T3).
pub struct Sleep {
    clock: Arc<dyn Clock>,
    at: LocalTime,
    timer: Option<(TimerId, Waker)>,
}

impl Sleep {
    /// Sleeps on `clock` until `at`. Nothing happens before the first poll.
    #[must_use]
    pub fn until(clock: Arc<dyn Clock>, at: LocalTime) -> Self {
        Self { clock, at, timer: None }
    }

    /// When it ends.
    #[must_use]
    pub const fn deadline(&self) -> LocalTime {
        self.at
    }

    fn clear(&mut self) {
        if let Some((timer, _)) = self.timer.take() {
            self.clock.clear_timer(timer);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.at {
            self.clear();
            return Poll::Ready(());
        }
        let known = self.timer.as_ref().is_some_and(|(_, waker)| waker.will_wake(cx.waker()));
        if !known {
            self.clear();
            let waker = cx.waker().clone();
            self.timer = Some((self.clock.set_timer(self.at, waker.clone()), waker));
            // The clock may have passed the time before the timer was set; a manual clock would
            // not fire it again.
            if self.clock.now() >= self.at {
                self.clear();
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("at", &self.at).finish_non_exhaustive()
    }
}

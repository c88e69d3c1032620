//! One timer per wait (rule W8): Tokio's where its time may be paused, that is in a current-thread
//! runtime with time; else a thread of this crate's own, which any executor can be woken from.
//!
//! The time of Tokio's multi-thread runtimes cannot be paused, so both clocks are the same there,
//! and the thread costs a wait that is soon over a fraction of what Tokio's timers cost it.

#[cfg(not(leasehold_loom))]
mod clock;
#[cfg_attr(leasehold_loom, expect(dead_code, reason = "there is no time in the model"))]
mod shard;
mod shards;
#[cfg_attr(leasehold_loom, expect(dead_code, reason = "there is no time in the model"))]
mod slots;
#[cfg(leasehold_loom)]
#[path = "model.rs"]
mod thread;
#[cfg(not(leasehold_loom))]
mod thread;
#[cfg(all(feature = "tokio", not(leasehold_loom)))]
mod tokio_time;

use std::{
    task::{Context, Poll, Waker},
    time::Duration,
};

use self::slots::{Slot, SlotId};

/// Ready once its time has come.
pub(crate) enum Timer {
    #[cfg(all(feature = "tokio", not(leasehold_loom)))]
    Tokio(std::pin::Pin<Box<tokio_time::TokioTimer>>),
    /// Of our thread, and not waited for yet; in nanoseconds.
    New(u64),
    Set(Slot),
}

/// The timer of a request in the queue of a lock.
pub(crate) enum Alarm {
    /// The waker that is queued is that of the slot ([`Slot::into_waker`]).
    Queued(SlotId),
    /// It wakes the task by a waker of its own.
    #[cfg_attr(
        any(leasehold_loom, not(feature = "tokio")),
        expect(dead_code, reason = "only Tokio's timers are apart")
    )]
    Apart(Timer),
}

/// Centuries, and no sum with what a clock says overflows.
const NANOS_MAX: u64 = u64::MAX / 2;

impl Timer {
    /// Starts with the first poll at the latest. `None`: no clock goes that far.
    #[inline]
    pub(crate) fn start(timeout: Duration) -> Option<Self> {
        #[cfg(all(feature = "tokio", not(leasehold_loom)))]
        if let Some(runtime) = tokio_time::may_pause() {
            return Self::start_in(runtime, timeout);
        }
        nanos(timeout).map(Self::New)
    }

    #[cfg(all(feature = "tokio", not(leasehold_loom)))]
    #[cold]
    fn start_in(runtime: tokio::runtime::Id, timeout: Duration) -> Option<Self> {
        let timer = tokio_time::TokioTimer::start(runtime, timeout)?;
        Some(Self::Tokio(Box::pin(timer)))
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(all(feature = "tokio", not(leasehold_loom)))]
            Self::Tokio(timer) => match timer.as_mut().poll(cx) {
                Ok(polled) => polled,
                Err(left) => {
                    *self = Self::New(nanos(left).unwrap_or(NANOS_MAX));
                    self.poll(cx)
                }
            },
            Self::New(timeout) => {
                *self = Self::Set(thread::begin(*timeout, cx));
                Poll::Pending
            }
            Self::Set(slot) => thread::renew(slot.id(), cx, || true),
        }
    }
}

impl Alarm {
    /// Starts for a request that is about to be queued with the waker that this gives. `None`: no
    /// clock goes that far.
    #[inline]
    pub(crate) fn start(timeout: Duration, cx: &Context<'_>) -> (Option<Self>, Waker) {
        #[cfg(all(feature = "tokio", not(leasehold_loom)))]
        if let Some(runtime) = tokio_time::may_pause() {
            return (Timer::start_in(runtime, timeout).map(Self::Apart), cx.waker().clone());
        }
        let Some(timeout) = nanos(timeout) else { return (None, cx.waker().clone()) };
        let slot = thread::begin(timeout, cx);
        (Some(Self::Queued(slot.id())), slot.into_waker())
    }

    /// Of a request that was found queued, also ready if it is not queued any more, as `waits` says.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, waits: impl FnOnce() -> bool) -> Poll<()> {
        match self {
            Self::Queued(slot) => thread::renew(*slot, cx, waits),
            Self::Apart(timer) => timer.poll(cx),
        }
    }
}

#[inline]
fn nanos(timeout: Duration) -> Option<u64> {
    let seconds = timeout.as_secs().checked_mul(1_000_000_000)?;
    seconds.checked_add(u64::from(timeout.subsec_nanos())).filter(|&nanos| nanos <= NANOS_MAX)
}

#[cfg(all(test, not(leasehold_loom)))]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
        time::Instant,
    };

    use super::*;
    use crate::block::block_on;

    const HOUR: Duration = Duration::from_secs(3600);

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Wakes {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn queued(wakes: &Arc<Wakes>) -> (Alarm, SlotId, Waker) {
        let task = Waker::from(Arc::clone(wakes));
        let (alarm, waker) = Alarm::start(HOUR, &Context::from_waker(&task));
        let Some(Alarm::Queued(slot)) = alarm else { panic!("a timer of our thread") };
        (Alarm::Queued(slot), slot, waker)
    }

    #[test]
    fn a_dropped_timer_leaves_nothing_behind() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut timers: Vec<Timer> =
            (0..100).map(|_| Timer::start(HOUR).expect("within the clock")).collect();
        for timer in &mut timers {
            assert!(timer.poll(&mut cx).is_pending());
            assert!(timer.poll(&mut cx).is_pending());
        }
        let Some(Timer::Set(slot)) = timers.first() else { panic!("a timer of our thread") };
        let here = slot.id();
        let held = here.waits_beside();
        assert!(held >= 100);
        drop(timers);
        // Other tests may have begun a few.
        assert!(here.waits_beside() < held - 50);
    }

    #[test]
    fn the_waker_in_the_queue_wakes_the_task_that_polled_last_and_frees_the_slot() {
        let (first, second) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
        let (mut alarm, _, waker) = queued(&first);
        let task = Waker::from(Arc::clone(&second));
        assert!(alarm.poll(&mut Context::from_waker(&task), || true).is_pending());
        drop(task);
        assert_eq!(Arc::strong_count(&first), 1);
        waker.wake();
        assert_eq!((first.count(), second.count()), (0, 1));
        assert_eq!(Arc::strong_count(&second), 1, "the slot has kept a waker");
        // Who was granted meanwhile must not touch the slot, which may be another's by now.
        assert!(alarm.poll(&mut Context::from_waker(Waker::noop()), || false).is_ready());
    }

    #[test]
    fn a_waker_that_is_taken_out_of_the_queue_wakes_nobody() {
        let wakes = Arc::<Wakes>::default();
        let (_, _, waker) = queued(&wakes);
        drop(waker);
        assert_eq!((wakes.count(), Arc::strong_count(&wakes)), (0, 1));
    }

    #[test]
    fn a_long_timeout_is_never_early_and_not_very_late() {
        for timeout in [Duration::from_millis(999), Duration::from_secs(1)] {
            let begun = Instant::now();
            let mut timer = Timer::start(timeout).expect("within the clock");
            block_on(std::future::poll_fn(|cx| timer.poll(cx)));
            assert!(begun.elapsed() >= timeout);
            // A minute: only a wait that was forgotten takes that long.
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn a_time_beyond_the_clock_makes_no_timer() {
        assert!(Timer::start(Duration::MAX).is_none());
    }

    #[test]
    fn a_timeout_is_counted_in_nanoseconds() {
        assert_eq!(nanos(Duration::from_nanos(1)), Some(1));
        assert_eq!(nanos(Duration::new(2, 3)), Some(2_000_000_003));
        assert_eq!(nanos(Duration::from_nanos(NANOS_MAX)), Some(NANOS_MAX));
        assert_eq!(nanos(Duration::from_nanos(NANOS_MAX + 1)), None);
    }
}

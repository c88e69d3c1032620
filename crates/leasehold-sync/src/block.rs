//! Blocks a thread on a future: for the `blocking` forms.

#[cfg(leasehold_loom)]
pub(crate) use loom::future::block_on;

#[cfg(not(leasehold_loom))]
pub(crate) use self::thread::block_on;
#[cfg(all(feature = "tokio", not(leasehold_loom)))]
pub(crate) use self::thread::blocks;

#[cfg(not(leasehold_loom))]
mod thread {
    use std::{
        cell::Cell,
        future::Future,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        task::{Context, Poll, Wake, Waker},
        thread::Thread,
    };

    struct Parked {
        thread: Thread,
        woken: AtomicBool,
    }

    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            // The flag, not the thread's token, says that it was us: other code parks too.
            if !self.woken.swap(true, Ordering::Release) {
                self.thread.unpark();
            }
        }
    }

    thread_local! {
        /// One per thread, so that waiting does not allocate.
        static PARKED: Arc<Parked> = new();
        /// Whether this thread blocks on a future of this crate.
        static BLOCKS: Cell<bool> = const { Cell::new(false) };
    }

    /// Says so until it is dropped.
    struct Blocks {
        before: bool,
    }

    impl Drop for Blocks {
        fn drop(&mut self) {
            BLOCKS.set(self.before);
        }
    }

    /// Whether what is polled now is what this thread blocks on.
    #[cfg(feature = "tokio")]
    pub(crate) fn blocks() -> bool {
        BLOCKS.get()
    }

    fn new() -> Arc<Parked> {
        Arc::new(Parked { thread: std::thread::current(), woken: AtomicBool::new(false) })
    }

    /// Runs the future on this thread.
    pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        // While a thread ends, its thread-local values may be gone already.
        let parked = PARKED.try_with(Arc::clone).unwrap_or_else(|_| new());
        let waker = Waker::from(Arc::clone(&parked));
        let _blocks = Blocks { before: BLOCKS.replace(true) };
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            while !parked.woken.swap(false, Ordering::Acquire) {
                std::thread::park();
            }
        }
    }
}

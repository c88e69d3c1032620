//! Under loom there is no time: a timer is a thread that fires at any moment.

use std::task::{Context, Poll};

use loom::{
    future::AtomicWaker,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

pub(crate) struct ModelTimer(Arc<Fired>);

struct Fired {
    fired: AtomicBool,
    waker: AtomicWaker,
}

impl ModelTimer {
    pub(crate) fn start() -> Self {
        let fired = Arc::new(Fired { fired: AtomicBool::new(false), waker: AtomicWaker::new() });
        let timer = Arc::clone(&fired);
        loom::thread::spawn(move || {
            timer.fired.store(true, Ordering::Release);
            timer.waker.wake();
        });
        Self(fired)
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.waker.register_by_ref(cx.waker());
        if self.0.fired.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

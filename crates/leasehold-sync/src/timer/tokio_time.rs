//! Whether Tokio's timers have to be used here, and can be.
//!
//! Tokio has no question for that: where a runtime was built without time, making a timer panics.
//! So it is tried, once per runtime, and the answer is kept. The panic is caught, and kept from
//! the panic hook too: it is an answer, not a fault.

use std::{
    cell::Cell,
    collections::HashMap,
    future::Future,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    runtime::{Handle, Id, RuntimeFlavor},
    time::{Instant, Sleep},
};

use crate::block;

pin_project! {
    /// A timer of the runtime in which it was started, for as long as it is polled there.
    pub(crate) struct TokioTimer {
        #[pin]
        sleep: Sleep,
        runtime: Id,
    }
}

impl TokioTimer {
    /// Starts now, where [`may_pause`] says. `None`: no clock goes that far.
    pub(super) fn start(runtime: Id, timeout: Duration) -> Option<Self> {
        let deadline = Instant::now().checked_add(timeout)?;
        Some(Self { sleep: tokio::time::sleep_until(deadline), runtime })
    }

    /// `Err`: this timer is of no use any more, and that much time is left. Its runtime is shut
    /// down, or the wait was taken elsewhere, and the runtime may turn its timers no more.
    pub(super) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Result<Poll<()>, Duration> {
        let this = self.project();
        let deadline = this.sleep.deadline();
        if deadline <= Instant::now() {
            return Ok(Poll::Ready(()));
        }
        let here = Handle::try_current().is_ok_and(|handle| handle.id() == *this.runtime);
        // It fires before its time, or panics, where its runtime is shut down.
        if here && !this.sleep.is_elapsed() {
            // What Tokio panics with is a text, which may be dropped.
            if let Ok(polled) = panic::catch_unwind(AssertUnwindSafe(|| this.sleep.poll(cx))) {
                return Ok(polled);
            }
        }
        Err(deadline.saturating_duration_since(Instant::now()))
    }
}

/// Answers that are kept; a program that makes more runtimes is asked again now and then.
const ANSWERS_MAX: usize = 1024;

thread_local! {
    /// The last answer on this thread.
    static LAST: Cell<Option<(Id, bool)>> = const { Cell::new(None) };
    static PROBING: Cell<bool> = const { Cell::new(false) };
}

static ANSWERS: Mutex<Option<HashMap<Id, bool>>> = Mutex::new(None);

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// The Tokio runtime that is running here, if its time may be paused now or later.
pub(super) fn may_pause() -> Option<Id> {
    // A program that aborts on panic cannot try; the timer thread serves it as well, as only
    // tests pause the time.
    // A thread that blocks turns no timers, and while it does, the time of a runtime whose
    // blocking thread it is stands still if it is paused.
    if cfg!(panic = "abort") || block::blocks() {
        return None;
    }
    let handle = Handle::try_current().ok()?;
    if handle.runtime_flavor() == RuntimeFlavor::MultiThread {
        return None;
    }
    let runtime = handle.id();
    drop(handle);
    let has_time = match LAST.try_with(Cell::get) {
        Ok(Some((last, answer))) if last == runtime => answer,
        Ok(_) => {
            let answer = ask(runtime);
            let _ = LAST.try_with(|last| last.set(Some((runtime, answer))));
            answer
        }
        // The thread is ending.
        Err(_) => false,
    };
    has_time.then_some(runtime)
}

fn ask(runtime: Id) -> bool {
    // Held during the probe too: two at a time would mistake each other's hook for the user's.
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = answers.get_or_insert_default();
    if let Some(&answer) = answers.get(&runtime) {
        return answer;
    }
    let answer = probe();
    if answers.len() >= ANSWERS_MAX {
        answers.clear();
    }
    answers.insert(runtime, answer);
    answer
}

fn probe() -> bool {
    // The hook cannot be changed while this thread unwinds, so nothing is tried then.
    if std::thread::panicking() {
        return false;
    }
    let quiet = QuietHook::set();
    PROBING.set(true);
    let made = panic::catch_unwind(AssertUnwindSafe(|| {
        drop(tokio::time::sleep(Duration::ZERO));
    }));
    PROBING.set(false);
    quiet.restore();
    made.is_ok()
}

/// Keeps the panic of the probe, and no other, from the hook that was set.
struct QuietHook {
    loud: Arc<Mutex<Option<Hook>>>,
    address: *const (),
}

impl QuietHook {
    fn set() -> Self {
        let loud = Arc::new(Mutex::new(Some(panic::take_hook())));
        let shared = Arc::clone(&loud);
        let hook: Hook = Box::new(move |info| {
            if !PROBING.try_with(Cell::get).unwrap_or(false)
                && let Some(loud) = &*shared.lock().unwrap_or_else(PoisonError::into_inner)
            {
                loud(info);
            }
        });
        let address = address(&hook);
        panic::set_hook(hook);
        Self { loud, address }
    }

    /// Puts the very hook back that was there before, unless somebody has set another meanwhile:
    /// that one stays, and may go on calling ours, which goes on calling the one before.
    fn restore(self) {
        let now = panic::take_hook();
        if address(&now) != self.address {
            panic::set_hook(now);
            return;
        }
        let loud = self.loud.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(loud) = loud {
            panic::set_hook(loud);
        }
    }
}

fn address(hook: &Hook) -> *const () {
    std::ptr::from_ref(&**hook).cast()
}

//! Whether Tokio's timers can be used here.
//!
//! Tokio has no question for that: where a runtime was built without time, making a timer panics.
//! So it is tried, once per runtime, and the answer is kept. The panic is caught, and kept from
//! the panic hook too: it is an answer, not a fault.

use std::{
    cell::Cell,
    collections::HashMap,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::runtime::{Handle, Id};

/// Answers that are kept; a program that makes more runtimes is asked again now and then.
const ANSWERS_MAX: usize = 1024;

thread_local! {
    /// The last answer on this thread.
    static LAST: Cell<Option<(Id, bool)>> = const { Cell::new(None) };
    static PROBING: Cell<bool> = const { Cell::new(false) };
}

static ANSWERS: Mutex<Option<HashMap<Id, bool>>> = Mutex::new(None);

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// Whether a Tokio runtime with time is running here.
pub(super) fn is_running() -> bool {
    // A program that aborts on panic cannot try; the timer thread serves it as well, as only
    // tests pause the time.
    if cfg!(panic = "abort") {
        return false;
    }
    let Ok(runtime) = Handle::try_current().map(|handle| handle.id()) else { return false };
    match LAST.try_with(Cell::get) {
        Ok(Some((last, answer))) if last == runtime => answer,
        Ok(_) => {
            let answer = ask(runtime);
            let _ = LAST.try_with(|last| last.set(Some((runtime, answer))));
            answer
        }
        // The thread is ending.
        Err(_) => false,
    }
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

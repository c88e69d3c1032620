//! Sees to it that a server that does not answer is noticed. One task of the client's thread looks
//! at all connections, so that a request needs no timer of its own: answers come in order, and a
//! connection on which one is missing for too long has none for anybody.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::link::Link;

/// How many looks a command timeout has.
const LOOKS: u32 = 8;
/// With longer timeouts the looks come as often as this.
const LOOK_MAX: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Pulse {
    /// How long the server may be silent while somebody waits.
    limit: Duration,
    /// Nobody waits: the task sleeps.
    still: AtomicBool,
    notify: Notify,
    /// The same for who follows the master.
    stirs: Notify,
    links: Mutex<Vec<Beaten>>,
}

/// A connection, and how it was found at the last look.
#[derive(Debug)]
struct Beaten {
    link: Weak<Link>,
    heard: u64,
    /// Since when somebody has waited and nothing was heard.
    silent_since: Option<Instant>,
    asked: bool,
}

impl Pulse {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            still: AtomicBool::new(true),
            notify: Notify::new(),
            stirs: Notify::new(),
            links: Mutex::default(),
        }
    }

    /// Looks at this connection too.
    pub(crate) fn watch(&self, link: &Arc<Link>) {
        let mut links = self.links();
        links.retain(|beaten| beaten.link.strong_count() > 0);
        let link = Arc::downgrade(link);
        links.push(Beaten { link, heard: 0, silent_since: None, asked: false });
    }

    /// Somebody waits from now on.
    pub(crate) fn quicken(&self) {
        if self.still.load(SeqCst) && self.still.swap(false, SeqCst) {
            self.notify.notify_one();
            self.stirs.notify_one();
        }
    }

    /// Waits until somebody waits, if nobody does or has of late.
    pub(crate) async fn stirred(&self) {
        while self.still.load(SeqCst) {
            self.stirs.notified().await;
        }
    }

    /// Every connection that is still there.
    pub(crate) fn living(&self) -> Vec<Arc<Link>> {
        self.links().iter().filter_map(|beaten| beaten.link.upgrade()).collect()
    }

    /// Looks for as long as it is polled.
    pub(crate) async fn run(&self) {
        let step = (self.limit / LOOKS).min(LOOK_MAX);
        loop {
            while self.still.load(SeqCst) {
                self.notify.notified().await;
            }
            let mut quiet = 0;
            // Who sends once in a while shall not pay for a wake-up each time.
            while quiet < LOOKS {
                sleep(step).await;
                quiet = if self.look() { 0 } else { quiet + 1 };
            }
            self.still.store(true, SeqCst);
            // Who took off before the flag was set has not seen it.
            if self.living().iter().any(|link| link.is_waited_for()) {
                self.still.store(false, SeqCst);
            }
        }
    }

    /// Whether anybody waits. Cuts the connections that have been silent for too long.
    fn look(&self) -> bool {
        let now = Instant::now();
        let mut waited = false;
        let (mut suspects, mut silent) = (Vec::new(), Vec::new());
        for beaten in self.links().iter_mut() {
            let Some(link) = beaten.link.upgrade() else { continue };
            let heard = link.heard();
            let waits = link.is_waited_for() && !link.is_over();
            waited |= waits;
            if !waits || heard != beaten.heard {
                beaten.heard = heard;
                beaten.silent_since = waits.then_some(now);
                beaten.asked = false;
                continue;
            }
            let since = *beaten.silent_since.get_or_insert(now);
            let limit = self.limit + link.patience();
            if now - since >= limit {
                silent.push(link);
            } else if now - since >= limit / 2 && !beaten.asked {
                beaten.asked = true;
                suspects.push(link);
            }
        }
        for link in suspects {
            // An answer may be there that its asker has not looked at yet; this one will be.
            tokio::spawn(async move { link.ask(&redis::cmd("PING")).await });
        }
        silent.iter().for_each(|link| link.cut());
        waited
    }

    fn links(&self) -> MutexGuard<'_, Vec<Beaten>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The holder's side: orders in, events out.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, Write as _},
    process,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend, Binding, Call, Clock as _, Confirmed, Extended, Fault,
    HolderInfo, Released, Share, SystemClock, Token, Ttl, Weight, defaults,
};

use super::protocol::{Event, Happened, Order, Wish};
use crate::bench::block::{block_on, outcome};

/// A waiter of a holder waits as long as its case lets it: for ever, on the scale of a test.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// Runs as the holder on the store at `address` until standard input ends; then the process exits
/// and its client with it.
///
/// # Panics
/// When an order cannot be read.
pub fn main(address: &str, connect: impl FnOnce(&str) -> Arc<dyn Backend>) -> ! {
    let holder = Arc::new(Holder {
        backend: connect(address),
        acquired: Mutex::default(),
        clock: SystemClock::new(),
    });
    holder.tell(Happened::Ready, "", None, Some(format!("pid {}", process::id())));
    for line in io::stdin().lock().lines() {
        let line = line.expect("standard input can be read");
        let order = serde_json::from_str(&line).expect("an order");
        holder.obey(order);
    }
    process::exit(0)
}

struct Holder {
    backend: Arc<dyn Backend>,
    acquired: Mutex<HashMap<String, Acquire>>,
    clock: SystemClock,
}

impl Holder {
    fn obey(self: &Arc<Self>, order: Order) {
        match order {
            Order::Acquire(wish) => self.acquire(&wish),
            Order::Confirm { id } => {
                if let Some(request) = self.request(&id) {
                    self.confirm(&id, &request);
                }
            }
            Order::Release { id } => {
                if let Some(request) = self.request(&id) {
                    self.release(&id, &request);
                }
            }
            Order::Extend { id, ttl_ms } => {
                if let Some(request) = self.request(&id) {
                    self.extend(&id, &request, ttl_ms);
                }
            }
            Order::Sections { wish, count, hold_us } => {
                let holder = Arc::clone(self);
                thread::spawn(move || holder.sections(&wish, count, hold_us));
            }
            Order::Close => {
                if self.answer("", self.backend.close()).is_some() {
                    self.tell(Happened::Closed, "", None, None);
                }
            }
        }
    }

    fn request(&self, id: &str) -> Option<Acquire> {
        let request = self.acquired.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if request.is_none() {
            self.tell(Happened::Failed, id, None, Some("no such acquisition".into()));
        }
        request
    }

    fn acquire(self: &Arc<Self>, wish: &Wish) {
        let request = request_of(wish);
        self.acquired
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(wish.id.clone(), request.clone());
        let (id, claim_only) = (wish.id.clone(), wish.claim_only);
        match self.answer(&id, self.backend.acquire(&request)) {
            Some(Acquired::Granted(grant)) => {
                self.tell(Happened::Held, &id, Some(grant.fencing.get()), None);
            }
            Some(Acquired::Queued(place)) => {
                self.tell(Happened::Queued, &id, None, None);
                let holder = Arc::clone(self);
                thread::spawn(move || {
                    while block_on(place.wake.notified(), FOREVER).is_some() {
                        if claim_only {
                            return holder.tell(Happened::Claimed, &id, None, None);
                        }
                        if holder.confirm(&id, &request) {
                            return;
                        }
                    }
                });
            }
            Some(other) => self.tell(Happened::Refused, &id, None, Some(format!("{other:?}"))),
            None => {}
        }
    }

    /// Tells what became of a waiter; false: nothing yet.
    fn confirm(&self, id: &str, request: &Acquire) -> bool {
        match self.answer(id, self.backend.confirm(&request.lock, &request.token)) {
            Some(Confirmed::Granted(grant)) => {
                self.tell(Happened::Held, id, Some(grant.fencing.get()), None);
            }
            Some(Confirmed::Rejected(rejection)) => {
                self.tell(Happened::Rejected, id, None, Some(format!("{rejection:?}")));
            }
            Some(Confirmed::Unknown) => self.tell(Happened::Unknown, id, None, None),
            Some(Confirmed::Waiting) => return false,
            None => {}
        }
        true
    }

    fn release(&self, id: &str, request: &Acquire) {
        match self.answer(id, self.backend.release(&request.lock, &request.token)) {
            Some(Released::Holder) => self.tell(Happened::Released, id, None, None),
            Some(Released::Waiter(_)) => self.tell(Happened::Left, id, None, None),
            Some(Released::Unknown) => self.tell(Happened::Unknown, id, None, None),
            None => {}
        }
    }

    fn extend(&self, id: &str, request: &Acquire, ttl_ms: Option<u64>) {
        let ttl = ttl_ms.map(ttl_of);
        match self.answer(id, self.backend.extend(&request.lock, &request.token, ttl)) {
            Some(Extended::Held) => self.tell(Happened::Extended, id, None, None),
            Some(other) => self.tell(Happened::Unknown, id, None, Some(format!("{other:?}"))),
            None => {}
        }
    }

    fn sections(&self, wish: &Wish, count: u32, hold_us: u64) {
        for _ in 0..count {
            let request = request_of(wish);
            match self.answer(&wish.id, self.backend.acquire(&request)) {
                Some(Acquired::Granted(grant)) => {
                    self.tell(Happened::Held, &wish.id, Some(grant.fencing.get()), None);
                }
                Some(Acquired::Queued(place)) => {
                    while block_on(place.wake.notified(), FOREVER).is_some()
                        && !self.confirm(&wish.id, &request)
                    {}
                }
                other => {
                    return self.tell(Happened::Failed, &wish.id, None, Some(format!("{other:?}")));
                }
            }
            // sleep: the work of the section.
            thread::sleep(Duration::from_micros(hold_us));
            self.tell(Happened::Leaving, &wish.id, None, None);
            self.release(&wish.id, &request);
        }
        self.tell(Happened::Done, &wish.id, None, None);
    }

    /// The answer; a fault is told instead.
    fn answer<T>(&self, id: &str, call: Call<T>) -> Option<T> {
        let told = |fault: Fault| {
            self.tell(Happened::Failed, id, None, Some(format!("{fault} ({:?})", fault.kind())));
        };
        outcome(call).map_err(told).ok()
    }

    fn tell(&self, happened: Happened, id: &str, fencing: Option<u64>, detail: Option<String>) {
        let at_us = self.clock.now().0;
        let event = Event { happened, id: id.to_owned(), at_us, fencing, detail };
        let mut line = serde_json::to_string(&event).expect("an event is data");
        line.push('\n');
        let mut out = io::stdout().lock();
        // Nobody reads any more: the case is over, and so is this process.
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            process::exit(0);
        }
    }
}

fn request_of(wish: &Wish) -> Acquire {
    let lock = wish.lock.lock();
    let share = match wish.weight {
        Some(permits) => Share::Permits(Weight::new(permits).expect("a valid weight")),
        None => Share::Whole,
    };
    Acquire {
        lock: lock.id,
        generation: None,
        capacity: lock.claim,
        share,
        token: wish.token.clone().unwrap_or_else(Token::random),
        attempt: AttemptId::random(),
        ttl: wish.ttl_ms.map(ttl_of),
        binding: if wish.detached { Binding::Token } else { Binding::Client },
        wait: true,
        not_after: None,
        queue_limit: defaults::QUEUE_LIMIT,
        info: Arc::new(HolderInfo::here()),
    }
}

fn ttl_of(ms: u64) -> Ttl {
    Ttl::new(Duration::from_millis(ms)).expect("a valid TTL")
}

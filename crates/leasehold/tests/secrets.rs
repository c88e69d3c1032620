//! No token in logs, errors, lists, metrics or the `Debug` of anything (rules T5, E2). Everything
//! is listened to at trace level; only `Display` of `Token` and `Ticket` is the secret.

mod common;

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Probe, ms, now};
use leasehold::{LockManager, ManualClock, MemoryStore, RunError, Token};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

const SECRET: &str = "hunter2-hunter2-hunter2";

/// Keeps everything that is told, as text.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<String>>);

impl Listener {
    fn heard(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, what: impl Debug) {
        writeln!(self.0.lock().unwrap(), "{what:?}").unwrap();
    }
}

impl Visit for Listener {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(feature = "metrics")]
mod numbers {
    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::Listener;

    impl Recorder for Listener {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.note(key);
            Counter::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.note(key);
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.note(key);
            Histogram::noop()
        }
    }
}

#[test]
fn no_token_is_told_to_anybody() {
    let listener = Listener::default();
    tracing::subscriber::set_global_default(listener.clone()).unwrap();
    #[cfg(feature = "metrics")]
    metrics::set_global_recorder(listener.clone()).map_err(|_| "a recorder is set").unwrap();

    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let locks = LockManager::new(store.client());
    let other = LockManager::new(store.client());
    let secret = Token::new(SECRET).unwrap();
    let orders = locks.mutex("orders").unwrap();
    listener.note((&locks, &store, &orders, &secret, LockManager::builder()));

    // Granted, queued, timed out, cancelled, refused.
    let lease = now(orders.lock().token(secret.clone())).unwrap();
    listener.note((&lease, orders.lock().token(secret.clone()), orders.try_lock()));
    listener.note(now(orders.lock().token(secret.clone())).unwrap_err());
    let drawn = Token::random();
    let drawn_text = drawn.to_string();
    let mut waiter = Probe::pending(orders.lock().token(drawn.clone()).timeout(ms(10)));
    clock.advance(ms(10));
    listener.note(waiter.done().unwrap_err());
    let mut waiter = Probe::pending(orders.lock().token(drawn.clone()));
    locks.cancel_all("stop");
    listener.note(waiter.done().unwrap_err());
    listener.note((
        now(locks.snapshot()),
        now(locks.survey()),
        locks.list(),
        now(orders.inspect()),
    ));

    // Renewed, extended, restored, handed over, adopted, released.
    clock.advance(Duration::from_secs(20));
    listener.note((now(lease.extend(ms(5000))), now(lease.remaining()), lease.certain_for()));
    let ticket = now(lease.into_ticket()).unwrap();
    let restored = other.restore(&ticket).unwrap();
    listener.note((&ticket, &restored, restored.adopt(), now(restored.remaining())));
    let adopted = now(restored.adopt().renew()).unwrap().unwrap();
    listener.note((&adopted, now(restored.extend(ms(100))), now(adopted.release())));
    let detached = now(orders.lock().token(secret.clone()).detached()).unwrap();
    listener.note((&detached, now(locks.restore(detached.ticket()).unwrap().release())));
    let endless = now(orders.lock().token(secret.clone()).ttl(None)).unwrap();
    listener.note(now(endless.into_ticket()).unwrap_err());

    // Lost while it worked; destroyed; shut down.
    let (running, moved) = (orders.clone(), clock.clone());
    let run: Result<(), RunError<()>> = now(async move {
        let asking = running.lock().token(secret).ttl(ms(10));
        asking.run(async |_| moved.advance(ms(50))).await
    });
    listener.note(run.unwrap_err());
    let lease = now(orders.lock().token(drawn)).unwrap();
    now(orders.destroy()).unwrap();
    listener.note((now(lease.lost()), now(lease.release()), &lease));
    now(locks.shutdown()).unwrap();
    listener.note((&locks, now(orders.lock()).unwrap_err()));

    let heard = listener.heard();
    assert!(heard.contains("not granted") && heard.contains("lease lost"), "nobody listened");
    #[cfg(feature = "metrics")]
    assert!(heard.contains("leasehold_grants_total"), "nobody counted");
    for secret in [SECRET, &drawn_text, &SECRET[..8], &drawn_text[..8]] {
        assert!(!heard.contains(secret), "{secret} was told");
    }
}

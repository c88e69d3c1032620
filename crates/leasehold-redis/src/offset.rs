//! The store's time as it is known here. It is used to tell copies of a request from the request
//! (rule L7): the server's own clock decides expiry (rule L1).

use std::{
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use leasehold_core::{LocalTime, StoreTime, defaults};
use redis::Value;

/// How far the server's clock is ahead of the local one, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Offset {
    ahead: AtomicI64,
    known: AtomicBool,
    /// How far stamps are ahead of the server's time as it is known here, in microseconds.
    lead: AtomicU64,
    /// How long the last question took, in microseconds.
    round_trip: AtomicU64,
}

impl Offset {
    /// Learns from an answer to TIME; another answer teaches nothing. The server may have answered
    /// at any moment in between, so the middle is off by half of that at most.
    pub(crate) fn learn(&self, sent: LocalTime, received: LocalTime, answer: &Value) {
        let Some(server) = server_time(answer) else { return };
        let middle = sent.0 / 2 + received.0 / 2;
        self.ahead.store(server.wrapping_sub(middle).cast_signed(), SeqCst);
        self.round_trip.store(received.0.saturating_sub(sent.0), SeqCst);
        self.known.store(true, SeqCst);
    }

    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip.load(SeqCst))
    }

    /// How long a grant out of the queue waits for its confirmation (rule L10).
    pub(crate) fn claim(&self) -> Duration {
        defaults::CLAIM.max(self.round_trip() * 4)
    }

    /// `false`: the server has not told its time; then nothing is said about it.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load(SeqCst)
    }

    /// What an acquisition that is sent now is stamped with.
    pub(crate) fn stamp(&self, now: LocalTime) -> StoreTime {
        StoreTime(self.store_time(now).0.saturating_add(self.lead.load(SeqCst)))
    }

    /// Another client's stamp is later than one of ours that was sent after it: the clocks of both are
    /// only nearly the server's. From now on ours are later than that.
    pub(crate) fn overtaken(&self, by: StoreTime, now: LocalTime) {
        let behind = (by.0 + 1).saturating_sub(self.store_time(now).0);
        self.lead.fetch_max(behind, SeqCst);
    }

    pub(crate) fn store_time(&self, local: LocalTime) -> StoreTime {
        // The end of time is the same everywhere.
        if local == LocalTime::MAX {
            return StoreTime::MAX;
        }
        StoreTime(local.0.saturating_add_signed(self.ahead.load(SeqCst)))
    }

    pub(crate) fn local_time(&self, store: StoreTime) -> LocalTime {
        LocalTime(store.0.saturating_add_signed(self.ahead.load(SeqCst).saturating_neg()))
    }
}

/// Seconds and microseconds.
pub(crate) fn server_time(answer: &Value) -> Option<u64> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(seconds), Value::BulkString(micros)] = &parts[..] else { return None };
    let number = |bytes| std::str::from_utf8(bytes).ok()?.parse::<u64>().ok();
    number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_goes_both_ways() {
        let offset = Offset::default();
        let said = |seconds: &str| {
            let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
            Value::Array(vec![part(seconds), part("500000")])
        };
        offset.learn(LocalTime(1_000_000), LocalTime(2_000_000), &Value::Nil);
        assert!(!offset.is_known());
        // A server that is ahead, and one whose clock began after the machine.
        for (seconds, store) in [("7", 7_500_000), ("0", 500_000)] {
            offset.learn(LocalTime(1_000_000), LocalTime(2_000_000), &said(seconds));
            assert!(offset.is_known());
            assert_eq!(offset.store_time(LocalTime(1_500_000)), StoreTime(store));
            assert_eq!(offset.local_time(StoreTime(store)), LocalTime(1_500_000));
            assert_eq!(offset.store_time(LocalTime::MAX), StoreTime::MAX);
        }
    }

    #[test]
    fn l7_stamps_are_later_than_the_one_that_overtook() {
        let (offset, now) = (Offset::default(), LocalTime(1_000));
        assert_eq!(offset.stamp(now), StoreTime(1_000));
        offset.overtaken(StoreTime(5_000), now);
        assert_eq!(offset.stamp(now), StoreTime(5_001));
        // One that is behind does not set it back.
        offset.overtaken(StoreTime(2_000), now);
        assert_eq!(offset.stamp(LocalTime(1_010)), StoreTime(5_011));
    }
}

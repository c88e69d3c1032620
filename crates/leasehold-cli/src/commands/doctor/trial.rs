//! What every store must do: a round trip, a hand-off by push, a denial.

use std::time::{Duration, Instant};

use leasehold::{HolderInfo, LockManager, Namespace};

use super::Finding;
use crate::{duration, store::Store};

/// How many pairs of acquire and release are timed.
const PAIRS: usize = 21;

/// A round trip that takes longer makes every lock slow.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(200);

/// A hand-off that takes longer was not pushed, but found by a heartbeat.
const PUSH_MAX: Duration = Duration::from_millis(500);

/// How long the trials may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries two clients of the store on locks of their own.
pub(super) async fn findings(one: &Store, other: &Store) -> Vec<Finding> {
    let namespace = format!("leasehold-doctor-{}", std::process::id());
    let namespace = Namespace::new(namespace).expect("a short name");
    let [one, other] =
        [one, other].map(|store| store.manager(namespace.clone(), HolderInfo::here()));
    vec![round_trip(&one).await, hand_off(&one, &other).await]
}

async fn round_trip(locks: &LockManager) -> Finding {
    let what = "round trip";
    let measured = async {
        let trial = locks.mutex("round trip")?;
        let mut times = Vec::with_capacity(PAIRS);
        for _ in 0..PAIRS {
            let start = Instant::now();
            trial.lock().timeout(PATIENCE).await?.release().await?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok::<_, leasehold::Error>(times[PAIRS / 2])
    };
    match measured.await {
        Err(error) => Finding::bad(what, error.to_string(), "see what the error says"),
        Ok(median) if median > ROUND_TRIP_MAX => {
            let found = format!("{} for acquire and release", fine(median));
            Finding::weak(what, found, "slow: the machine, the disk or the network is overloaded")
        }
        Ok(median) => Finding::good(what, format!("{} for acquire and release", fine(median))),
    }
}

/// One client waits behind the other; its wake must be pushed.
async fn hand_off(one: &LockManager, other: &LockManager) -> Finding {
    let what = "hand-off";
    let measured = async {
        let held = one.mutex("hand-off")?.lock().timeout(PATIENCE).await?;
        let next = other.mutex("hand-off")?;
        let (tell, queued) = tokio::sync::oneshot::channel();
        let waiting = next.lock().timeout(PATIENCE).on_queued(move |_| {
            let _ = tell.send(());
        });
        let released = async {
            // It is queued, or has failed, which the other half tells.
            let _ = queued.await;
            let start = Instant::now();
            held.release().await.map(|_| start)
        };
        let (granted, start) =
            tokio::join!(async { waiting.await.map(|lease| (lease, Instant::now())) }, released);
        let ((lease, end), start) = (granted?, start?);
        lease.release().await?;
        Ok::<_, leasehold::Error>(end.saturating_duration_since(start))
    };
    match measured.await {
        Err(error) => Finding::bad(what, error.to_string(), "see what the error says"),
        Ok(gap) if gap > PUSH_MAX => Finding::weak(
            what,
            format!("{} from a release to the next holder", fine(gap)),
            "slow: an overloaded machine, or wakes do not arrive and waiters look now and then",
        ),
        Ok(gap) => Finding::good(what, format!("{} from a release to the next holder", fine(gap))),
    }
}

fn fine(time: Duration) -> String {
    if time < Duration::from_millis(1) {
        format!("{} µs", time.as_micros())
    } else {
        duration::format(time)
    }
}

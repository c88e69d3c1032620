//! `leasehold wait`: until a lock is free, without acquiring it.

use std::{convert::Infallible, future::pending, time::Duration};

use leasehold::{HolderInfo, LockKind, LockManager, LockState};
use tokio::time::{MissedTickBehavior, interval};

use super::request::{REFRESH, inspect};
use crate::{
    args::WaitForArgs,
    duration,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store, the_one},
    talk,
};

/// Waits (rule U1). A lock that nobody uses is free, and so is one of a store that is not there.
pub(crate) async fn wait(args: WaitForArgs, settings: &Settings) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    let place = Place::of(settings)?;
    place.say();
    let Some(state) = the_one(&place, &args.lock).await? else { return Ok(Exit::Success) };
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    if let Some(holder) = state.holders.first() {
        talk::detail(format_args!("{}: held by {}", state.lock, holder.info));
    }
    let locks = store.manager(args.lock.namespace.namespace.clone(), HolderInfo::here());
    let timeout = args.wait.timeout();
    let outcome = tokio::select! {
        biased;
        signal = signals.next_ending() => Ok(Exit::Signalled(signal)),
        freed = until_free(&locks, &state, args.any) => match freed {
            Ok(()) => Ok(Exit::Success),
            // Destroyed: then nobody holds it either.
            Err(error) if *error.kind() == leasehold::ErrorKind::Destroyed => Ok(Exit::Success),
            Err(error) => Err(error.into()),
        },
        never = tell(&locks, &state) => match never {},
        () = over(timeout) => {
            let waited = timeout.unwrap_or_default();
            let why = if waited.is_zero() { "not free".to_owned() } else { format!("not free within {waited:?}") };
            Err(Failure::new(Exit::NOT_ACQUIRED, format!("{}: {why}", state.lock)))
        }
    };
    store::shut_down(&locks, &mut signals).await;
    outcome.map_err(|failure| failure.conflicting_as(args.wait.conflict_exit_code))
}

async fn until_free(locks: &LockManager, state: &LockState, any: bool) -> leasehold::Result<()> {
    let name = state.lock.name().clone();
    match state.lock.kind() {
        LockKind::Mutex => locks.mutex(name)?.wait_for_unlock().await,
        LockKind::Semaphore => {
            let semaphore = locks.semaphore(name, state.capacity.get())?;
            if any {
                semaphore.wait_for_any_permit().await
            } else {
                semaphore.wait_for_all_permits().await
            }
        }
        LockKind::RwLock if any => locks.rw_lock(name)?.wait_for_readable().await,
        LockKind::RwLock => locks.rw_lock(name)?.wait_for_unlock().await,
    }
}

/// Says on a terminal how the wait goes.
async fn tell(locks: &LockManager, state: &LockState) -> Infallible {
    if !talk::may_draw() {
        return pending().await;
    }
    let (lock, line) = (&state.lock, talk::Changing::default());
    let mut ticks = interval(REFRESH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let capacity = state.capacity.get();
        // A store that does not answer now is the affair of the wait itself.
        let Ok(Some(now)) = inspect(locks, lock.kind(), lock.name().clone(), capacity).await else {
            continue;
        };
        if let Some(holder) = now.holders.first() {
            let held_for = duration::format(holder.held_for);
            line.show(format_args!("{lock}: waiting; held by {} for {held_for}", holder.info));
        }
    }
}

/// A timeout of zero still lets the store answer once.
async fn over(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout.max(Duration::from_millis(50))).await,
        None => std::future::pending().await,
    }
}

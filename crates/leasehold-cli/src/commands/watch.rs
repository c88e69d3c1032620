//! `leasehold watch`: a line for each change of a lock, or of all.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    time::SystemTime,
};

use leasehold::{HolderInfo, LockId, LockState};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    args::WatchArgs,
    duration,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{Look, Place},
};

/// What happened to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Change {
    namespace: String,
    /// `mutex`, `semaphore` or `rw-lock`.
    kind: &'static str,
    name: String,
    event: Event,
    host: String,
    pid: u32,
    label: Option<String>,
    /// Of a holder.
    fencing_token: Option<u64>,
    /// How long it had been held, or waited for.
    after_ms: u64,
}

/// One word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Event {
    /// Seen at the first look.
    Holds,
    /// Seen at the first look.
    Waits,
    Granted,
    /// Released, expired, destroyed or dead: a look does not tell.
    Ended,
    Queued,
    /// Left the queue without a grant.
    Left,
}

/// One request at one lock, as seen at a look.
#[derive(Clone, Debug)]
struct Seen {
    lock: LockId,
    info: HolderInfo,
    fencing: Option<u64>,
    since_ms: u64,
}

/// All requests by lock and short id.
type Requests = BTreeMap<(String, String), Seen>;

/// Looks again and again.
pub(crate) async fn watch(args: WatchArgs, settings: &Settings) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    let place = Place::of(settings)?;
    place.say();
    let mut look = Look::at(&place).await?;
    let mut ticks = interval(args.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Requests> = None;
    loop {
        tokio::select! {
            biased;
            signal = signals.next_ending() => return Ok(Exit::Signalled(signal)),
            _ = ticks.tick() => {}
        }
        look.again(&place).await?;
        let states = match &args.name {
            Some(name) => look.inspect(&args.namespace.namespace, name, args.kind.kind).await?,
            None => look.survey(None).await?,
        };
        let now = requests(&states);
        let changes = match &before {
            None => first(&now),
            Some(before) => between(before, &now),
        };
        for change in changes {
            if !print(&change, args.json)? {
                return Ok(Exit::Success);
            }
        }
        before = Some(now);
    }
}

fn requests(states: &[LockState]) -> Requests {
    let mut requests = Requests::new();
    for state in states {
        let key = |short_id: &str| (state.lock.key().to_owned(), short_id.to_owned());
        let lock = || state.lock.clone();
        for holder in &state.holders {
            let (info, fencing) = (holder.info.clone(), Some(holder.fencing.get()));
            let since_ms = milliseconds(holder.held_for);
            let seen = Seen { lock: lock(), info, fencing, since_ms };
            requests.insert(key(&holder.short_id), seen);
        }
        for waiter in &state.waiters {
            let since_ms = milliseconds(waiter.waited_for);
            let seen = Seen { lock: lock(), info: waiter.info.clone(), fencing: None, since_ms };
            requests.insert(key(&waiter.short_id), seen);
        }
    }
    requests
}

fn first(now: &Requests) -> Vec<Change> {
    let event = |seen: &Seen| if seen.fencing.is_some() { Event::Holds } else { Event::Waits };
    now.values().map(|seen| seen.change(event(seen))).collect()
}

/// What ended comes before what began.
fn between(before: &Requests, now: &Requests) -> Vec<Change> {
    let gone = before.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, seen)| {
        seen.change(if seen.fencing.is_some() { Event::Ended } else { Event::Left })
    });
    let mut begun: Vec<_> = now
        .iter()
        .filter_map(|(key, seen)| {
            let event = match (before.get(key).map(|before| before.fencing), seen.fencing) {
                (None | Some(None), Some(_)) => Event::Granted,
                (None, None) => Event::Queued,
                _ => return None,
            };
            Some(seen.change(event))
        })
        .collect();
    // In the order in which they came about: the older first.
    begun.sort_by_key(|change| std::cmp::Reverse(change.after_ms));
    gone.chain(begun).collect()
}

impl Seen {
    fn change(&self, event: Event) -> Change {
        Change {
            namespace: self.lock.namespace().to_string(),
            kind: self.lock.kind().as_str(),
            name: self.lock.name().as_str().to_owned(),
            event,
            host: self.info.host().to_owned(),
            pid: self.info.pid(),
            label: self.info.label().map(str::to_owned),
            fencing_token: self.fencing,
            after_ms: self.since_ms,
        }
    }
}

/// A change at a time.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    change: &'a Change,
}

/// Prints a line; `false`: nobody reads any more, which is no error.
fn print(change: &Change, json: bool) -> Result<bool, Failure> {
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let text = if json {
        serde_json::to_string(&Line { time, change })
            .map_err(|error| Failure::new(Exit::Output, format!("cannot write JSON: {error}")))?
    } else {
        format!("{time} {}", change.sentence())
    };
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(Exit::Output, format!("cannot write the output: {error}"))),
    }
}

impl Change {
    fn sentence(&self) -> String {
        let label = self.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
        let who = format!("pid {} on {}{label}", self.pid, self.host);
        let name = self.name.escape_debug();
        let lock = format!("{}/{} \"{name}\"", self.namespace, self.kind);
        let after = duration::format(std::time::Duration::from_millis(self.after_ms));
        let fencing = self.fencing_token.unwrap_or_default();
        match self.event {
            Event::Holds => format!("{lock}: held by {who} for {after}, fencing token {fencing}"),
            Event::Waits => format!("{lock}: waited for by {who} for {after}"),
            Event::Granted => format!("{lock}: granted to {who}, fencing token {fencing}"),
            Event::Ended => format!("{lock}: no longer held by {who}, fencing token {fencing}"),
            Event::Queued => format!("{lock}: queued {who}"),
            Event::Left => format!("{lock}: left by {who} after {after}"),
        }
    }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use leasehold::{LockKind, LockName, Namespace};

    use super::*;

    fn seen(fencing: Option<u64>, since_ms: u64) -> Seen {
        let name = LockName::new("n").unwrap();
        let lock = LockId::new(Namespace::default(), LockKind::Mutex, name);
        Seen { lock, info: HolderInfo::from_parts("h", 1, None), fencing, since_ms }
    }

    fn look(requests: &[(&str, Option<u64>, u64)]) -> Requests {
        let entry = |(id, fencing, since): &(&str, Option<u64>, u64)| {
            (("n".to_owned(), (*id).to_owned()), seen(*fencing, *since))
        };
        requests.iter().map(entry).collect()
    }

    #[test]
    fn changes_are_told_by_request() {
        let before = look(&[("a", Some(1), 10), ("b", None, 9), ("c", None, 8)]);
        let now = look(&[("b", Some(2), 1), ("d", None, 3), ("e", None, 5)]);
        let events: Vec<_> = between(&before, &now)
            .into_iter()
            .map(|change| (change.event, change.fencing_token))
            .collect();
        let expected = [
            (Event::Ended, Some(1)),
            (Event::Left, None),
            (Event::Queued, None),
            (Event::Queued, None),
            (Event::Granted, Some(2)),
        ];
        assert_eq!(events, expected);
        assert!(between(&now, &now).is_empty());
        assert_eq!(first(&now).len(), 3);
    }
}

//! What commands print on stdout: tables for people, one JSON document for programs.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    time::Duration,
};

use leasehold::{HolderInfo, HolderState, LockState, WaiterState};
use leasehold_core::Share;
use serde::Serialize;

use crate::{
    duration,
    exit::{Exit, Failure},
};

/// The document of `list --json`.
#[derive(Debug, Serialize)]
pub(crate) struct ListDocument<'a> {
    /// Where the store is.
    pub(crate) store: &'a str,
    /// The locks in use, by namespace, name and kind.
    pub(crate) locks: Vec<Lock<'a>>,
}

/// The document of `show --json`.
#[derive(Debug, Serialize)]
pub(crate) struct ShowDocument<'a> {
    /// Where the store is.
    pub(crate) store: &'a str,
    /// The lock; null when it is not in use.
    pub(crate) lock: Option<Lock<'a>>,
}

/// A lock in use.
#[derive(Debug, Serialize)]
pub(crate) struct Lock<'a> {
    namespace: &'a str,
    /// `mutex`, `semaphore` or `rw-lock`.
    kind: &'static str,
    name: &'a str,
    /// How many permits there are, are held, and are free.
    capacity: u32,
    used: u32,
    free: u32,
    generation: u64,
    /// In the order of their grants.
    holders: Vec<Holder<'a>>,
    /// In the order of the queue.
    waiters: Vec<Waiter<'a>>,
}

/// Who holds.
#[derive(Debug, Serialize)]
struct Holder<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    held_for_ms: u64,
    /// Null: no TTL.
    ttl_left_ms: Option<u64>,
    fencing_token: u64,
    weight: u32,
}

/// Who waits.
#[derive(Debug, Serialize)]
struct Waiter<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    waited_for_ms: u64,
    weight: u32,
}

#[derive(Debug, Serialize)]
struct Who<'a> {
    host: &'a str,
    pid: u32,
    /// Null: none was given.
    label: Option<&'a str>,
}

impl<'a> From<&'a LockState> for Lock<'a> {
    fn from(state: &'a LockState) -> Self {
        let weight = |share: Share| share.weight(state.capacity);
        Self {
            namespace: state.lock.namespace().as_str(),
            kind: state.lock.kind().as_str(),
            name: state.lock.name().as_str(),
            capacity: state.capacity.get(),
            used: state.used,
            free: state.free(),
            generation: state.generation.0,
            holders: state.holders.iter().map(|h| Holder::new(h, weight(h.share))).collect(),
            waiters: state.waiters.iter().map(|w| Waiter::new(w, weight(w.share))).collect(),
        }
    }
}

impl<'a> Holder<'a> {
    fn new(holder: &'a HolderState, weight: u32) -> Self {
        Self {
            who: Who::from(&holder.info),
            held_for_ms: milliseconds(holder.held_for),
            ttl_left_ms: holder.ttl_left.map(milliseconds),
            fencing_token: holder.fencing.get(),
            weight,
        }
    }
}

impl<'a> Waiter<'a> {
    fn new(waiter: &'a WaiterState, weight: u32) -> Self {
        let who = Who::from(&waiter.info);
        Self { who, waited_for_ms: milliseconds(waiter.waited_for), weight }
    }
}

impl<'a> From<&'a HolderInfo> for Who<'a> {
    fn from(info: &'a HolderInfo) -> Self {
        Self { host: info.host(), pid: info.pid(), label: info.label() }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One line per lock, with the namespace when several are shown; empty when there is none.
pub(crate) fn table(states: &[LockState], with_namespace: bool) -> String {
    if states.is_empty() {
        return String::new();
    }
    let mut rows = vec![cells(
        with_namespace.then_some("NAMESPACE".to_owned()),
        ["KIND", "NAME", "HELD", "WAITING", "HOLDER", "HELD FOR", "TTL LEFT"].map(str::to_owned),
    )];
    for state in states {
        let namespace = with_namespace.then(|| state.lock.namespace().to_string());
        rows.push(cells(namespace, row(state)));
    }
    align(&rows)
}

fn row(state: &LockState) -> [String; 7] {
    let first = state.holders.first();
    let none = || "-".to_owned();
    let holder = first.map_or_else(none, |holder| match state.holders.len() {
        1 => holder.info.to_string(),
        several => format!("{} and {} more", holder.info, several - 1),
    });
    [
        state.lock.kind().as_str().to_owned(),
        state.lock.name().to_string(),
        held(state),
        state.waiters.len().to_string(),
        holder,
        first.map_or_else(none, |holder| duration::format(holder.held_for)),
        first.and_then(|holder| holder.ttl_left).map_or_else(none, duration::format),
    ]
}

/// How much is held, in the words of the kind.
fn held(state: &LockState) -> String {
    use leasehold::LockKind::{Mutex, RwLock, Semaphore};
    match state.lock.kind() {
        Mutex if state.used == 0 => "no".to_owned(),
        Mutex => "yes".to_owned(),
        Semaphore => format!("{} of {}", state.used, state.capacity),
        RwLock => match state.holders.first() {
            None => "no".to_owned(),
            Some(holder) if holder.share == Share::Whole => "exclusive".to_owned(),
            Some(_) => format!("shared by {}", state.holders.len()),
        },
    }
}

fn cells(namespace: Option<String>, rest: [String; 7]) -> Vec<String> {
    namespace.into_iter().chain(rest).collect()
}

fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One lock with everybody, in order.
pub(crate) fn details(state: &LockState) -> String {
    let mut text = format!(
        "{} in namespace {}\nheld: {}; waiting: {}; generation {}\n",
        state.lock,
        state.lock.namespace(),
        held(state),
        state.waiters.len(),
        state.generation.0,
    );
    let mut line = |role: &str, place: usize, share: Share, info: &HolderInfo, rest: String| {
        let share = share_text(state, share);
        let _ = writeln!(text, "{role} {}: {info}{share}, {rest}", place + 1);
    };
    for (place, holder) in state.holders.iter().enumerate() {
        let ttl = holder.ttl_left.map_or_else(
            || "no TTL".to_owned(),
            |left| format!("TTL left {}", duration::format(left)),
        );
        let held_for = duration::format(holder.held_for);
        let fencing = holder.fencing.get();
        let rest = format!("for {held_for}, {ttl}, fencing token {fencing}");
        line("holder", place, holder.share, &holder.info, rest);
    }
    for (place, waiter) in state.waiters.iter().enumerate() {
        let rest = format!("for {}", duration::format(waiter.waited_for));
        line("waiter", place, waiter.share, &waiter.info, rest);
    }
    text
}

fn share_text(state: &LockState, share: Share) -> String {
    use leasehold::LockKind::{Mutex, RwLock, Semaphore};
    match (state.lock.kind(), share) {
        (Mutex, _) => String::new(),
        (RwLock, Share::Whole) => ", exclusive".to_owned(),
        (RwLock, Share::Permits(_)) => ", shared".to_owned(),
        (Semaphore, share) => match share.weight(state.capacity) {
            1 => ", 1 permit".to_owned(),
            weight => format!(", {weight} permits"),
        },
    }
}

/// Prints one JSON document and a line's end.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(&json(document)?)
}

/// One JSON document and a line's end.
pub(crate) fn json(document: &impl Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Prints to stdout. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match write(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

/// Prints to stdout what somebody must get.
pub(crate) fn deliver(text: &str) -> Result<(), Failure> {
    write(text).map_err(|error| unwritten(&error))
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::new(Exit::Output, format!("cannot write the output: {error}"))
}

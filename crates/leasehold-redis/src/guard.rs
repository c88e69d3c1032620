//! Holds back the grants of a server that may have started without its data (`restart_guard`).
//!
//! A key, the marker, lies among the locks of each server. Where it is missing, the locks may be
//! missing, too, and whoever held one by the last server may still do so for the longest TTL. It is
//! looked for over each new connection, as none outlives the server that it leads to.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use leasehold_core::{Fault, FaultKind, LocalTime};
use redis::Value;

use crate::{
    dial::Dial,
    error::{self, Remedy},
    link::Link,
    slots::slot_of,
    topology::Topology,
};

/// What is held back over one connection.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The server is as old as the longest TTL by then.
    end: LocalTime,
    /// When the server was asked, and how old it was at least.
    asked: LocalTime,
    uptime: Duration,
    marker: String,
    is_marked: AtomicBool,
}

/// Looks for the marker, and sets it or holds back the grants of this connection.
///
/// # Errors
/// The server does not tell whether and when it has started anew.
pub(crate) async fn look(
    dial: &Dial,
    place: &str,
    link: &Link,
    longest: Duration,
) -> Result<(), Fault> {
    let Some(marker) = marker(dial, place, link).await? else { return Ok(()) };
    let asked = dial.clock.now();
    let mut questions = redis::pipe();
    questions.cmd("GET").arg(&marker);
    questions.cmd("INFO").arg("server");
    let [found, info] = ask(place, link, &questions).await?;
    match found {
        Value::Nil => {}
        Value::ServerError(error) => {
            let error = error.into();
            // Its slot is on its way to another server.
            if error::remedy(&error) != Remedy::Follow {
                return Err(error::fault(place, &error));
            }
        }
        _ => return Ok(()),
    }
    let uptime = uptime(place, info)?;
    let hold = Hold {
        end: asked.after(longest.saturating_sub(uptime)),
        asked,
        uptime,
        marker,
        is_marked: AtomicBool::new(false),
    };
    if uptime >= longest {
        hold.mark(link).await;
    } else {
        tracing::warn!(store = place, ?uptime, "the server has started without its data");
        link.hold_back(hold);
    }
    Ok(())
}

impl Hold {
    /// Until when nothing is granted, and why; `None` when that is over.
    pub(crate) fn holds(&self, place: &str, now: LocalTime) -> Option<(LocalTime, Fault)> {
        if now >= self.end {
            return None;
        }
        let age = self.uptime + now.since(self.asked);
        let message = format!(
            "{place} started {} s ago without its data; grants are held back for {} ms more \
             (restart_guard)",
            age.as_secs(),
            self.end.since(now).as_millis()
        );
        Some((self.end, Fault::new(FaultKind::Unavailable, message)))
    }

    /// Sets the marker, once. A server that refuses it holds back again over the next connection,
    /// unless it is old enough by then.
    pub(crate) async fn mark(&self, link: &Link) {
        if !self.is_marked.swap(true, SeqCst) {
            let _ = link.ask(redis::cmd("SET").arg(&self.marker).arg("1")).await;
        }
    }
}

/// The marker's key. In a cluster it lies in a slot of the server, and is named for it, so that none
/// comes along with a slot from elsewhere. A server without slots has no locks and no marker.
async fn marker(dial: &Dial, place: &str, link: &Link) -> Result<Option<String>, Fault> {
    let prefix = &dial.config.prefix;
    if !matches!(dial.config.topology, Topology::Cluster { .. }) {
        return Ok(Some(format!("{prefix}:guard")));
    }
    let mut questions = redis::pipe();
    questions.cmd("CLUSTER").arg("MYID");
    questions.cmd("CLUSTER").arg("SLOTS");
    let answers: [Value; 2] = ask(place, link, &questions).await?;
    for answer in &answers {
        if let Value::ServerError(error) = answer {
            return Err(error::fault(place, &error.clone().into()));
        }
    }
    let [Value::BulkString(id), slots] = answers else { return Err(silent(place, "its name")) };
    let owned = owned(&slots, &id);
    let id = String::from_utf8_lossy(&id);
    if owned.is_empty() {
        return Ok(None);
    }
    let tag = (0u32..).find(|tag| {
        let slot = slot_of(tag.to_string().as_bytes());
        owned.iter().any(|range| range.contains(&slot))
    });
    Ok(tag.map(|tag| format!("{prefix}:guard:{id}:{{{tag}}}")))
}

/// The slots that an answer to CLUSTER SLOTS says this server to be the master of.
fn owned(answer: &Value, id: &[u8]) -> Vec<RangeInclusive<u16>> {
    let Value::Array(ranges) = answer else { return Vec::new() };
    let owned = ranges.iter().filter_map(|range| {
        let Value::Array(parts) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &parts[..] else {
            return None;
        };
        let is_this = matches!(master.get(2), Some(Value::BulkString(name)) if name == id);
        let slots = u16::try_from(*first).ok()?..=u16::try_from(*last).ok()?;
        is_this.then_some(slots)
    });
    owned.collect()
}

/// How long the server runs at least: it counts the turns of its clock's seconds.
fn uptime(place: &str, info: Value) -> Result<Duration, Fault> {
    let text = match &info {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
        Value::ServerError(error) => return Err(error::fault(place, &error.clone().into())),
        _ => "",
    };
    let field = text.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    // A clock that was stepped back makes it negative.
    let seconds: i64 = field
        .and_then(|seconds| seconds.trim().parse().ok())
        .ok_or_else(|| silent(place, "how long it runs"))?;
    Ok(Duration::from_secs(u64::try_from(seconds - 1).unwrap_or(0)))
}

async fn ask<const N: usize>(
    place: &str,
    link: &Link,
    questions: &redis::Pipeline,
) -> Result<[Value; N], Fault> {
    let answers = link.ask_all(questions).await.map_err(|error| error::fault(place, &error))?;
    answers.try_into().map_err(|_| silent(place, "what it was asked"))
}

fn silent(place: &str, what: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, format!("{place} does not tell {what} (restart_guard)"))
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    #[test]
    fn an_uptime_is_rounded_down() {
        let said = |text: &str| uptime("here", Value::BulkString(text.as_bytes().to_vec()));
        for (seconds, at_least) in [("-5", 0), ("0", 0), ("1", 0), ("2", 1), ("61", 60)] {
            let info = format!("# Server\r\nuptime_in_seconds:{seconds}\r\nuptime_in_days:0\r\n");
            assert_eq!(said(&info).unwrap(), Duration::from_secs(at_least), "{seconds}");
        }
        let fault = said("# Server\r\n").unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Unsupported);
    }

    #[test]
    fn a_master_knows_its_slots() {
        let answer = parse_redis_value(
            b"*2\r\n*3\r\n:0\r\n:99\r\n*3\r\n$1\r\na\r\n:7\r\n$1\r\nx\r\n\
              *4\r\n:100\r\n:120\r\n*3\r\n$1\r\nb\r\n:8\r\n$1\r\ny\r\n*3\r\n$1\r\na\r\n:7\r\n$1\r\nx\r\n",
        )
        .unwrap();
        assert_eq!(owned(&answer, b"x"), [0..=99]);
        assert_eq!(owned(&answer, b"y"), [100..=120]);
        assert_eq!(owned(&answer, b"z"), []);
    }

    #[test]
    fn grants_are_held_back_until_the_server_is_old_enough() {
        let hold = Hold {
            end: LocalTime(9_000_000),
            asked: LocalTime(1_000_000),
            uptime: Duration::from_secs(2),
            marker: String::new(),
            is_marked: AtomicBool::new(false),
        };
        let (end, fault) = hold.holds("here", LocalTime(2_000_000)).expect("too young");
        assert_eq!((end, fault.is_retryable()), (LocalTime(9_000_000), true));
        let message = fault.to_string();
        assert!(message.contains("started 3 s ago") && message.contains("7000 ms"), "{message}");
        assert!(hold.holds("here", LocalTime(8_999_999)).is_some());
        assert!(hold.holds("here", LocalTime(9_000_000)).is_none());
    }
}

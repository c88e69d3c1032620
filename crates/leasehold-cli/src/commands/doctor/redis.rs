//! The health of a store on a server: what it is, what it does with its memory, and what it lets
//! this user do.

use std::time::Duration;

use leasehold_redis::RedisReport;

use super::{Finding, trial};
use crate::{
    duration,
    exit::Failure,
    store::{Place, Store},
};

/// A server's clock that differs by more is told; it does no harm, since it alone decides.
const CLOCK_APART: Duration = Duration::from_secs(5);

/// All that can be found out. What needs a connection is left out where there is none.
pub(super) async fn findings(place: &Place) -> Vec<Finding> {
    let stores = async { Ok::<_, Failure>((Store::open(place).await?, Store::open(place).await?)) };
    let (one, other) = match stores.await {
        Ok(stores) => stores,
        Err(failure) => {
            let advice =
                "see what the error says; the server must be Redis 6.2 or newer, or Valkey";
            return vec![Finding::bad("connection", failure.to_string(), advice)];
        }
    };
    let redis = one.redis().expect("the place is a server");
    let mut findings = match redis.diagnose().await {
        Ok(report) => of_report(&report),
        Err(fault) => vec![Finding::bad("server", fault.to_string(), "see what the error says")],
    };
    findings.extend(trial::findings(&one, &other).await);
    // They hold nothing any more, so whether they leave in good order is all the same.
    let _ = (one.backend().close().await, other.backend().close().await);
    findings
}

fn of_report(report: &RedisReport) -> Vec<Finding> {
    vec![server(report), role(report), persistence(report), eviction(report), memory(report)]
        .into_iter()
        .chain([rules(report), pushes(report), clock(report)])
        .chain(guard(report))
        .chain(servers(report))
        .chain(sentinels(report))
        .collect()
}

/// The servers of a cluster, and replicas wherever grants wait for some. Of one server alone the
/// rest tells enough.
fn servers(report: &RedisReport) -> Vec<Finding> {
    let what = "servers";
    let is_cluster = report.servers.iter().any(|server| server.slots > 0);
    if !is_cluster && report.wait_replicas == 0 {
        return Vec::new();
    }
    let mut findings: Vec<_> = report
        .servers
        .iter()
        .map(|server| {
            let address = &server.address;
            let slots =
                if is_cluster { format!(", {} slots", server.slots) } else { String::new() };
            let wanted = report.wait_replicas;
            match (&server.problem, server.replicas) {
                (Some(problem), _) => Finding::bad(
                    what,
                    format!("{address}{slots}: {problem}"),
                    "its locks wait until it, or a replica in its place, answers",
                ),
                (None, Some(replicas)) if replicas < wanted => Finding::bad(
                    what,
                    format!("{address}{slots}: {replicas} replicas; each grant waits for {wanted}"),
                    "add replicas, or lower wait_replicas",
                ),
                (None, Some(replicas)) => {
                    Finding::good(what, format!("{address}{slots}: {replicas} replicas"))
                }
                (None, None) => Finding::weak(
                    what,
                    format!("{address}{slots}: replicas not known, INFO is denied"),
                    "allow +info to see more here",
                ),
            }
        })
        .collect();
    if is_cluster {
        findings.push(match report.uncovered_slots {
            0 => Finding::good("slots", "each has a server"),
            count => Finding::bad(
                "slots",
                format!("{count} have no server"),
                "give them one: the locks in them cannot be had",
            ),
        });
    }
    findings
}

fn sentinels(report: &RedisReport) -> Vec<Finding> {
    let what = "sentinels";
    let any = report.sentinels.iter().any(|sentinel| sentinel.master.is_some());
    let tell = |sentinel: &leasehold_redis::RedisSentinel| {
        let address = &sentinel.address;
        let number = |count: Option<u32>| count.map_or("?".to_owned(), |count| count.to_string());
        match &sentinel.master {
            Some(master) => Finding::good(
                what,
                format!(
                    "{address}: the master is {master}, quorum {}, {} other sentinels",
                    number(sentinel.quorum),
                    number(sentinel.others)
                ),
            ),
            None => {
                let why = sentinel.problem.as_deref().unwrap_or("does not know the service");
                let found = format!("{address}: {why}");
                let advice = "see what it says; failovers need most of them";
                if any {
                    Finding::weak(what, found, advice)
                } else {
                    Finding::bad(what, found, advice)
                }
            }
        }
    };
    report.sentinels.iter().map(tell).collect()
}

fn server(report: &RedisReport) -> Finding {
    let what = "server";
    match (report.product, &report.version) {
        (Some(product), Some(version)) => Finding::good(what, format!("{product} {version}")),
        _ => Finding::weak(what, "not known: INFO is denied", "allow +info to see more here"),
    }
}

fn role(report: &RedisReport) -> Finding {
    let what = "role";
    match report.role.as_deref() {
        Some("master") => Finding::good(what, "primary"),
        Some(other) => Finding::bad(what, other, "name the primary: a replica takes no writes"),
        None => Finding::weak(what, "not known: INFO is denied", "allow +info to see more here"),
    }
}

/// Where one is wanted.
fn guard(report: &RedisReport) -> Option<Finding> {
    let (what, longest) = ("restart guard", report.restart_guard?);
    Some(match report.held_back {
        None => Finding::good(
            what,
            format!("nothing is granted for {} after a loss of data", duration::format(longest)),
        ),
        Some(left) => Finding::bad(
            what,
            format!("the server has lost its data; nothing is granted for {} ms", left.as_millis()),
            "wait: who held a lock before may still believe in it",
        ),
    })
}

fn persistence(report: &RedisReport) -> Finding {
    let what = "persistence";
    match (report.append_only, report.snapshots) {
        (Some(false), Some(false)) if report.restart_guard.is_some() => {
            Finding::good(what, "none; see the restart guard")
        }
        (Some(true), _) => Finding::good(what, "append-only file"),
        (Some(false), Some(true)) => Finding::weak(
            what,
            "snapshots only",
            "a restart of the server forgets grants since the last one; set appendonly yes",
        ),
        (Some(false), _) => Finding::weak(
            what,
            "none",
            "a restart of the server frees all locks; set appendonly yes if that is too much",
        ),
        (None, _) => {
            Finding::weak(what, "not known: INFO is denied", "allow +info to see more here")
        }
    }
}

fn eviction(report: &RedisReport) -> Finding {
    let what = "eviction";
    match report.eviction_policy.as_deref() {
        Some("noeviction") => Finding::good(what, "noeviction"),
        Some(policy) => Finding::bad(
            what,
            format!("{policy} can drop locks"),
            "set maxmemory-policy noeviction",
        ),
        None => Finding::weak(what, "not known: INFO is denied", "allow +info to see more here"),
    }
}

fn memory(report: &RedisReport) -> Finding {
    let what = "memory";
    match report.max_memory {
        Some(0) => Finding::good(what, "no limit"),
        Some(limit) => Finding::good(what, format!("at most {} MiB", limit >> 20)),
        None => Finding::weak(what, "not known: INFO is denied", "allow +info to see more here"),
    }
}

/// Without the two of publish and subscribe waiters poll; without anything else requests fail.
fn rules(report: &RedisReport) -> Finding {
    let what = "rules";
    if report.missing_rules.is_empty() {
        return Finding::good(what, "the user may do all that is needed");
    }
    let missing = report.missing_rules.join(" ");
    let advice = format!("ACL SETUSER … {missing}");
    let found = format!("missing: {missing}");
    let polls = |rule: &String| rule == "+subscribe" || rule == "+publish" || rule.starts_with('&');
    if report.missing_rules.iter().all(polls) {
        Finding::weak(what, found, advice)
    } else {
        Finding::bad(what, found, advice)
    }
}

fn pushes(report: &RedisReport) -> Finding {
    let what = "pushes";
    if report.pushed {
        return Finding::good(what, "waiters are woken by the server");
    }
    let advice = "allow +subscribe, +publish and the channels of the prefix";
    Finding::weak(what, "denied: waiters poll", advice)
}

fn clock(report: &RedisReport) -> Finding {
    let what = "clock";
    let Some(ahead) = report.clock_ahead_us else {
        return Finding::bad(what, "the server does not tell the time", "allow +time");
    };
    let apart = Duration::from_micros(ahead.unsigned_abs());
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    let found = format!("{} ms {side} this machine's", apart.as_millis());
    if apart > CLOCK_APART {
        Finding::weak(what, found, "it does no harm here: the server's clock alone decides")
    } else {
        Finding::good(what, found)
    }
}

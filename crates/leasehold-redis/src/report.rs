//! What a server is and what it lets a client do, for people to read: the data of
//! `leasehold doctor`.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use leasehold_core::{Fault, FaultKind};
use redis::{Cmd, Value};

use crate::{
    census::{self, RedisSentinel, RedisServer},
    checks::{self, Facts},
    client::Client,
    error,
    fleet::Node,
    follow::learn_slots,
    lane::ended,
    link::Link,
    offset::server_time,
    script::SOURCES,
    trip::Trip,
};

/// What a server is, and what it lets a client do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisReport {
    /// The server, without user and password.
    pub url: String,
    /// `Redis` or `Valkey`; `None`: the server does not let this user ask.
    pub product: Option<&'static str>,
    /// Its version.
    pub version: Option<String>,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// Whether it writes each change to a log that it reads at its start.
    pub append_only: Option<bool>,
    /// Whether it writes snapshots to its disk now and then.
    pub snapshots: Option<bool>,
    /// What it does when it has no memory left: its `maxmemory-policy`.
    pub eviction_policy: Option<String>,
    /// How many bytes it may use; 0: no limit.
    pub max_memory: Option<u64>,
    /// The rules that this client's user lacks, as `ACL SETUSER` takes them: `+evalsha`,
    /// `&leasehold:*`.
    pub missing_rules: Vec<String>,
    /// How far the server's clock is ahead of this machine's, in microseconds.
    pub clock_ahead_us: Option<i64>,
    /// How long one question and its answer take: the quickest of a few.
    pub round_trip: Duration,
    /// Whether waiters are told of their grants by pushes; else they poll every second.
    pub pushed: bool,
    /// Every server that has locks. What stands above is of one of them.
    pub servers: Vec<RedisServer>,
    /// How many slots of a cluster nobody has.
    pub uncovered_slots: u32,
    /// The sentinels that the URL names.
    pub sentinels: Vec<RedisSentinel>,
    /// How many replicas a grant waits for.
    pub wait_replicas: u32,
    /// For how long after a start without data nothing is granted, where that is wanted.
    pub restart_guard: Option<Duration>,
    /// For how long the server that most of this is of grants nothing yet because of that.
    pub held_back: Option<Duration>,
}

/// Something that a [`RedisReport`] finds wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Locks may be lost or requests fail; else it is only slower, or weaker than it could be.
    pub is_grave: bool,
    /// What it is, and what to do about it.
    pub message: String,
}

/// How many questions the round trip is measured with.
const ROUNDS: usize = 5;

impl RedisReport {
    pub(crate) async fn ask(client: &Client) -> Result<Self, Fault> {
        let (node, link) = somebody(client).await?;
        let facts = checks::ask(&node.site().place, &link).await?;
        let mut round_trip = Duration::MAX;
        let mut ahead = None;
        for _ in 0..ROUNDS {
            let (sent, wall) = (client.now(), wall_clock_us());
            let answer = link.ask(&redis::cmd("TIME")).await;
            let answer = answer.map_err(|error| error::fault(client.dial.place(), &error))?;
            let took = client.now().since(sent);
            if took < round_trip {
                round_trip = took;
                let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
                ahead = server_time(&answer)
                    .and_then(|time| i64::try_from(time).ok())
                    .map(|time| time - wall - micros / 2);
            }
        }
        *client.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts.clone();
        let missing_rules = missing_rules(client, &link).await?;
        if let Some(cluster) = client.fleet.cluster() {
            learn_slots(cluster, &link).await?;
        }
        let now = client.now();
        let held_back = link.hold().and_then(|hold| hold.holds(&node.site().place, now));
        let held_back = held_back.map(|(end, _)| end.since(now));
        let report = Self::of(client, facts, missing_rules, ahead, round_trip);
        let (servers, sentinels) = (census::servers(client).await, census::sentinels(client).await);
        Ok(Self { servers, sentinels, held_back, ..report })
    }

    fn of(
        client: &Client,
        facts: Facts,
        missing_rules: Vec<String>,
        clock_ahead_us: Option<i64>,
        round_trip: Duration,
    ) -> Self {
        Self {
            url: client.dial.place().to_owned(),
            product: facts.product,
            version: facts.version,
            role: facts.role,
            append_only: facts.append_only,
            snapshots: facts.snapshots,
            eviction_policy: facts.policy,
            max_memory: facts.max_memory,
            missing_rules,
            clock_ahead_us,
            round_trip,
            pushed: !client.is_not_pushed(),
            servers: Vec::new(),
            uncovered_slots: census::uncovered(client),
            sentinels: Vec::new(),
            wait_replicas: client.dial.config.wait_replicas,
            restart_guard: client.dial.config.restart_guard,
            held_back: None,
        }
    }

    /// What is wrong, the grave first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut find = |is_grave, message| findings.push(Finding { is_grave, message });
        match &self.eviction_policy {
            Some(policy) if checks::drops_locks(policy) => find(
                true,
                format!("maxmemory-policy {policy} can drop locks; set it to noeviction"),
            ),
            Some(_) => {}
            None => find(false, "the eviction policy is not known: INFO is denied".into()),
        }
        if self.role.as_deref().is_some_and(|role| role != "master") {
            find(true, "the server is a replica and takes no writes".into());
        }
        if self.uncovered_slots > 0 {
            let count = self.uncovered_slots;
            find(true, format!("nobody has {count} slots of the cluster, and their locks"));
        }
        for server in &self.servers {
            let address = &server.address;
            if let Some(problem) = &server.problem {
                find(true, format!("{address} cannot be asked: {problem}"));
            }
            if let Some(count) = server.replicas.filter(|count| *count < self.wait_replicas) {
                let wanted = self.wait_replicas;
                find(
                    true,
                    format!("{address} has {count} replicas and every grant waits for {wanted}"),
                );
            }
        }
        let is_down = |sentinel: &RedisSentinel| sentinel.master.is_none();
        let all_down = self.sentinels.iter().all(is_down);
        for sentinel in self.sentinels.iter().filter(|sentinel| is_down(sentinel)) {
            let why = sentinel.problem.as_deref().unwrap_or("it does not know the service");
            find(all_down, format!("the sentinel {} names no master: {why}", sentinel.address));
        }
        for rule in &self.missing_rules {
            // Without these two waiters poll; without anything else requests fail.
            let polls = rule == "+subscribe" || rule == "+publish" || rule.starts_with('&');
            find(!polls, format!("the user lacks the rule {rule}"));
        }
        if !self.pushed {
            find(false, "the server pushes nothing to this user, so waiters poll".into());
        }
        if let Some(left) = self.held_back {
            let left = left.as_millis();
            find(true, format!("the server has lost its data and grants nothing for {left} ms"));
        }
        let keeps = self.append_only != Some(false) || self.snapshots == Some(true);
        if !keeps && self.restart_guard.is_none() {
            find(false, "nothing is kept on disk: a restart of the server frees all locks".into());
        }
        findings.sort_by_key(|finding| !finding.is_grave);
        findings
    }

    /// Whether nothing grave was found.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        !self.findings().iter().any(|finding| finding.is_grave)
    }
}

/// The first server that can be reached.
async fn somebody(client: &Client) -> Result<(Arc<Node>, Arc<Link>), Fault> {
    let mut why = None;
    for node in client.fleet.masters() {
        match Trip::to(client, &node, client.command_deadline()).link().await {
            Ok(link) => return Ok((node, link)),
            Err(fault) => why = Some(fault),
        }
    }
    Err(why.unwrap_or_else(ended))
}

fn wall_clock_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

/// Each command that a client sends or a script calls, with arguments that do no harm.
fn commands(prefix: &str, channel: &str) -> Vec<(&'static str, Cmd)> {
    let key = format!("{prefix}{{doctor/mutex/doctor}}");
    let with = |name: &str, arguments: &[&str]| {
        let mut command = redis::cmd(name);
        for argument in arguments {
            command.arg(*argument);
        }
        command
    };
    vec![
        ("+evalsha", with("EVALSHA", &[SOURCES[0].digest(), "1", &key])),
        ("+eval", with("EVAL", &["return 1", "1", &key])),
        ("+script|load", with("SCRIPT", &["LOAD", "return 1"])),
        ("+subscribe", with("SUBSCRIBE", &[channel])),
        ("+publish", with("PUBLISH", &[channel, "doctor"])),
        ("+time", with("TIME", &[])),
        ("+get", with("GET", &[&key])),
        ("+set", with("SET", &[&key, "0", "PX", "1000"])),
        ("+del", with("DEL", &[&key])),
        ("+hmget", with("HMGET", &[&key, "c"])),
        ("+hset", with("HSET", &[&key, "c", "0"])),
        ("+hdel", with("HDEL", &[&key, "c"])),
        ("+zadd", with("ZADD", &[&key, "0", "m"])),
        ("+zrem", with("ZREM", &[&key, "m"])),
        ("+zrange", with("ZRANGE", &[&key, "0", "0"])),
        ("+zrevrange", with("ZREVRANGE", &[&key, "0", "0"])),
        ("+zrangebyscore", with("ZRANGEBYSCORE", &[&key, "0", "0"])),
        ("+zrevrangebyscore", with("ZREVRANGEBYSCORE", &[&key, "0", "0"])),
        ("+zrank", with("ZRANK", &[&key, "m"])),
        ("+pexpire", with("PEXPIRE", &[&key, "1000"])),
        ("+persist", with("PERSIST", &[&key])),
        ("+scan", with("SCAN", &["0", "COUNT", "1"])),
    ]
}

/// Which rules the user lacks. `ACL DRYRUN` says so where there is one and the user may use it;
/// elsewhere the commands are sent on a key of no lock: what comes of them is deleted.
async fn missing_rules(client: &Client, link: &Link) -> Result<Vec<String>, Fault> {
    let fault = |error: redis::RedisError| error::fault(client.dial.place(), &error);
    let prefix = client.space.prefix();
    let channel = client.space.channel(client.id);
    let who = link.ask(redis::cmd("ACL").arg("WHOAMI")).await.map_err(fault)?;
    let user = match who {
        Value::BulkString(name) => Some(name),
        _ => None,
    };
    let commands = commands(prefix, &channel);
    let mut probes = redis::pipe();
    for (_, command) in &commands {
        let mut probe = redis::cmd("ACL");
        probe.arg("DRYRUN").arg(user.as_deref().unwrap_or(b"default"));
        for argument in command.args_iter() {
            if let redis::Arg::Simple(bytes) = argument {
                probe.arg(bytes);
            }
        }
        probes.add_command(probe);
    }
    let answers = link.ask_all(&probes).await.map_err(fault)?;
    let has_dry_run =
        user.is_some() && !answers.iter().any(|answer| matches!(answer, Value::ServerError(_)));
    if has_dry_run {
        let denied = commands.iter().zip(answers).filter_map(|((rule, _), answer)| match answer {
            Value::BulkString(why) => Some(rule_of(rule, &String::from_utf8_lossy(&why), prefix)),
            Value::SimpleString(why) | Value::VerbatimString { text: why, .. } if why != "OK" => {
                Some(rule_of(rule, &why, prefix))
            }
            _ => None,
        });
        return Ok(deduplicated(denied));
    }
    let mut tries = redis::pipe();
    // A connection that subscribes here would be pushed to; the client's own tells of that.
    let tried: Vec<_> = commands.iter().filter(|(rule, _)| *rule != "+subscribe").collect();
    for (_, command) in &tried {
        tries.add_command(command.clone());
    }
    let key = format!("{prefix}{{doctor/mutex/doctor}}");
    tries.cmd("DEL").arg(key);
    let answers = link.ask_all(&tries).await.map_err(fault)?;
    let mut denied = Vec::new();
    for ((rule, _), answer) in tried.iter().zip(answers) {
        if let Value::ServerError(error) = answer
            && error.code() == "NOPERM"
        {
            denied.push(rule_of(rule, error.details().unwrap_or_default(), prefix));
        }
    }
    let no_pushes = client.no_pushes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(fault) = no_pushes
        && fault.kind() == FaultKind::Denied
    {
        denied.push(rule_of("+subscribe", &fault.to_string(), prefix));
    }
    Ok(deduplicated(denied.into_iter()))
}

/// The rule that is missing when a command is refused with these words: the command's own, or that
/// for the keys or the channels.
fn rule_of(rule: &str, why: &str, prefix: &str) -> String {
    if why.contains("channel") {
        format!("&{prefix}*")
    } else if why.contains("key") {
        format!("~{prefix}*")
    } else {
        rule.to_owned()
    }
}

fn deduplicated(rules: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique = Vec::new();
    for rule in rules {
        if !unique.contains(&rule) {
            unique.push(rule);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn doctor_asks_for_every_command_of_the_scripts_and_no_other() {
        let of_scripts: BTreeSet<String> = SOURCES
            .iter()
            .flat_map(|source| source.text().split("call('").skip(1))
            .filter_map(|rest| rest.split('\'').next())
            .map(|name| format!("+{}", name.to_ascii_lowercase()))
            .chain(["+hset", "+zadd", "+hdel", "+zrem", "+zrange", "+zrevrange"].map(String::from))
            .collect();
        let of_clients = ["+evalsha", "+eval", "+script|load", "+subscribe", "+scan"];
        let asked: BTreeSet<String> = commands("p:", "p:client:1")
            .into_iter()
            .map(|(rule, _)| rule.to_owned())
            .filter(|rule| !of_clients.contains(&rule.as_str()))
            .collect();
        assert_eq!(asked, of_scripts);
    }
}

//! All locks in use, by walking over the keys (rule N4).

use std::{collections::HashSet, sync::Arc};

use leasehold_core::{Fault, FaultKind, LockId, LockState, Namespace};
use redis::Value;

use crate::{
    client::Client,
    error,
    fleet::Node,
    script,
    trip::{From, Trip, send_all},
};

/// How many keys the server looks at in one go.
const COUNT: u32 = 1000;
/// How many locks a survey tells of.
const LOCKS_MAX: usize = 10_000_000;

/// Every lock in use, of one namespace or of all, by namespace, name and kind. Each lock is read in
/// one step, all of them are not.
pub(crate) async fn survey(
    client: Arc<Client>,
    namespace: Option<Namespace>,
) -> Result<Vec<LockState>, Fault> {
    let pattern = client.space.scan_pattern(namespace.as_ref());
    let mut seen: HashSet<LockId> = HashSet::new();
    // A lock that moves meanwhile may be found on both servers; each is read where it is.
    for node in client.fleet.masters() {
        scan(&client, &node, &pattern, &mut seen).await?;
    }
    let locks: Vec<LockId> = seen.into_iter().collect();
    let requests: Vec<_> = locks.iter().map(|lock| script::inspect(&client.keys(lock))).collect();
    let answers = send_all(&client, From::Here, client.command_deadline(), &requests).await;
    let mut states = Vec::new();
    for (lock, answer) in locks.into_iter().zip(answers) {
        if let Some(found) = answer? {
            states.push(found.of(lock));
        }
    }
    states.sort_by(|a, b| order(&a.lock).cmp(&order(&b.lock)));
    Ok(states)
}

/// Walks over the keys of one server.
async fn scan(
    client: &Client,
    node: &Arc<Node>,
    pattern: &str,
    seen: &mut HashSet<LockId>,
) -> Result<(), Fault> {
    let mut cursor = b"0".to_vec();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(COUNT);
        let (next, keys) = page(client, node, &scan).await?;
        seen.extend(keys.iter().filter_map(|key| client.space.lock_of(key)));
        if seen.len() > LOCKS_MAX {
            let message = format!("there are more than {LOCKS_MAX} locks to tell of");
            return Err(Fault::new(FaultKind::Unsupported, message));
        }
        cursor = next;
        if cursor == b"0" {
            return Ok(());
        }
    }
}

fn order(lock: &LockId) -> (&Namespace, &leasehold_core::LockName, leasehold_core::LockKind) {
    (lock.namespace(), lock.name(), lock.kind())
}

/// One page of keys. A server that is lost on the way is asked once more by whoever surveys.
async fn page(
    client: &Client,
    node: &Arc<Node>,
    scan: &redis::Cmd,
) -> Result<(Vec<u8>, Vec<Vec<u8>>), Fault> {
    let mut trip = Trip::to(client, node, client.command_deadline());
    let link = trip.link().await?;
    let fault = |error: redis::RedisError| error::fault(&node.site().place, &error);
    match link.ask(scan).await.map_err(fault)? {
        Value::ServerError(error) => Err(fault(error.into())),
        Value::Array(mut parts) if parts.len() == 2 => {
            let keys = parts.pop();
            match (parts.pop(), keys) {
                (Some(Value::BulkString(cursor)), Some(Value::Array(keys))) => {
                    let keys = keys.into_iter().filter_map(|key| match key {
                        Value::BulkString(key) => Some(key),
                        _ => None,
                    });
                    Ok((cursor, keys.collect()))
                }
                _ => Err(unexpected(&node.site().place)),
            }
        }
        _ => Err(unexpected(&node.site().place)),
    }
}

fn unexpected(place: &str) -> Fault {
    let message = format!("{place} does not answer SCAN as Redis does");
    Fault::new(FaultKind::Corrupt, message)
}

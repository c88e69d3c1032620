//! Which servers and sentinels a store has, for people to read.

use leasehold_core::Fault;

use crate::{checks, client::Client, slots::SLOTS, trip::Trip};

/// A server that has locks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisServer {
    /// Host and port, or the path of a socket.
    pub address: String,
    /// How many slots it has; outside of a cluster 0.
    pub slots: u32,
    /// How many replicas are connected to it; `None`: it does not let this user ask.
    pub replicas: Option<u32>,
    /// Why it cannot be asked, if it cannot.
    pub problem: Option<String>,
}

/// A sentinel that the URL names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisSentinel {
    /// Host and port.
    pub address: String,
    /// Which server it takes for the master; `None`: it does not know the service.
    pub master: Option<String>,
    /// How many sentinels must agree that the master is down.
    pub quorum: Option<u32>,
    /// How many other sentinels it knows.
    pub others: Option<u32>,
    /// Why it cannot be asked, if it cannot.
    pub problem: Option<String>,
}

/// Asks every server that has locks.
pub(crate) async fn servers(client: &Client) -> Vec<RedisServer> {
    let ranges = client.fleet.cluster().map(|cluster| cluster.ranges()).unwrap_or_default();
    let mut servers = Vec::new();
    for node in client.fleet.masters() {
        let mut trip = Trip::to(client, &node, client.command_deadline());
        let asked = async {
            let link = trip.link().await?;
            let facts = checks::ask(&node.site().place, &link).await?;
            Ok::<_, Fault>((link.endpoint().to_string(), facts.replicas))
        };
        let server = match asked.await {
            Ok((address, replicas)) => RedisServer { address, slots: 0, replicas, problem: None },
            Err(fault) => RedisServer {
                address: node.site().address().unwrap_or_else(|| node.site().place.clone()),
                slots: 0,
                replicas: None,
                problem: Some(fault.to_string()),
            },
        };
        let of_it = ranges.iter().filter(|range| range.master.to_string() == server.address);
        let slots = of_it.map(|range| u32::from(range.last - range.first) + 1).sum();
        servers.push(RedisServer { slots, ..server });
    }
    servers.sort_by(|a, b| a.address.cmp(&b.address));
    servers
}

/// How many slots nobody has; outside of a cluster 0.
pub(crate) fn uncovered(client: &Client) -> u32 {
    let Some(cluster) = client.fleet.cluster() else { return 0 };
    let ranges = cluster.ranges();
    let covered: u32 = ranges.iter().map(|range| u32::from(range.last - range.first) + 1).sum();
    u32::from(SLOTS).saturating_sub(covered)
}

/// Asks every sentinel.
pub(crate) async fn sentinels(client: &Client) -> Vec<RedisSentinel> {
    let Some(sentinels) = &client.dial.sentinels else { return Vec::new() };
    let answers = sentinels.survey(&client.dial.config).await.into_iter();
    let told = answers.map(|(endpoint, answer)| {
        let address = endpoint.to_string();
        match answer {
            Ok(told) => RedisSentinel {
                address,
                master: told.master.map(|master| master.to_string()),
                quorum: told.quorum,
                others: told.others,
                problem: None,
            },
            Err(fault) => RedisSentinel {
                address,
                master: None,
                quorum: None,
                others: None,
                problem: Some(fault.to_string()),
            },
        }
    });
    told.collect()
}

//! Follows the servers of a store through their changes.

use std::{sync::Arc, time::Duration};

use leasehold_core::{Fault, FaultKind};
use redis::Value;
use tokio::time::sleep;

use crate::{client::Client, error, fleet::Cluster, link::Link, slots::read_slots};

/// How often the sentinels are asked while there is something to lose.
const EVERY: Duration = Duration::from_secs(1);
/// The pause between two questions for the slots, however many find them changed.
const SLOTS_EVERY: Duration = Duration::from_millis(100);

/// Leaves a master that has been replaced. One that is only cut off from the sentinels still takes
/// it that it is the master, and answers; what it grants is lost.
///
/// It asks the sentinels who the master is for as long as this client has or wants something, and
/// cuts every connection that leads elsewhere: what was asked there is then asked of the master. An
/// idle client asks nobody.
pub(crate) async fn follow_master(client: Arc<Client>) {
    let dial = &client.dial;
    let Some(sentinels) = &dial.sentinels else { return };
    loop {
        if !client.book.has_any() {
            // Leases that are bound to their tokens are in no book, but they are renewed.
            dial.pulse.stirred().await;
        }
        match sentinels.master(&dial.config, true).await {
            Ok(master) => {
                for link in dial.pulse.living() {
                    if *link.endpoint() != master && !link.is_over() {
                        tracing::info!(from = %link.endpoint(), to = %master, "the master is left");
                        link.cut();
                    }
                }
            }
            // Without them nothing is known, and the server goes on answering or does not.
            Err(fault) => tracing::debug!(%fault, "the sentinels do not tell"),
        }
        sleep(EVERY).await;
    }
}

/// Asks who has the slots whenever a request finds that it is not who was thought to.
pub(crate) async fn follow_slots(client: Arc<Client>) {
    let Some(cluster) = client.fleet.cluster() else { return };
    for turn in 0usize.. {
        cluster.doubted.notified().await;
        // One that is cut off from the others knows nothing new: they are asked in turn.
        let open = client.fleet.masters().into_iter();
        let mut links: Vec<_> = open.filter_map(|node| node.lanes.own().open_link()).collect();
        links.extend(client.ear.open_link());
        let learned = match links.len() {
            0 => Ok(()),
            count => learn_slots(cluster, &links[turn % count]).await,
        };
        if let Err(fault) = learned {
            tracing::debug!(%fault, "who has the slots is not known");
            cluster.doubted.notify_one();
        }
        if let Some(ear) = client.ear.open_link()
            && !cluster.knows(ear.endpoint())
        {
            // Nothing reaches it any more.
            ear.cut();
        }
        sleep(SLOTS_EVERY).await;
    }
}

/// Asks a server who has the slots.
pub(crate) async fn learn_slots(cluster: &Cluster, link: &Link) -> Result<(), Fault> {
    let place = link.endpoint().to_string();
    let answer = link.ask(redis::cmd("CLUSTER").arg("SLOTS")).await;
    match answer.map_err(|error| error::fault(&place, &error))? {
        Value::ServerError(error) if error.details().is_some_and(is_no_cluster) => {
            let message = format!("{place} is no node of a cluster; name it by redis://");
            Err(Fault::new(FaultKind::Unsupported, message))
        }
        Value::ServerError(error) => Err(error::fault(&place, &error.into())),
        answer => match read_slots(&answer, link.endpoint()) {
            Some(ranges) if !ranges.is_empty() => {
                cluster.learn(ranges);
                Ok(())
            }
            _ => {
                let message = format!("{place} knows nobody who has a slot");
                Err(Fault::new(FaultKind::Unavailable, message))
            }
        },
    }
}

fn is_no_cluster(said: &str) -> bool {
    said.contains("cluster support disabled")
}

//! Leaves a master that has been replaced. One that is only cut off from the sentinels still takes
//! it that it is the master, and answers; what it grants is lost.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::client::Client;

/// How often the sentinels are asked while there is something to lose.
const EVERY: Duration = Duration::from_secs(1);

/// Asks the sentinels who the master is for as long as this client has or wants something, and cuts
/// every connection that leads elsewhere: what was asked there is then asked of the master. An idle
/// client asks nobody.
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

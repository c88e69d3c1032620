//! A server that is spoken to over TLS, and what is said to those who do not trust it.

use test_servers::{Flavor, Server};

use crate::{Test, connect, run, witness::contend};

/// Only Redis 7.0 is built with TLS here.
pub(crate) const TESTS: &[Test] = &[
    ("locks_over_tls", locks_over_tls),
    ("a_server_that_nobody_vouches_for_is_refused", refused_without_trust),
];

fn locks_over_tls(flavor: Flavor) {
    let server = Server::builder(flavor).tls().start().expect("installed");
    run(async {
        let url = format!("{}?ca_file={}", server.url(), server.ca_file().display());
        assert!(url.starts_with("rediss://"), "{url}");
        let managers = [connect(&url).await, connect(&url).await];
        contend(&managers, "orders", 2, 10).await;
        // A connection that is closed is made anew, over TLS again.
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        contend(&managers, "orders", 2, 10).await;
    });
}

fn refused_without_trust(flavor: Flavor) {
    let server = Server::builder(flavor).tls().start().expect("installed");
    run(async {
        let error = leasehold::connect(&server.url()).await.expect_err("nobody vouches for it");
        assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
        let plain = server.url().replace("rediss://", "redis://");
        leasehold::connect(&plain).await.expect_err("it does not speak plain text");
    });
}

//! Users who may not do all that is asked for.

use std::time::{Duration, Instant};

use leasehold::FaultKind;
use test_servers::{Flavor, Server};

use crate::{PATIENCE, Test, connect, is_free_in_the_end, run, witness::contend};

pub(crate) const TESTS: &[Test] = &[
    ("a_user_without_channels", a_user_without_channels),
    ("a_releaser_who_may_not_publish_strands_nobody", a_releaser_who_may_not_publish),
    ("a_release_that_is_refused_is_an_error_and_the_ttl_ends_it", refused_releases),
];

const TTL: Duration = Duration::from_secs(2);

/// Waiting is by looking, and all else is as ever (field report 51).
fn a_user_without_channels(flavor: Flavor) {
    let acl = "user app on >secret ~leasehold* resetchannels +@all\nuser default off";
    let server = Server::builder(flavor).acl_file(acl).start().expect("installed");
    run(async {
        let url = server.url_with("app", "secret");
        let managers = [connect(&url).await, connect(&url).await];
        contend(&managers, "orders", 1, 4).await;
        for locks in managers {
            locks.shutdown().await.expect("answers");
        }
    });
}

/// Who waits for pushes gets none from the other, and does not know that; its beats tell it.
fn a_releaser_who_may_not_publish(flavor: Flavor) {
    let acl = "user mute on >secret ~leasehold* resetchannels +@all";
    let server = Server::builder(flavor).acl_file(acl).start().expect("installed");
    run(async {
        let managers =
            [connect(&server.url()).await, connect(&server.url_with("mute", "secret")).await];
        contend(&managers, "orders", 1, 2).await;
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

/// By a call or by a drop.
fn refused_releases(flavor: Flavor) {
    let acl = "user app on >secret ~leasehold* resetchannels &leasehold* +@all";
    let server = Server::builder(flavor).acl_file(acl).start().expect("installed");
    run(async {
        let locks = connect(&server.url_with("app", "secret")).await;
        let lock = |name| locks.mutex(name).expect("a name").lock().ttl(TTL);
        let (told, dropped) = (lock("told").await.expect("free"), lock("dropped").await);
        server.command(&["ACL", "SETUSER", "app", "-evalsha", "-eval"]);
        let error = told.release().await.expect_err("the right was taken away");
        assert_eq!(error.fault().map(leasehold::Fault::kind), Some(FaultKind::Denied), "{error}");
        assert!(!error.is_retryable() && !error.to_string().contains("secret"), "{error}");
        drop(dropped.expect("free"));
        let (others, begun) = (connect(&server.url()).await, Instant::now());
        for name in ["told", "dropped"] {
            let next = others.mutex(name).expect("a name").lock().timeout(PATIENCE).await;
            assert!(next.expect("its TTL ends it").release().await.expect("answers"));
        }
        assert!(begun.elapsed() < TTL * 5, "only after {:?}", begun.elapsed());
    });
}

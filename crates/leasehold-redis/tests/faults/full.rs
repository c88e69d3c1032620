//! A server that takes no more writes for lack of memory still takes releases and renewals.

use std::time::Duration;

use leasehold::FaultKind;
use test_servers::{Flavor, Server};

use crate::{Test, connect, is_free_in_the_end, run};

pub(crate) const TESTS: &[Test] =
    &[("a_full_server_takes_releases_and_renewals", takes_releases_and_renewals)];

const TTL: Duration = Duration::from_secs(3);

fn takes_releases_and_renewals(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&server.url()).await;
        let alone = locks.mutex("alone").expect("a name").lock().ttl(TTL).renew();
        let alone = alone.await.expect("free");
        let contended = locks.mutex("contended").expect("a name");
        let held = contended.lock().ttl(TTL).renew().await.expect("free");
        let waiting = tokio::spawn({
            let mutex = contended.clone();
            async move { mutex.lock().await.expect("granted") }
        });
        while crate::queued(&contended).await == 0 {
            tokio::task::yield_now().await;
        }
        for (name, value) in [("maxmemory-policy", "noeviction"), ("maxmemory", "1")] {
            assert_eq!(server.command(&["CONFIG", "SET", name, value]).text(), "OK");
        }
        // sleep: longer than the leases last without being renewed.
        tokio::time::sleep(TTL * 2).await;
        assert!(alone.is_held() && held.is_held(), "renewals were refused");
        assert!(alone.extend(TTL * 2).await.expect("answers"));
        let error = locks.mutex("another").expect("a name").try_lock().await.expect_err("full");
        assert_eq!(error.fault().map(leasehold::Fault::kind), Some(FaultKind::Full), "{error}");
        assert!(alone.release().await.expect("answers"));
        assert!(held.release().await.expect("answers"));
        let next = waiting.await.expect("no panic");
        assert!(next.release().await.expect("answers"));
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        is_free_in_the_end(&server.url(), "another").await;
    });
}

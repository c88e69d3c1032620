//! What another version of the program wrote into the server (rule L9).

use leasehold::FaultKind;
use test_servers::{Flavor, Server};

use crate::{Test, connect, is_free_in_the_end, run};

pub(crate) const TESTS: &[Test] =
    &[("an_older_layout_is_an_error_that_names_it", an_older_layout_is_an_error_that_names_it)];

/// The first two bytes of a lock's state are its mark and the number of its layout.
fn an_older_layout_is_an_error_that_names_it(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&server.url()).await;
        let mutex = locks.mutex("orders").expect("a name");
        let lease = mutex.lock().await.expect("free");
        let key = server.command(&["KEYS", "*"]).items()[0].text();
        let older = |layout: &str| {
            let reply = server.command(&["SETRANGE", &key, "1", layout]).int();
            assert!(reply > 1, "the state is there");
        };
        older("\u{0}");
        let errors = [
            mutex.lock().await.expect_err("another layout"),
            mutex.try_lock().await.expect_err("another layout"),
            mutex.inspect().await.expect_err("another layout"),
            lease.extend(crate::PATIENCE).await.expect_err("another layout"),
            lease.release().await.expect_err("another layout"),
        ];
        for error in errors {
            let fault = error.fault().expect("a fault of the store");
            assert_eq!(fault.kind(), FaultKind::Layout, "{error}");
            assert!(error.to_string().contains("layout 0"), "{error}");
            assert!(!error.is_retryable(), "{error}");
        }
        // Whatever refused left all as it was.
        older("\u{2}");
        assert!(lease.release().await.expect("answers"));
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

//! Requests and replies that are lost, late or repeated on the way (rule L7).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use test_servers::{
    Flavor, Server,
    proxy::{Fate, Proxy, Request},
    wait_until,
};

use crate::{
    Test, connect, is_free_in_the_end, run,
    witness::{Errors, contend, release},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_cut_after_the_server_acted", |flavor| every_so_many(flavor, Fate::CutAfter)),
    ("a_reply_that_is_lost", |flavor| every_so_many(flavor, Fate::LoseReply)),
    ("a_request_that_is_lost", |flavor| every_so_many(flavor, Fate::Lose)),
    ("a_reply_that_is_too_late", |flavor| every_so_many(flavor, Fate::DelayReply(LATE))),
    ("a_request_that_is_too_late", |flavor| every_so_many(flavor, Fate::Delay(LATE))),
    ("a_copy_that_comes_soon", |flavor| every_so_many(flavor, Fate::AgainAfter(SOON))),
    ("a_copy_that_comes_late", |flavor| every_so_many(flavor, Fate::AgainAfter(LATE))),
    ("what_happens_to_the_reply_of_a_release", what_happens_to_the_reply_of_a_release),
    ("a_grant_that_ran_out_before_it_was_told_is_asked_for_anew", ran_out_untold),
    ("a_connection_that_is_closed_is_an_error_to_nobody", closed_is_an_error_to_nobody),
];

/// While the lock is still held or just given back.
const SOON: Duration = Duration::from_millis(5);
/// When the client has sent the request once more.
const LATE: Duration = Duration::from_millis(700);

/// Sooner than the client sends a request once more, which is after a third of its time.
const RUNS_OUT: Duration = Duration::from_millis(250);

/// A URL whose commands are sent three times within their time, and given up before what is late comes.
fn mending(url: &str) -> String {
    format!("{url}?command_timeout_ms=1500")
}

fn is_script(request: &Request) -> bool {
    request.name().starts_with("EVAL")
}

/// How many requests come through between two that are hit: more than are sent again at once after
/// one of them, so that what is sent again is not hit again and again until its time is over.
const BETWEEN: u64 = 12;

/// Lets this happen to some requests, while several tasks contend.
fn every_so_many(flavor: Flavor, fate: Fate) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let url = mending(&proxy.url());
        let managers = [connect(&url).await, connect(&url).await];
        let (asked, hit) = (AtomicU64::new(1), Arc::new(AtomicU64::new(0)));
        let hits = Arc::clone(&hit);
        proxy.on_request(move |request| {
            if is_script(request) && asked.fetch_add(1, Ordering::Relaxed) % BETWEEN == 0 {
                hits.fetch_add(1, Ordering::Relaxed);
                return fate;
            }
            Fate::Pass
        });
        contend(&managers, "orders", 2, 8).await;
        proxy.clear();
        let hit = hit.load(Ordering::Relaxed);
        assert!(hit > 3, "only {hit} requests were hit");
        if matches!(fate, Fate::AgainAfter(_)) {
            wait_until("every copy has come", || proxy.copies() == hit);
        }
        for locks in managers {
            locks.shutdown().await.expect("answers");
        }
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

/// The lock is free at once, however the release that was done came back.
fn what_happens_to_the_reply_of_a_release(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let locks = connect(&mending(&proxy.url())).await;
        let direct = connect(&server.url()).await;
        for fate in [Fate::CutAfter, Fate::LoseReply, Fate::DelayReply(LATE)] {
            let mutex = locks.mutex("orders").expect("a name");
            let lease = mutex.lock().await.expect("granted");
            let first = AtomicU64::new(0);
            proxy.on_request(move |request| {
                let is_first = is_script(request) && first.fetch_add(1, Ordering::Relaxed) == 0;
                if is_first { fate } else { Fate::Pass }
            });
            let ((), next) = tokio::join!(release(&lease, Errors::Hidden), async {
                direct.mutex("orders").expect("a name").lock().await.expect("granted")
            });
            proxy.clear();
            assert!(
                next.release().await.expect("answers"),
                "a copy of the release ended another's"
            );
        }
    });
}

/// The first reply is lost, and when the request is sent once more its grant is over: nobody holds
/// anything, and the caller has all of its time left.
fn ran_out_untold(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let locks = connect(&mending(&proxy.url())).await;
        let mutex = locks.mutex("orders").expect("a name");
        let mut fence = None;
        for binding in ["of the client", "with a token of its own"] {
            let first = AtomicU64::new(0);
            proxy.on_request(move |request| {
                let is_first = is_script(request) && first.fetch_add(1, Ordering::Relaxed) == 0;
                if is_first { Fate::LoseReply } else { Fate::Pass }
            });
            let mut asked = mutex.lock().ttl(RUNS_OUT);
            if fence.is_some() {
                asked = asked.token("of-our-own".parse().expect("a token"));
            }
            let lease = asked.await.unwrap_or_else(|error| panic!("{binding}: {error}"));
            assert!(Some(lease.fencing_token()) > fence, "{binding}");
            fence = Some(lease.fencing_token());
            // It may have run out by now, on a busy machine.
            lease.release().await.expect("answers");
            proxy.clear();
        }
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

/// A command is sent again over a new connection, within its timeout.
fn closed_is_an_error_to_nobody(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let locks = connect(&proxy.url()).await;
        let mutex = locks.mutex("orders").expect("a name");
        for _ in 0..3 {
            let cut_once = || {
                let first = AtomicU64::new(0);
                proxy.on_request(move |request| {
                    let is_first = is_script(request) && first.fetch_add(1, Ordering::Relaxed) == 0;
                    if is_first { Fate::CutAfter } else { Fate::Pass }
                });
            };
            cut_once();
            let lease = mutex.lock().await.expect("asked again");
            cut_once();
            assert!(lease.extend(Duration::from_secs(30)).await.expect("asked again"));
            cut_once();
            assert!(lease.release().await.expect("asked again"));
        }
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

//! A holder that cannot reach the store knows in time that it may have lost its lease (rule L3).

use std::time::{Duration, Instant};

use leasehold::RunError;
use test_servers::{
    Flavor, Server,
    proxy::{Direction, Proxy},
};

use crate::{Test, connect, impatient, run};

pub(crate) const TESTS: &[Test] = &[
    ("a_stopped_server", |flavor| unreachable(flavor, Cut::Stopped)),
    ("a_partition", |flavor| unreachable(flavor, Cut::Silent)),
    ("a_closed_network", |flavor| unreachable(flavor, Cut::Closed)),
];

const TTL: Duration = Duration::from_millis(1500);
/// How late a busy machine may wake whoever waits for a loss.
const LATE: Duration = Duration::from_secs(1);

/// How the store becomes unreachable for the holder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server's process is stopped: for everybody.
    Stopped,
    /// Nothing arrives, either way.
    Silent,
    /// Connections are closed and refused.
    Closed,
}

/// `lost()` fires by the lease's own deadline and before the store can grant again, and the work's
/// output comes with the loss.
fn unreachable(flavor: Flavor, cut: Cut) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let locks = connect(&impatient(&proxy.url())).await;
        let others = connect(&server.url()).await;
        let mutex = locks.mutex("leader").expect("a name");
        let (tell, told) = tokio::sync::oneshot::channel();
        let working = mutex.lock().ttl(TTL).renew().run(async |lease| {
            // One renewal has come through, so that it is the renewed deadline that counts.
            let first = lease.certain_for().expect("has a TTL");
            let begun = Instant::now();
            let renewed = first + TTL / 10;
            while lease.certain_for().expect("has a TTL") + begun.elapsed() <= renewed {
                tokio::task::yield_now().await;
            }
            match cut {
                Cut::Stopped => server.pause(),
                Cut::Silent => {
                    proxy.pause(Direction::Requests);
                    proxy.pause(Direction::Replies);
                }
                Cut::Closed => {
                    proxy.refuse(true);
                    proxy.cut();
                }
            }
            let since = Instant::now();
            let certain_for = lease.certain_for().expect("has a TTL");
            assert!(certain_for < TTL, "{certain_for:?}");
            tell.send(()).expect("somebody listens");
            lease.lost().await;
            let lost_after = since.elapsed();
            assert!(lost_after >= certain_for, "already after {lost_after:?}");
            assert!(lost_after <= certain_for + LATE, "only after {lost_after:?}");
            if cut == Cut::Stopped {
                server.resume();
            }
            since + certain_for
        });
        let waiting = async {
            told.await.expect("is cut off");
            let next = others.mutex("leader").expect("a name").lock().await.expect("in the end");
            (Instant::now(), next)
        };
        let (worked, (granted, next)) = tokio::join!(working, waiting);
        let Err(RunError::Lost { output: Some(deadline), .. }) = worked else {
            panic!("not lost, or without what the work gave: {worked:?}");
        };
        assert!(deadline < granted, "granted {:?} before the deadline", deadline - granted);
        assert!(next.release().await.expect("answers"));
        proxy.clear();
    });
}

//! Servers that restart or are emptied.

use std::time::Duration;

use leasehold::Lease;
use test_servers::{Data, Flavor, Server};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{PATIENCE, Test, connect, impatient, is_free_in_the_end, queued, run};

pub(crate) const TESTS: &[Test] = &[
    ("a_restart_with_data_changes_nothing", a_restart_with_data_changes_nothing),
    ("a_restart_without_data_is_a_loss_and_a_new_queue", without_data),
    ("a_flush_is_a_loss_and_a_new_queue", a_flush_is_a_loss_and_a_new_queue),
];

/// So short that a renewal comes soon.
const TTL: Duration = Duration::from_secs(3);

/// Has a task wait for the lock of this URL; returns once it is queued.
async fn waiter(url: &str) -> JoinHandle<Lease> {
    let (tell, queued) = oneshot::channel();
    let locks = connect(&impatient(url)).await;
    let waiting = tokio::spawn(async move {
        let tell = move |_: &leasehold::Obstacle| tell.send(()).expect("somebody listens");
        let mutex = locks.mutex("orders").expect("a name");
        mutex.lock().timeout(PATIENCE).on_queued(tell).await.expect("granted in the end")
    });
    queued.await.expect("is queued");
    waiting
}

fn a_restart_with_data_changes_nothing(flavor: Flavor) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&impatient(&server.url())).await;
        let mutex = locks.mutex("orders").expect("a name");
        let lease = mutex.lock().await.expect("free");
        let waiting = waiter(&server.url()).await;
        server.restart(Data::Kept);
        assert_eq!(queued(&mutex).await, 1);
        assert!(
            lease.extend(Duration::from_secs(30)).await.expect("answers"),
            "still the holder's"
        );
        assert!(lease.is_held());
        assert!(!waiting.is_finished(), "granted although somebody holds");
        assert!(lease.release().await.expect("answers"));
        let next = waiting.await.expect("no panic");
        assert!(next.fencing_token() > lease.fencing_token());
        next.release().await.expect("answers");
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

/// The holder learns it by its next renewal; the waiter is queued again or gets in.
fn forgets(flavor: Flavor, forget: fn(&Server)) {
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&impatient(&server.url())).await;
        let lease = locks.mutex("orders").expect("a name").lock().ttl(TTL).renew();
        let lease = lease.await.expect("free");
        let waiting = waiter(&server.url()).await;
        forget(&server);
        tokio::time::timeout(TTL, lease.lost()).await.expect("within the lease's own time");
        assert!(!lease.is_held());
        let next = waiting.await.expect("no panic");
        assert!(!lease.release().await.expect("answers"), "it was lost");
        assert!(next.release().await.expect("answers"), "who lost it ended another's");
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

fn without_data(flavor: Flavor) {
    forgets(flavor, |server| server.restart(Data::Lost));
}

fn a_flush_is_a_loss_and_a_new_queue(flavor: Flavor) {
    forgets(flavor, |server| {
        server.command(&["FLUSHALL"]);
    });
}

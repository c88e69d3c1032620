//! The first master is killed and its replica takes its place, while locks are held, queued for and
//! claimed.

use std::{sync::Arc, time::Duration};

use leasehold::{
    Backend as _, Capacity, HolderInfo, Lease, LockManager, NamedMutex, Share, Token, Ttl, defaults,
};
use leasehold_core::{Acquire, Acquired, AttemptId, Binding, CapacityClaim, Confirmed};
use leasehold_redis::{RedisBackend, RedisConfig};

use crate::{
    PATIENCE, Test, run,
    scene::{Fleet, Register, is_renewed, queue, same},
};

pub(crate) const TESTS: &[Test] = &[
    ("what_was_replicated_goes_on_in_a_cluster", |flavor| goes_on(&Fleet::cluster(flavor))),
    ("what_was_replicated_goes_on_by_sentinels", |flavor| goes_on(&Fleet::sentinels(flavor))),
    ("what_was_not_replicated_is_lost_in_a_cluster", |flavor| is_lost(&Fleet::cluster(flavor))),
    ("what_was_not_replicated_is_lost_by_sentinels", |flavor| is_lost(&Fleet::sentinels(flavor))),
];

/// Longer than a failover takes, and so short that renewals come soon.
const TTL: Duration = Duration::from_secs(12);

/// Held, renewed, queued and claimed.
fn goes_on(fleet: &Fleet) {
    run(async {
        let (ours, theirs) = (fleet.client().await, fleet.client().await);
        let mutex = fleet.on_first(&ours, "held");
        let held = mutex.lock().ttl(PATIENCE).await.expect("free");
        let waiting = queue(same(&theirs, &mutex)).await;
        let renewed = fleet.on_first(&ours, "renewed").lock().ttl(TTL).renew();
        let renewed = renewed.await.expect("free");
        let claimed = fleet.on_first(&ours, "claimed");
        let claim = Claim::make(fleet, &claimed).await;
        fleet.wait_until_replicated();

        fleet.fail_over();
        assert!(held.is_held());
        assert!(held.extend(PATIENCE).await.expect("answers"), "it was replicated");
        assert!(!waiting.is_finished(), "granted although somebody holds");
        assert!(held.release().await.expect("answers"), "it was held");
        let next = waiting.await.expect("granted in the end");
        assert!(next.fencing_token() > held.fencing_token());
        assert!(next.release().await.expect("answers"), "it was held");
        is_renewed(&renewed, TTL).await;
        claim.belongs_to_nobody_else(&same(&theirs, &claimed)).await;
        shut_down([ours, theirs]).await;
    });
}

/// A waiter that was granted a lock and has not confirmed.
struct Claim {
    backend: RedisBackend,
    request: Acquire,
    /// Of the grant before.
    before: Lease,
}

impl Claim {
    async fn make(fleet: &Fleet, mutex: &NamedMutex) -> Self {
        let before = mutex.lock().ttl(PATIENCE).await.expect("free");
        let url = format!("{}?command_timeout_ms=20000", fleet.url());
        let config = RedisConfig::new(&url).expect("a URL");
        let backend = RedisBackend::connect(config).await.expect("connects");
        let request = Acquire {
            lock: Arc::new(mutex.lock_id().clone()),
            generation: None,
            capacity: CapacityClaim::Exactly(Capacity::ONE),
            share: Share::ONE,
            token: Token::random(),
            attempt: AttemptId::random(),
            ttl: Some(Ttl::new(PATIENCE).expect("a TTL")),
            binding: Binding::Client,
            wait: true,
            not_after: None,
            queue_limit: defaults::QUEUE_LIMIT,
            info: Arc::new(HolderInfo::here()),
        };
        let Acquired::Queued(place) = backend.acquire(&request).await.expect("answers") else {
            panic!("it is held");
        };
        assert!(before.release().await.expect("answers"), "it was held");
        place.wake.notified().await;
        let state = mutex.inspect().await.expect("answers").expect("in use");
        assert!(state.holders.iter().all(|holder| holder.claimed), "{state:?}");
        Self { backend, request, before }
    }

    /// Who claimed holds it, or the claim has run out meanwhile and somebody else can.
    async fn belongs_to_nobody_else(self, mutex: &NamedMutex) {
        let Self { backend, request, before } = self;
        let grant = match backend.confirm(&request.lock, &request.token).await.expect("answers") {
            Confirmed::Granted(grant) => Some(grant),
            Confirmed::Unknown => None,
            other => panic!("a claim became {other:?}"),
        };
        if let Some(grant) = &grant {
            assert!(grant.fencing > before.fencing_token());
            let busy = mutex.try_lock().await.expect("answers");
            assert!(busy.is_none(), "two hold it: {busy:?}");
            backend.release(&request.lock, &request.token).await.expect("answers");
        }
        let next = mutex.lock().timeout(PATIENCE / 4).await.expect("no permit is lost");
        assert!(next.fencing_token() > grant.map_or(before.fencing_token(), |grant| grant.fencing));
        assert!(next.release().await.expect("answers"), "it was held");
        backend.close().await.expect("closes");
    }
}

/// A grant and a place in the queue that the replica never heard of.
fn is_lost(fleet: &Fleet) {
    run(async {
        let (ours, theirs) = (fleet.client().await, fleet.client().await);
        let mutex = fleet.on_first(&ours, "kept");
        let kept = mutex.lock().ttl(PATIENCE).await.expect("free");
        let lost_mutex = fleet.on_first(&ours, "lost");
        fleet.wait_until_replicated();
        fleet.stop_replication();
        let lost = lost_mutex.lock().ttl(TTL).renew().await.expect("free");
        let waiting = queue(same(&theirs, &mutex)).await;
        let register = Register::default();
        assert!(register.write(&lost));

        fleet.fail_over();
        let next = same(&theirs, &lost_mutex).lock().ttl(PATIENCE).await.expect("nobody has it");
        assert!(next.fencing_token() > lost.fencing_token());
        assert!(register.write(&next));
        assert!(!register.write(&lost), "two write");
        tokio::time::timeout(TTL, lost.lost()).await.expect("within the lease's own time");
        assert!(!lost.is_held());
        assert!(!lost.release().await.expect("answers"), "it was lost");
        assert!(next.release().await.expect("answers"), "who lost it ended another's");

        assert!(kept.extend(PATIENCE).await.expect("answers"), "it was replicated");
        assert!(!waiting.is_finished(), "granted although somebody holds");
        assert!(kept.release().await.expect("answers"), "it was held");
        let next = waiting.await.expect("queued again, and granted");
        assert!(next.fencing_token() > kept.fencing_token());
        assert!(next.release().await.expect("answers"), "it was held");
        shut_down([ours, theirs]).await;
    });
}

async fn shut_down(clients: [LockManager; 2]) {
    for client in clients {
        client.shutdown().await.expect("answers");
    }
}

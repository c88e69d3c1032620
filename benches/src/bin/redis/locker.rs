//! One lock, ours and the peers', behind the same two calls.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use distributed_lock_core::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisDistributedLock, RedisLockHandle, RedisLockProvider};
use leasehold::{Lease, LockManager, NamedMutex};
use redis::{Client, Script, aio::MultiplexedConnection};

/// Longer than any section here.
const TTL: Duration = Duration::from_secs(30);
/// How often to ask a lock again that cannot be waited for.
const POLL: Duration = Duration::from_millis(10);

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// A client of the server, from which locks are made.
pub(crate) trait Locks: Clone + Send + Sync + 'static {
    type Lock: Lock;

    /// Its name in the table.
    const NAME: &'static str;

    fn connect(url: &str) -> impl Future<Output = Self>;

    fn lock(&self, name: &str) -> impl Future<Output = Self::Lock>;
}

/// A lock for one task.
pub(crate) trait Lock: Clone + Send + Sync + 'static {
    type Held: Send;

    fn lock(&mut self) -> impl Future<Output = Self::Held> + Send;

    fn unlock(&mut self, held: Self::Held) -> impl Future<Output = ()> + Send;
}

/// Ours, as an application has it.
#[derive(Clone)]
pub(crate) struct Ours(LockManager);

impl Locks for Ours {
    type Lock = NamedMutex;

    const NAME: &'static str = "leasehold";

    async fn connect(url: &str) -> Self {
        Self(leasehold::connect(url).await.expect("connects"))
    }

    async fn lock(&self, name: &str) -> NamedMutex {
        self.0.mutex(name).expect("a valid name")
    }
}

impl Lock for NamedMutex {
    type Held = Lease;

    async fn lock(&mut self) -> Lease {
        Self::lock(self).await.expect("granted")
    }

    async fn unlock(&mut self, lease: Lease) {
        lease.release().await.expect("held");
    }
}

/// The floor: what is set if it is not there, and deleted if it is one's own. Nobody can wait for
/// it, there is no order and no fencing.
#[derive(Clone)]
pub(crate) struct SetNx {
    connection: MultiplexedConnection,
    script: Arc<Script>,
}

#[derive(Clone)]
pub(crate) struct SetNxLock {
    locks: SetNx,
    name: String,
    draws: (RandomState, u64),
}

impl Locks for SetNx {
    type Lock = SetNxLock;

    const NAME: &'static str = "SET NX PX";

    async fn connect(url: &str) -> Self {
        let script = Arc::new(Script::new(COMPARE_AND_DELETE));
        Self { connection: connection(url).await, script }
    }

    async fn lock(&self, name: &str) -> SetNxLock {
        let draws = (RandomState::new(), 0);
        SetNxLock { locks: self.clone(), name: format!("floor:{name}"), draws }
    }
}

impl Lock for SetNxLock {
    type Held = String;

    async fn lock(&mut self) -> String {
        self.draws.1 += 1;
        let token = format!("{:032x}", u128::from(self.draws.0.hash_one(self.draws.1)));
        let ttl = u64::try_from(TTL.as_millis()).expect("seconds");
        let mut set = redis::cmd("SET");
        set.arg(&self.name).arg(&token).arg("NX").arg("PX").arg(ttl);
        let set: Option<String> =
            set.query_async(&mut self.locks.connection).await.expect("answers");
        assert!(set.is_some(), "nobody else has it");
        token
    }

    async fn unlock(&mut self, token: String) {
        let mut script = self.locks.script.prepare_invoke();
        let deleted: u64 = script
            .key(&self.name)
            .arg(token)
            .invoke_async(&mut self.locks.connection)
            .await
            .expect("answers");
        assert_eq!(deleted, 1, "it was there");
    }
}

/// The floor of a hand-off: a token in a list that everybody blocks on, each with a connection. It
/// has no TTL: a crash loses it for ever.
#[derive(Clone)]
pub(crate) struct Blpop(Client);

#[derive(Clone)]
pub(crate) struct BlpopLock {
    connection: MultiplexedConnection,
    name: String,
}

impl Locks for Blpop {
    type Lock = BlpopLock;

    const NAME: &'static str = "BLPOP";

    async fn connect(url: &str) -> Self {
        Self(Client::open(url).expect("a URL"))
    }

    async fn lock(&self, name: &str) -> BlpopLock {
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = self.0.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.expect("connects");
        BlpopLock { connection, name: format!("token:{name}") }
    }
}

impl BlpopLock {
    /// Puts the one token there is into the list.
    pub(crate) async fn fill(&mut self) {
        let mut fill = redis::pipe();
        fill.del(&self.name).ignore().rpush(&self.name, "token").ignore();
        fill.exec_async(&mut self.connection).await.expect("answers");
    }
}

impl Lock for BlpopLock {
    type Held = ();

    async fn lock(&mut self) {
        let mut pop = redis::cmd("BLPOP");
        pop.arg(&self.name).arg(0);
        let _: (String, String) = pop.query_async(&mut self.connection).await.expect("answers");
    }

    async fn unlock(&mut self, (): ()) {
        let mut push = redis::cmd("RPUSH");
        push.arg(&self.name).arg("token");
        push.exec_async(&mut self.connection).await.expect("answers");
    }
}

/// Polls, with a random delay of up to 200 ms by default.
#[derive(Clone)]
pub(crate) struct Rslock(rslock::LockManager);

#[derive(Clone)]
pub(crate) struct RslockLock {
    manager: rslock::LockManager,
    name: String,
}

impl Locks for Rslock {
    type Lock = RslockLock;

    const NAME: &'static str = "rslock";

    async fn connect(url: &str) -> Self {
        Self(rslock::LockManager::new(vec![url.to_owned()]))
    }

    async fn lock(&self, name: &str) -> RslockLock {
        RslockLock { manager: self.0.clone(), name: format!("rslock:{name}") }
    }
}

impl Lock for RslockLock {
    type Held = rslock::LockGuard;

    async fn lock(&mut self) -> rslock::LockGuard {
        self.manager.acquire(self.name.as_bytes(), TTL).await.expect("granted")
    }

    async fn unlock(&mut self, guard: rslock::LockGuard) {
        guard.release().await;
    }
}

/// Does not wait: it is asked again and again.
#[derive(Clone)]
pub(crate) struct Distributed(Arc<RedisLockProvider>);

#[derive(Clone)]
pub(crate) struct DistributedLock(Arc<RedisDistributedLock>);

impl Locks for Distributed {
    type Lock = DistributedLock;

    const NAME: &'static str = "distributed-lock-redis";

    async fn connect(url: &str) -> Self {
        Self(Arc::new(RedisLockProvider::new(url).await.expect("connects")))
    }

    async fn lock(&self, name: &str) -> DistributedLock {
        DistributedLock(Arc::new(self.0.create_lock(name)))
    }
}

impl Lock for DistributedLock {
    type Held = RedisLockHandle;

    async fn lock(&mut self) -> RedisLockHandle {
        loop {
            if let Some(held) = self.0.try_acquire().await.expect("answers") {
                return held;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn unlock(&mut self, held: RedisLockHandle) {
        held.release().await.expect("held");
    }
}

pub(crate) async fn connection(url: &str) -> MultiplexedConnection {
    let client = Client::open(url).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("connects")
}

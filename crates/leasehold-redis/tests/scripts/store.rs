//! A lock on a real server, asked through the scripts alone: no client, no threads.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Acquire, AttemptId, Binding, Capacity, CapacityClaim, ClientId, Confirmed, Destroyed, Extended,
    Fault, Generation, Grant, HolderInfo, LockCounts, LockId, LockKind, LockName, LockState,
    Namespace, Refusal, Released, Remaining, Renewed, Share, StoreTime, Token, Ttl, WatchFor,
};
use leasehold_redis::script::{
    self, AcquireReply, BeatReply, ConfirmReply, Copies, Extension, Keyspace, LockKeys, Push,
    RebindReply, Request, Sender, Waiting, WakeId, WatchReply,
};
use redis::{ConnectionLike as _, Value};
use test_servers::Server;

pub(crate) const CLAIM: Duration = Duration::from_secs(2);

/// A connection to a server, and one lock there.
pub(crate) struct Store {
    pub(crate) connection: redis::Connection,
    pub(crate) space: Keyspace,
    pub(crate) id: Arc<LockId>,
    pub(crate) keys: LockKeys,
    pub(crate) capacity: u32,
    wakes: u64,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn ttl(ms_: u64) -> Ttl {
    Ttl::new(ms(ms_)).expect("a valid TTL")
}

pub(crate) fn client(n: u64) -> ClientId {
    ClientId(0xC11E_0000_0000_0000 + n)
}

/// An acquisition as a client would send it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) request: Acquire,
    pub(crate) sender: Sender,
}

impl Ask {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn ttl(self, ttl_: Ttl) -> Self {
        self.with(|ask| ask.request.ttl = Some(ttl_))
    }

    pub(crate) fn try_only(self) -> Self {
        self.with(|ask| ask.request.wait = false)
    }

    pub(crate) fn weight(self, weight: u32) -> Self {
        let weight = leasehold_core::Weight::new(weight).expect("a valid weight");
        self.with(|ask| ask.request.share = Share::Permits(weight))
    }

    pub(crate) fn token(&self) -> Token {
        self.request.token.clone()
    }
}

impl Store {
    pub(crate) fn new(server: &Server, kind: LockKind, name: &str, capacity: u32) -> Self {
        let client = redis::Client::open(server.url()).expect("a valid URL");
        // Of its own, so that nobody else's pushes come over its clients' channels.
        let prefix: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let space = Keyspace::new(&format!("{prefix}:")).expect("a valid prefix");
        let name = LockName::new(name).expect("a valid name");
        let id = Arc::new(LockId::new(Namespace::default(), kind, name));
        Self {
            connection: client.get_connection().expect("the server listens"),
            keys: space.lock(&id),
            space,
            id,
            capacity,
            wakes: 0,
        }
    }

    /// Sends a request as a client does: by digest, and by text when the server does not know it.
    pub(crate) fn try_ask<R>(&mut self, request: &Request<R>) -> Result<R, Fault> {
        let mut answer = self.connection.req_command(request.by_digest());
        if matches!(&answer, Ok(Value::ServerError(error)) if error.code() == "NOSCRIPT") {
            answer = self.connection.req_command(&request.by_text());
        }
        match answer {
            Ok(answer) => request.read(answer),
            Err(error) => Err(script::fault_of(error)),
        }
    }

    #[track_caller]
    pub(crate) fn ask<R>(&mut self, request: &Request<R>) -> R {
        let name = request.source().name();
        self.try_ask(request).unwrap_or_else(|fault| {
            panic!("{name}: {fault}: {:?}", std::error::Error::source(&fault))
        })
    }

    /// A request by a client, with everything that a client adds.
    pub(crate) fn wants(&mut self, n: u64) -> Ask {
        self.wakes += 1;
        let (token, attempt) = Token::and_attempt();
        let request = Acquire {
            lock: Arc::clone(&self.id),
            generation: None,
            capacity: CapacityClaim::Exactly(Capacity::new(self.capacity).expect("a capacity")),
            share: Share::ONE,
            token,
            attempt,
            ttl: None,
            binding: Binding::Client,
            wait: true,
            not_after: None,
            queue_limit: 1_000_000,
            info: Arc::new(HolderInfo::from_parts("host", 7, Some("label"))),
        };
        let wake = WakeId(self.wakes);
        let sender = Sender { client: client(n), wake, not_after: None, stamp: None, claim: CLAIM };
        Ask { request, sender }
    }

    #[track_caller]
    pub(crate) fn acquire(&mut self, ask: &Ask) -> AcquireReply {
        self.ask(&script::acquire(&self.keys, &ask.request, ask.sender))
    }

    #[track_caller]
    pub(crate) fn held(&mut self, ask: &Ask) -> Grant {
        match self.acquire(ask) {
            AcquireReply::Granted(grant) => grant,
            other => panic!("expected a grant, the server says {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn queued(&mut self, ask: &Ask) -> (u64, Waiting) {
        match self.acquire(ask) {
            AcquireReply::Queued { obstacle, waiting, .. } => {
                (obstacle.ahead.expect("it is counted"), waiting)
            }
            other => panic!("expected a place, the server says {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn refused(&mut self, ask: &Ask) -> Refusal {
        match self.acquire(ask) {
            AcquireReply::Refused(refusal) => refusal,
            other => panic!("expected a refusal, the server says {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn confirm(&mut self, token: &Token) -> ConfirmReply {
        self.ask(&script::confirm(&self.keys, token))
    }

    #[track_caller]
    pub(crate) fn granted(&mut self, token: &Token) -> Grant {
        match self.confirm(token) {
            ConfirmReply::Told(Confirmed::Granted(grant)) => grant,
            other => panic!("expected a grant, the server says {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn waits(&mut self, token: &Token) -> Waiting {
        match self.confirm(token) {
            ConfirmReply::Waiting(waiting) => waiting,
            other => panic!("expected it to wait, the server says {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn release(&mut self, token: &Token) -> Released {
        self.ask(&script::release(&self.keys, token, client(0), None))
    }

    #[track_caller]
    pub(crate) fn abandon(&mut self, ask: &Ask, until: StoreTime) -> Released {
        let copies = Copies { attempt: ask.request.attempt, until };
        self.ask(&script::release(&self.keys, &ask.token(), client(0), Some(copies)))
    }

    #[track_caller]
    pub(crate) fn renew(&mut self, token: &Token) -> Renewed {
        self.ask(&script::renew(&self.keys, token))
    }

    #[track_caller]
    pub(crate) fn extend(&mut self, token: &Token, to: Option<Ttl>) -> Extended {
        self.ask(&script::extend(&self.keys, token, to))
    }

    #[track_caller]
    pub(crate) fn rebind(&mut self, token: &Token, to: Extension) -> RebindReply {
        self.ask(&script::rebind(&self.keys, token, to))
    }

    #[track_caller]
    pub(crate) fn remaining(&mut self, token: &Token) -> Remaining {
        self.ask(&script::remaining(&self.keys, token))
    }

    #[track_caller]
    pub(crate) fn beat(&mut self, waiters: &[Token], watchers: &[Token]) -> BeatReply {
        self.ask(&script::beat(&self.keys, waiters, watchers))
    }

    #[track_caller]
    pub(crate) fn watch(
        &mut self,
        id: &Token,
        what: WatchFor,
        of: Option<Generation>,
    ) -> WatchReply {
        self.wakes += 1;
        let (client, wake) = (client(9), WakeId(self.wakes));
        let sender = Sender { client, wake, not_after: None, stamp: None, claim: CLAIM };
        self.ask(&script::watch(&self.keys, of, id, what, sender))
    }

    #[track_caller]
    pub(crate) fn unwatch(&mut self, id: &Token) {
        self.ask(&script::unwatch(&self.keys, id));
    }

    #[track_caller]
    pub(crate) fn cancel_all(&mut self, reason: &str) -> u64 {
        self.ask(&script::cancel_all(&self.keys, reason))
    }

    #[track_caller]
    pub(crate) fn destroy(&mut self, of: Option<Generation>, reason: &str) -> Destroyed {
        self.ask(&script::destroy(&self.keys, of, reason))
    }

    #[track_caller]
    pub(crate) fn counts(&mut self) -> Option<LockCounts> {
        self.ask(&script::counts(&self.keys))
    }

    #[track_caller]
    pub(crate) fn inspect(&mut self) -> Option<LockState> {
        let id = (*self.id).clone();
        self.ask(&script::inspect(&self.keys)).map(|found| found.of(id))
    }

    /// The server's time.
    pub(crate) fn time(&mut self) -> StoreTime {
        let (seconds, micros): (u64, u64) =
            redis::cmd("TIME").query(&mut self.connection).expect("a time");
        StoreTime(seconds * 1_000_000 + micros)
    }

    /// How long the server keeps each key of the lock, by its suffix; none: for ever.
    pub(crate) fn keys_there(&mut self) -> Vec<(String, Option<Duration>)> {
        let state = self.keys.state().to_owned();
        let all: Vec<String> = self.keys.all().map(str::to_owned).collect();
        let mut there = Vec::new();
        for key in all {
            let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut self.connection).expect("PTTL");
            if left != -2 {
                let left = u64::try_from(left).ok().map(Duration::from_millis);
                there.push((key[state.len()..].to_owned(), left));
            }
        }
        there
    }

    /// The key of the lock with this suffix.
    pub(crate) fn key(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.keys.state())
    }

    pub(crate) fn subscribe(&self, server: &Server, n: u64) -> Channel {
        Channel::open(server, &self.space.channel(client(n)))
    }

    pub(crate) fn command(&mut self, words: &[&str]) -> Value {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        command.query(&mut self.connection).expect("an admin command")
    }
}

/// What a client would be pushed.
pub(crate) struct Channel(redis::Connection);

impl Channel {
    fn open(server: &Server, channel: &str) -> Self {
        let client = redis::Client::open(server.url()).expect("a valid URL");
        let mut connection = client.get_connection().expect("the server listens");
        redis::cmd("SUBSCRIBE").arg(channel).query::<Value>(&mut connection).expect("subscribed");
        connection.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        Self(connection)
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> Push {
        let message = self.0.recv_response().expect("a push within 5 s");
        let Value::Array(parts) = message else { panic!("{message:?} is no message") };
        let Some(Value::BulkString(payload)) = parts.last() else { panic!("no payload") };
        script::parse_push(payload).expect("a push of ours")
    }
}

pub(crate) const fn attempt(n: u64) -> AttemptId {
    AttemptId(n)
}

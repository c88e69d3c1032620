//! A network between a client and a server, which fails as it is told to.
//!
//! It reads requests and replies, so that a fault hits one of them and not some byte. Pushes to
//! subscribers pass like replies do, but are no reply to any request.

mod link;
mod request;

use std::{
    collections::BTreeMap,
    fmt, io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use self::link::Link;
pub use self::request::{Fate, Request};
use crate::port;

/// The way of what is delayed or paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client, pushes included.
    Replies,
}

/// A TCP proxy in front of one server. Dropping it closes every connection through it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

type Decide = dyn Fn(&Request) -> Fate + Send + Sync;

/// What the threads of all connections see.
struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
    /// Something changed that a thread may wait for.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    refusing: bool,
    paused: [bool; 2],
    delay: [Duration; 2],
    decide: Option<Arc<Decide>>,
    links: BTreeMap<u64, Arc<Link>>,
    accepted: u64,
    requests: BTreeMap<String, u64>,
    copies: u64,
}

impl Proxy {
    /// Starts one on a port of its own.
    ///
    /// # Panics
    /// No port is free.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(port::loopback(port::free())).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Mutex::new(State::default());
        let shared = Arc::new(Shared { target, state, changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept_all(&listener));
        Self { address, shared }
    }

    /// Where clients find it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients find it, as the URL of a server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Closes every connection that there is now.
    pub fn cut(&self) {
        let links: Vec<_> = self.shared.state().links.values().cloned().collect();
        links.iter().for_each(|link| link.close());
        self.shared.changed.notify_all();
    }

    /// Whether to close new connections at once.
    pub fn refuse(&self, refuse: bool) {
        self.shared.state().refusing = refuse;
    }

    /// Holds back all that goes this way, until [`resume`](Self::resume).
    pub fn pause(&self, way: Direction) {
        self.shared.state().paused[way as usize] = true;
    }

    /// Lets go what was held back.
    pub fn resume(&self, way: Direction) {
        self.shared.state().paused[way as usize] = false;
        self.shared.changed.notify_all();
    }

    /// Has all that begins its way from now on need this much longer.
    pub fn delay(&self, way: Direction, by: Duration) {
        self.shared.state().delay[way as usize] = by;
    }

    /// Asks `decide` about each request from now on. It runs in the thread of the connection.
    pub fn on_request(&self, decide: impl Fn(&Request) -> Fate + Send + Sync + 'static) {
        self.shared.state().decide = Some(Arc::new(decide));
    }

    /// Lets everything pass again. What was already lost or held up stays so.
    pub fn clear(&self) {
        let mut state = self.shared.state();
        (state.paused, state.delay, state.refusing) = Default::default();
        state.decide = None;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// How many requests clients have sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.state().requests.values().sum()
    }

    /// How many requests clients have sent, by command.
    #[must_use]
    pub fn commands(&self) -> BTreeMap<String, u64> {
        self.shared.state().requests.clone()
    }

    /// How many late copies the server has answered, see [`Fate::AgainAfter`].
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.shared.state().copies
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.state().links.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        // Wakes the thread that accepts, which then ends.
        let _ = TcpStream::connect(self.address);
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let state = self.state();
            if state.closed {
                return;
            }
            let refusing = state.refusing;
            drop(state);
            if let Ok(client) = client
                && !refusing
            {
                // A server that is down refuses as well: the client sees its connection closed.
                let _ = self.connect(client);
            }
        }
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut state = self.state();
        state.accepted += 1;
        let link = Arc::new(Link::new(state.accepted, client, server));
        state.links.insert(link.number(), Arc::clone(&link));
        drop(state);
        link.start(self);
        Ok(())
    }

    /// What becomes of a request, which is counted by this.
    fn fate_of(&self, request: &Request) -> Fate {
        let mut state = self.state();
        *state.requests.entry(request.name()).or_default() += 1;
        let decide = state.decide.clone();
        drop(state);
        decide.map_or(Fate::Pass, |decide| decide(request))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("target", &self.target).finish_non_exhaustive()
    }
}

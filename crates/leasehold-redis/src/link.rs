//! One connection: many requests at a time, answered in order.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::Poll,
    time::Duration,
};

use redis::{Cmd, Pipeline, RedisResult, Value, aio::MultiplexedConnection};
use tokio::{sync::Notify, task::AbortHandle};

use crate::{guard::Hold, net::Meter, pulse::Pulse, topology::Endpoint};

/// One connection, driven by the runtime that opened it.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: AbortHandle,
    meter: Arc<Meter>,
    endpoint: Endpoint,
    /// How much longer than others it may be silent: it waits for replicas.
    patience: Duration,
    pulse: Arc<Pulse>,
    end: Arc<End>,
    /// Requests that nobody has seen the answer of.
    flying: Arc<AtomicUsize>,
    requests: AtomicU64,
    /// What the server may not grant yet.
    hold: OnceLock<Hold>,
}

/// From how many requests on their way the driver lets others come along.
const CROWD: usize = 8;

/// The driver; while many send, it lets whoever is ready send first. The first of them wakes it, and it
/// would run before the next: a system call for each request.
async fn gathered(driver: impl Future<Output = ()>, flying: Arc<AtomicUsize>) {
    let (mut driver, mut waited) = (pin!(driver), false);
    poll_fn(|cx| {
        waited = !waited && flying.load(SeqCst) >= CROWD;
        if waited {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        driver.as_mut().poll(cx)
    })
    .await;
}

/// Whether a connection is over, and who waits for that.
#[derive(Debug, Default)]
pub(crate) struct End {
    reached: AtomicBool,
    notify: Notify,
}

impl End {
    fn reach(&self) {
        self.reached.store(true, SeqCst);
        self.notify.notify_waiters();
    }
}

impl Link {
    /// Drives a connection in the runtime that this is called in.
    pub(crate) fn drive(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        meter: Arc<Meter>,
        endpoint: Endpoint,
        patience: Duration,
        pulse: &Arc<Pulse>,
    ) -> Arc<Self> {
        struct ReachOnDrop(Arc<End>);
        impl Drop for ReachOnDrop {
            fn drop(&mut self) {
                self.0.reach();
            }
        }
        let end = Arc::new(End::default());
        let flying = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&flying);
        // Dropped when the driver returns, is aborted, or ends with its runtime.
        let reach = ReachOnDrop(Arc::clone(&end));
        let driver = tokio::spawn(async move {
            let _reach = reach;
            gathered(driver, others).await;
        });
        let link = Arc::new(Self {
            connection,
            driver: driver.abort_handle(),
            meter,
            endpoint,
            patience,
            pulse: Arc::clone(pulse),
            end,
            flying,
            requests: AtomicU64::new(0),
            hold: OnceLock::new(),
        });
        pulse.watch(&link);
        link
    }

    /// Sends a request and waits for its answer, in any runtime or in none. An error of the server
    /// is an answer. The wait ends with the connection at the latest, and that ends when the server
    /// has answered nothing for as long as a command may take.
    ///
    /// # Cancel safety
    /// A request that was sent takes effect all the same.
    pub(crate) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let _flight = self.take_off(1);
        let mut connection = self.connection.clone();
        self.while_it_lasts(connection.send_packed_command(command)).await
    }

    /// The same with many requests and an answer to each.
    pub(crate) async fn ask_all(&self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        let count = pipeline.len();
        let _flight = self.take_off(count);
        let mut connection = self.connection.clone();
        self.while_it_lasts(connection.send_packed_commands(pipeline, 0, count)).await
    }

    /// Has the server push what is published on this channel.
    pub(crate) async fn subscribe(&self, channel: &str) -> RedisResult<()> {
        let _flight = self.take_off(1);
        let mut connection = self.connection.clone();
        self.while_it_lasts(connection.subscribe(channel)).await
    }

    /// The answer, or an error once the connection is over. The driver itself says so only when its
    /// runtime runs, and that may be blocked by the very call that waits here.
    async fn while_it_lasts<T>(
        &self,
        answer: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let (mut answer, mut over) = (pin!(answer), pin!(self.over()));
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(answer),
            Poll::Pending => over
                .as_mut()
                .poll(cx)
                .map(|()| Err(io::Error::from(io::ErrorKind::ConnectionAborted).into())),
        })
        .await
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Which server it leads to.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Holds back grants over this connection from its beginning.
    pub(crate) fn hold_back(&self, hold: Hold) {
        let _ = self.hold.set(hold);
    }

    pub(crate) fn hold(&self) -> Option<&Hold> {
        self.hold.get()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.reached.load(SeqCst)
    }

    /// Waits until the connection is over.
    pub(crate) async fn over(&self) {
        let mut notified = pin!(self.end.notify.notified());
        // Registered first, so that an end in between is not missed.
        notified.as_mut().enable();
        if !self.is_over() {
            notified.await;
        }
    }

    /// Ends the connection: who waits for an answer is told so, as soon as its runtime runs.
    pub(crate) fn cut(&self) {
        self.end.reach();
        self.driver.abort();
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.flying.load(SeqCst) > 0
    }

    /// How often the server has been heard.
    pub(crate) fn heard(&self) -> u64 {
        self.meter.reads()
    }

    fn take_off(&self, requests: usize) -> Flight<'_> {
        self.requests.fetch_add(requests as u64, Relaxed);
        self.flying.fetch_add(1, SeqCst);
        self.pulse.quicken();
        Flight(self)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

/// A request that is on its way.
struct Flight<'a>(&'a Link);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.flying.fetch_sub(1, SeqCst);
    }
}

//! The bytes between client and server: TCP, TLS or a Unix socket, and how many have come.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use leasehold_core::{Fault, FaultKind};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use crate::{
    config::RedisConfig,
    topology::{Endpoint, Topology},
};

/// Counts how often bytes have come from the server: how it is seen to live.
#[derive(Debug, Default)]
pub(crate) struct Meter(AtomicU64);

impl Meter {
    pub(crate) fn reads(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a connection is made of.
trait Pipe: AsyncRead + AsyncWrite + Unpin + Send {}
impl<P: AsyncRead + AsyncWrite + Unpin + Send> Pipe for P {}

/// The bytes to and from one server.
pub(crate) struct Stream {
    pipe: Box<dyn Pipe>,
    meter: Arc<Meter>,
}

impl Stream {
    /// Connects, in the runtime that polls this. There is no time limit here.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        config: &RedisConfig,
        meter: Arc<Meter>,
    ) -> Result<Self, Fault> {
        let pipe: Box<dyn Pipe> = match endpoint {
            Endpoint::Socket(path) => Box::new(
                UnixStream::connect(path)
                    .await
                    .map_err(|error| unreachable(config, endpoint, error))?,
            ),
            Endpoint::Host { name, port } => {
                let tcp = TcpStream::connect((name.as_str(), *port)).await;
                let tcp = tcp.map_err(|error| unreachable(config, endpoint, error))?;
                // Requests are small and each is waited for.
                tcp.set_nodelay(true).map_err(|error| unreachable(config, endpoint, error))?;
                if config.tls { with_tls(tcp, name, config).await? } else { Box::new(tcp) }
            }
        };
        Ok(Self { pipe, meter })
    }
}

#[cfg(feature = "tls")]
async fn with_tls(
    tcp: TcpStream,
    name: &str,
    config: &RedisConfig,
) -> Result<Box<dyn Pipe>, Fault> {
    Ok(Box::new(crate::tls::connect(tcp, name, config).await?))
}

#[cfg(not(feature = "tls"))]
async fn with_tls(_: TcpStream, _: &str, config: &RedisConfig) -> Result<Box<dyn Pipe>, Fault> {
    // A configuration with `rediss://` cannot be made without the feature.
    Err(Fault::new(FaultKind::Unsupported, format!("{config} needs the feature `tls`")))
}

fn unreachable(config: &RedisConfig, endpoint: &Endpoint, error: io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => FaultKind::Denied,
        _ => FaultKind::Unavailable,
    };
    let message = match &config.topology {
        Topology::One(_) => format!("{config} cannot be reached: {error}"),
        _ => format!("{endpoint} of {config} cannot be reached: {error}"),
    };
    Fault::new(kind, message).with_source(error)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let answer = ready!(Pin::new(&mut *self.pipe).poll_read(cx, buf));
        // One writer, so no need for an atomic sum.
        self.meter.0.store(self.meter.reads().wrapping_add(1), Ordering::Relaxed);
        Poll::Ready(answer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.pipe).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.pipe).poll_shutdown(cx)
    }
}

//! Ports for servers.

use std::{
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// Below the range from which the kernel takes the ports of outgoing connections: else a client
/// that reconnects to a server that is down may be given the server's port, and connect to itself.
/// A cluster's bus has its port 10,000 above, which is outside of that range as well.
const FIRST: u16 = 10_240;
const COUNT: u16 = 12_000;
const TRIES: u32 = 1_000;

/// A port that was free a moment ago. Somebody else may take it meanwhile: who starts a server on
/// it must be ready to ask for another.
///
/// # Panics
/// None is free.
pub(crate) fn free() -> u16 {
    let random = RandomState::new();
    let candidates = (0..TRIES).map(|attempt| {
        let port = random.hash_one(attempt) % u64::from(COUNT);
        FIRST + u16::try_from(port).expect("below the count")
    });
    let mut free = candidates.filter(|&port| is_free(port));
    free.next().expect("a free port between 10,240 and 22,240")
}

fn is_free(port: u16) -> bool {
    [port, port + 10_000].into_iter().all(|port| TcpListener::bind(loopback(port)).is_ok())
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

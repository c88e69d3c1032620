//! A master, its replicas, and the sentinels that put one in the other's place.

use std::fmt::Write as _;

use crate::{Builder, Flavor, Missing, Server, proxy::Proxy, wait_until};

const QUORUM: usize = 2;
const SENTINELS: usize = 3;

/// A master, replicas and three sentinels, of which two must agree. Dropping it ends them.
///
/// A server is named by its number: 0 begins as the master, the others as its replicas. The
/// sentinels see the first master through a proxy, and so does whoever asks them for it: what
/// [`part`](Self::part) cuts. Replicas have it directly.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
    to_first: Proxy,
}

impl Sentinels {
    /// The name of the service that they watch over.
    pub const SERVICE: &str = "locks";

    /// Starts them, and returns once the sentinels know of one another and of the replicas.
    ///
    /// # Errors
    /// The program is nowhere.
    ///
    /// # Panics
    /// It does not come about within a minute.
    pub fn start(flavor: Flavor, replicas: usize) -> Result<Self, Missing> {
        let first = server(flavor).start()?;
        let to_first = Proxy::to(first.address());
        // Also as a replica it has one address: a server with two is put in its own place.
        let port = to_first.address().port().to_string();
        for setting in
            [["CONFIG", "SET", "replica-announce-port", &port].as_slice(), &["CONFIG", "REWRITE"]]
        {
            assert_eq!(first.command(setting).text(), "OK", "{setting:?}");
        }
        let of_first = format!("replicaof 127.0.0.1 {}", first.port());
        let mut servers = vec![first];
        for _ in 0..replicas {
            servers.push(server(flavor).config(&of_first).start()?);
        }
        wait_until("the replicas have what the master has", || {
            servers[1..].iter().all(|replica| {
                replica.info("replication", "master_link_status").as_deref() == Some("up")
            })
        });
        let sentinels = (0..SENTINELS)
            .map(|_| sentinel(flavor, to_first.address().port()).start())
            .collect::<Result<Vec<_>, _>>()?;
        let all = Self { servers, sentinels, to_first };
        wait_until("the sentinels know one another and the replicas", || {
            all.sentinels.iter().all(|sentinel| {
                let known = |key| about_master(sentinel, key).and_then(|value| value.parse().ok());
                known("num-other-sentinels") == Some(SENTINELS - 1)
                    && known("num-slaves") == Some(replicas)
            })
        });
        Ok(all)
    }

    /// Where they are.
    #[must_use]
    pub fn url(&self) -> String {
        let mut url = String::from("redis+sentinel://");
        for (number, sentinel) in self.sentinels.iter().enumerate() {
            let _ = write!(url, "{}{}", if number == 0 { "" } else { "," }, sentinel.address());
        }
        url + "/" + Self::SERVICE
    }

    /// One of the servers.
    #[must_use]
    pub fn server(&self, number: usize) -> &Server {
        &self.servers[number]
    }

    /// All of the servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// One of the sentinels.
    #[must_use]
    pub fn sentinel(&self, number: usize) -> &Server {
        &self.sentinels[number]
    }

    /// All of the sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The network between the first master and all who ask the sentinels for it.
    #[must_use]
    pub const fn to_first(&self) -> &Proxy {
        &self.to_first
    }

    /// Parts the first master from the sentinels and from all who ask them. It goes on as before
    /// for who speaks to it directly.
    pub fn part(&self) {
        self.to_first.refuse(true);
        self.to_first.cut();
    }

    /// Parts the first master from the sentinels, and from those who come to it anew: connections of
    /// others that are there already stay.
    ///
    /// # Panics
    /// The first master does not answer.
    pub fn part_from_sentinels(&self) {
        self.to_first.refuse(true);
        let clients = self.servers[0].command(&["CLIENT", "LIST"]).text();
        for client in clients.lines().filter(|line| line.contains(" name=sentinel-")) {
            let id = client.split(' ').next().and_then(|id| id.strip_prefix("id="));
            self.servers[0].command(&["CLIENT", "KILL", "ID", id.expect("a client has an id")]);
        }
    }

    /// Which server the sentinels take for the master, if most of them agree.
    #[must_use]
    pub fn master(&self) -> Option<usize> {
        let ports: Vec<_> = self.sentinels.iter().filter_map(port_of_master).collect();
        let agreed = ports
            .iter()
            .find(|port| ports.iter().filter(|other| other == port).count() >= QUORUM)?;
        if *agreed == self.to_first.address().port() {
            return Some(0);
        }
        self.servers.iter().position(|server| server.port() == *agreed)
    }

    /// Has the sentinels put a replica in the master's place, and returns once they have.
    ///
    /// # Panics
    /// They refuse or do not within a minute.
    pub fn fail_over(&self) -> usize {
        let before = self.master();
        let asked = &self.sentinels[0];
        let from = port_of_master(asked);
        let mut found = None;
        // Asked again until it is done: one that is on its way refuses, one that was given up begins anew.
        wait_until("there is another master", || {
            if port_of_master(asked) == from {
                asked.command(&["SENTINEL", "FAILOVER", Self::SERVICE]);
            }
            found = self.another(before);
            found.is_some()
        });
        found.expect("just found")
    }

    /// Returns once most sentinels take another server for the master, and it is one. Which.
    ///
    /// # Panics
    /// There is none within a minute.
    pub fn wait_for_another(&self, than: Option<usize>) -> usize {
        let mut found = None;
        wait_until("there is another master", || {
            found = self.another(than);
            found.is_some()
        });
        found.expect("just found")
    }

    fn another(&self, than: Option<usize>) -> Option<usize> {
        self.master().filter(|master| Some(*master) != than && self.is_master(*master))
    }

    /// Whether a server is a master, as it says itself.
    #[must_use]
    pub fn is_master(&self, number: usize) -> bool {
        let role = self.servers[number].try_command(&["ROLE"]);
        role.is_ok_and(|role| role.items().first().is_some_and(|role| role.text() == "master"))
    }
}

fn server(flavor: Flavor) -> Builder {
    Server::builder(flavor).config("repl-diskless-sync yes").config("repl-diskless-sync-delay 0")
}

fn sentinel(flavor: Flavor, master: u16) -> Builder {
    let service = Sentinels::SERVICE;
    Server::builder(flavor)
        .sentinel()
        .config(&format!("sentinel monitor {service} 127.0.0.1 {master} {QUORUM}"))
        .config(&format!("sentinel down-after-milliseconds {service} 500"))
        .config(&format!("sentinel failover-timeout {service} 1000"))
}

/// What a sentinel says of the master.
fn about_master(sentinel: &Server, key: &str) -> Option<String> {
    let said = sentinel.try_command(&["SENTINEL", "MASTER", Sentinels::SERVICE]).ok()?;
    let mut pairs = said.items().chunks_exact(2);
    pairs.find(|pair| pair[0].text() == key).map(|pair| pair[1].text())
}

fn port_of_master(sentinel: &Server) -> Option<u16> {
    let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Sentinels::SERVICE];
    sentinel.try_command(&asked).ok()?.items().get(1)?.text().parse().ok()
}

//! Each fault of the proxy hits what it should and nothing else.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use test_servers::{
    Flavor, Server,
    proxy::{Direction, Fate, Proxy, Request},
    wait_until,
};

pub(crate) const TESTS: &[crate::Test] = &[
    ("requests_pass_and_are_counted", requests_pass_and_are_counted),
    ("a_cut_closes_what_is_open", a_cut_closes_what_is_open),
    ("a_refusing_proxy_closes_what_is_new", a_refusing_proxy_closes_what_is_new),
    ("one_way_can_be_paused", one_way_can_be_paused),
    ("a_delayed_way_takes_longer", a_delayed_way_takes_longer),
    ("a_lost_request_never_arrives", a_lost_request_never_arrives),
    ("a_lost_reply_is_one_to_what_was_done", a_lost_reply_is_one_to_what_was_done),
    ("a_cut_after_the_server_acted", a_cut_after_the_server_acted),
    (
        "a_delayed_reply_holds_up_its_connection_alone",
        a_delayed_reply_holds_up_its_connection_alone,
    ),
    ("a_copy_arrives_again_later", a_copy_arrives_again_later),
    ("pushes_are_no_replies", pushes_are_no_replies),
    ("a_replica_follows_its_master", a_replica_follows_its_master),
];

/// Long enough that a busy machine does not take so long by itself.
const LONG: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
/// What is waited for in vain.
const SHORT: Duration = Duration::from_millis(50);

struct Client(TcpStream);

impl Client {
    fn of(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("positive");
        Self(stream)
    }

    fn send(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.write_all(request.as_bytes()).expect("is open");
    }

    /// The next bytes, as many as this text has.
    fn expect(&mut self, text: &str) {
        let mut bytes = vec![0; text.len()];
        self.0.read_exact(&mut bytes).expect("answers");
        assert_eq!(String::from_utf8_lossy(&bytes), text);
    }

    fn ask(&mut self, line: &str, answer: &str) {
        self.send(line);
        self.expect(answer);
    }

    fn hears_nothing(&mut self) {
        self.0.set_read_timeout(Some(SHORT)).expect("positive");
        let heard = self.0.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::WouldBlock), "something came");
        self.0.set_read_timeout(Some(PATIENCE)).expect("positive");
    }

    fn is_closed(&mut self) {
        let heard = self.0.read(&mut [0]);
        let closed = match &heard {
            Ok(len) => *len == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        assert!(closed, "{heard:?}");
    }
}

fn start(flavor: Flavor) -> (Server, Proxy) {
    let server = Server::start(flavor).expect("installed");
    let proxy = Proxy::to(server.address());
    (server, proxy)
}

/// This fate for a command, none for others.
fn only(name: &'static str, fate: Fate) -> impl Fn(&Request) -> Fate {
    move |request| if request.name() == name { fate } else { Fate::Pass }
}

fn requests_pass_and_are_counted(flavor: Flavor) {
    let (_server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    client.ask("set a 1", "+OK\r\n");
    client.send("GET a");
    client.send("GET b");
    client.expect("$1\r\n1\r\n$-1\r\n");
    assert_eq!(proxy.requests(), 3);
    assert_eq!(proxy.commands(), [("GET".into(), 2), ("SET".into(), 1)].into());
    assert_eq!(proxy.connections(), 1);
    drop(client);
    wait_until("the connection is closed", || proxy.connections() == 0);
}

fn a_cut_closes_what_is_open(flavor: Flavor) {
    let (_server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    client.ask("PING", "+PONG\r\n");
    proxy.cut();
    client.is_closed();
    Client::of(proxy.address()).ask("PING", "+PONG\r\n");
}

fn a_refusing_proxy_closes_what_is_new(flavor: Flavor) {
    let (_server, proxy) = start(flavor);
    let mut before = Client::of(proxy.address());
    before.ask("PING", "+PONG\r\n");
    proxy.refuse(true);
    Client::of(proxy.address()).is_closed();
    before.ask("PING", "+PONG\r\n");
    proxy.clear();
    Client::of(proxy.address()).ask("PING", "+PONG\r\n");
}

fn one_way_can_be_paused(flavor: Flavor) {
    let (server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    proxy.pause(Direction::Requests);
    client.send("SET a 1");
    client.hears_nothing();
    assert_eq!(server.command(&["GET", "a"]).text(), "");
    proxy.resume(Direction::Requests);
    client.expect("+OK\r\n");

    proxy.pause(Direction::Replies);
    client.send("SET a 2");
    wait_until("the server acted", || server.command(&["GET", "a"]).text() == "2");
    client.hears_nothing();
    proxy.resume(Direction::Replies);
    client.expect("+OK\r\n");
}

fn a_delayed_way_takes_longer(flavor: Flavor) {
    let (_server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    client.ask("PING", "+PONG\r\n");
    for way in [Direction::Requests, Direction::Replies] {
        proxy.delay(way, LONG);
        let begun = Instant::now();
        // Together they take as long as one: it is the way that is long.
        for _ in 0..100 {
            client.send("PING");
        }
        client.expect(&"+PONG\r\n".repeat(100));
        assert!((LONG..LONG * 50).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        proxy.delay(way, Duration::ZERO);
    }
}

fn a_lost_request_never_arrives(flavor: Flavor) {
    let (server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    proxy.on_request(only("SET", Fate::Lose));
    client.send("SET a 1");
    client.send("PING");
    client.hears_nothing();
    Client::of(proxy.address()).ask("GET a", "$-1\r\n");
    assert_eq!(server.command(&["GET", "a"]).text(), "");
    assert_eq!(proxy.commands()["SET"], 1);
}

fn a_lost_reply_is_one_to_what_was_done(flavor: Flavor) {
    let (server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    proxy.on_request(only("SET", Fate::LoseReply));
    client.ask("PING", "+PONG\r\n");
    client.send("SET a 1");
    wait_until("the server acted", || server.command(&["GET", "a"]).text() == "1");
    client.send("PING");
    client.hears_nothing();
    Client::of(proxy.address()).ask("PING", "+PONG\r\n");
}

fn a_cut_after_the_server_acted(flavor: Flavor) {
    let (server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    proxy.on_request(only("SET", Fate::CutAfter));
    client.ask("PING", "+PONG\r\n");
    client.send("SET a 1");
    client.is_closed();
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

fn a_delayed_reply_holds_up_its_connection_alone(flavor: Flavor) {
    let (_server, proxy) = start(flavor);
    let mut client = Client::of(proxy.address());
    proxy.on_request(only("SET", Fate::DelayReply(LONG)));
    let begun = Instant::now();
    client.send("SET a 1");
    client.send("PING");
    // It is done, and elsewhere that can be seen, before the reply comes.
    wait_until("the server acted", || {
        let mut other = Client::of(proxy.address());
        other.send("EXISTS a");
        let mut answer = [0; 4];
        other.0.read_exact(&mut answer).expect("answers");
        &answer == b":1\r\n"
    });
    client.expect("+OK\r\n+PONG\r\n");
    assert!(begun.elapsed() >= LONG);
}

fn a_copy_arrives_again_later(flavor: Flavor) {
    let server = Server::builder(flavor).password("secret").start().expect("installed");
    let proxy = Proxy::to(server.address());
    let mut client = Client::of(proxy.address());
    proxy.on_request(only("INCR", Fate::AgainAfter(LONG)));
    client.ask("AUTH secret", "+OK\r\n");
    client.ask("SELECT 1", "+OK\r\n");
    client.ask("INCR a", ":1\r\n");
    client.ask("GET a", "$1\r\n1\r\n");
    wait_until("the copy arrived", || proxy.copies() == 1);
    client.ask("GET a", "$1\r\n2\r\n");
}

fn pushes_are_no_replies(flavor: Flavor) {
    let (server, proxy) = start(flavor);
    let pings = only("PING", Fate::CutAfter);
    let mut old = Client::of(proxy.address());
    old.ask("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    let mut new = Client::of(proxy.address());
    new.send("HELLO 3");
    // A map whose content differs: read until the answer to what follows.
    new.send("ECHO hello-is-over");
    let mut said = Vec::new();
    while !said.ends_with(b"hello-is-over\r\n") {
        let mut byte = [0];
        new.0.read_exact(&mut byte).expect("answers");
        said.push(byte[0]);
    }
    new.ask("SUBSCRIBE c", ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    proxy.on_request(pings);
    assert_eq!(server.command(&["PUBLISH", "c", "x"]).int(), 2);
    old.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    new.expect(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    new.ask("GET a", "_\r\n");
    new.send("PING");
    new.is_closed();
}

/// What goes to a replica is neither requests nor replies.
fn a_replica_follows_its_master(flavor: Flavor) {
    let start = || {
        let builder = Server::builder(flavor).config("repl-diskless-sync yes");
        builder.config("repl-diskless-sync-delay 0").start().expect("installed")
    };
    let (master, replica) = (start(), start());
    let proxy = Proxy::to(master.address());
    // More than one piece, so that a transfer that stands still is seen.
    let long = "x".repeat(1_000_000);
    assert_eq!(master.command(&["SET", "before", &long]).text(), "OK");
    let port = proxy.address().port().to_string();
    assert_eq!(replica.command(&["REPLICAOF", "127.0.0.1", &port]).text(), "OK");
    let has = |key: &str| replica.command(&["EXISTS", key]).int() == 1;
    wait_until("the replica has what was there", || has("before"));
    assert_eq!(master.command(&["SET", "after", &long]).text(), "OK");
    wait_until("the replica has what came later", || has("after"));
}

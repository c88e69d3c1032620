//! Servers start, answer, stop, forget and end with their handles.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use test_servers::{Data, Flavor, Server, wait_until};

pub(crate) const TESTS: &[crate::Test] = &[
    ("answers_as_what_it_is", answers_as_what_it_is),
    ("many_start_at_once_on_ports_of_their_own", many_start_at_once_on_ports_of_their_own),
    ("a_restart_keeps_or_forgets_as_it_is_told", a_restart_keeps_or_forgets_as_it_is_told),
    ("what_is_persistent_outlives_a_kill", what_is_persistent_outlives_a_kill),
    ("a_paused_server_answers_once_it_is_resumed", a_paused_server_answers_once_it_is_resumed),
    ("passwords_and_users_are_asked_for", passwords_and_users_are_asked_for),
    ("a_full_memory_refuses_writes", a_full_memory_refuses_writes),
    ("nothing_is_left_of_a_dropped_server", nothing_is_left_of_a_dropped_server),
    ("a_killed_test_takes_its_servers_along", a_killed_test_takes_its_servers_along),
];

fn start(flavor: Flavor) -> Server {
    Server::start(flavor).expect("installed")
}

fn answers_as_what_it_is(flavor: Flavor) {
    let server = start(flavor);
    assert_eq!(server.command(&["SET", "a", "1"]).text(), "OK");
    let pid = server.info("server", "process_id").expect("says it");
    assert_eq!(pid, server.pid().to_string(), "another server answers");
    let (key, version) = match flavor {
        Flavor::Redis70 => ("redis_version", "7.0."),
        Flavor::Redis62 => ("redis_version", "6.2."),
        Flavor::Valkey => ("valkey_version", "9.1."),
    };
    let said = server.info("server", key).expect("says it");
    assert!(said.starts_with(version), "{said}");
    let port = server.command(&["CONFIG", "GET", "port"]);
    assert_eq!(port.items()[1].text(), server.port().to_string());
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
}

fn many_start_at_once_on_ports_of_their_own(flavor: Flavor) {
    let starting: Vec<_> = (0..6).map(|_| thread::spawn(move || start(flavor))).collect();
    let servers: Vec<_> = starting.into_iter().map(|one| one.join().expect("starts")).collect();
    for (index, server) in servers.iter().enumerate() {
        server.command(&["SET", "index", &index.to_string()]);
    }
    for (index, server) in servers.iter().enumerate() {
        assert_eq!(server.command(&["GET", "index"]).int(), i64::try_from(index).expect("small"));
    }
}

fn a_restart_keeps_or_forgets_as_it_is_told(flavor: Flavor) {
    for persistence in [false, true] {
        let server = Server::builder(flavor).persistence(persistence).start().expect("starts");
        let (port, first) = (server.port(), server.pid());
        server.command(&["SET", "a", "1"]);
        server.restart(Data::Kept);
        assert_eq!(server.port(), port);
        assert_ne!(server.pid(), first);
        assert_eq!(server.command(&["GET", "a"]).text(), "1", "{flavor:?} {persistence}");
        server.restart(Data::Lost);
        assert_eq!(server.command(&["GET", "a"]).text(), "", "{flavor:?} {persistence}");
    }
}

fn what_is_persistent_outlives_a_kill(flavor: Flavor) {
    let server = Server::builder(flavor).persistence(true).start().expect("starts");
    server.command(&["SET", "a", "1"]);
    server.kill();
    assert!(server.try_command(&["PING"]).is_err());
    server.start_again();
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
    server.stop();
    assert!(server.try_command(&["PING"]).is_err());
    server.start_again();
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

fn a_paused_server_answers_once_it_is_resumed(flavor: Flavor) {
    let server = start(flavor);
    server.pause();
    let mut stream = TcpStream::connect(server.address()).expect("the kernel accepts");
    stream.write_all(b"PING\r\n").expect("the kernel takes it");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("positive");
    let mut answer = [0; 7];
    assert!(stream.read_exact(&mut answer).is_err(), "a stopped process answers");
    server.resume();
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("positive");
    stream.read_exact(&mut answer).expect("answers");
    assert_eq!(&answer, b"+PONG\r\n");
}

fn passwords_and_users_are_asked_for(flavor: Flavor) {
    let odd = r#"p=#@/:% "\'x"#;
    let server = Server::builder(flavor).password(odd).start().expect("starts");
    assert_eq!(server.command(&["PING"]).text(), "PONG");
    assert_eq!(over_tcp(&server, &["PING"]), "-NOAUTH Authentication required.");
    assert_eq!(over_tcp(&server, &["AUTH", odd]), "+OK");

    let acl = "user app on >secret ~app:* resetchannels +@all\nuser default off";
    let server = Server::builder(flavor).acl_file(acl).start().expect("starts");
    assert_eq!(server.command(&["SET", "other", "1"]).text(), "OK", "the administrator may");
    assert_eq!(over_tcp(&server, &["AUTH", "app", "secret"]), "+OK");
    assert_eq!(
        server.url_with("a:b", "é/"),
        format!("redis://a%3Ab:%C3%A9%2F@{}", server.address())
    );
}

fn a_full_memory_refuses_writes(flavor: Flavor) {
    let server = Server::builder(flavor).max_memory(1).start().expect("starts");
    let reply = server.command(&["SET", "a", "1"]);
    assert!(reply.is_error() && reply.text().starts_with("OOM"), "{reply:?}");
}

pub(crate) fn a_fake_clock_steps_by_hours(flavor: Flavor) {
    let step = 7_200;
    {
        let server = Server::builder(flavor).fake_clock().start().expect("installed");
        let before = server.command(&["TIME"]).items()[0].int();
        server.step_clock(step);
        let after = server.command(&["TIME"]).items()[0].int();
        assert!((step..step + 60).contains(&(after - before)), "{before} {after}");
        server.step_clock(-step);
        let after = server.command(&["TIME"]).items()[0].int();
        assert!((-step..60 - step).contains(&(after - before)), "{before} {after}");
    }
}

fn nothing_is_left_of_a_dropped_server(flavor: Flavor) {
    let server = start(flavor);
    let (pid, socket) = (server.pid(), server.socket());
    assert!(socket.exists());
    drop(server);
    assert!(!process(pid).exists() && !socket.parent().expect("a folder").exists());
}

/// What this program does when it is started again by the test below, and killed.
pub(crate) fn hold(name: &str) {
    let flavor = Flavor::ALL.into_iter().find(|flavor| flavor.name() == name);
    let server = start(flavor.expect("a name that the test gave"));
    println!("server {} {}", server.pid(), server.socket().display());
    loop {
        thread::park();
    }
}

fn a_killed_test_takes_its_servers_along(flavor: Flavor) {
    let mut test = Command::new(env::current_exe().expect("this program"))
        .env(crate::HOLD, flavor.name())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let mut line = String::new();
    let mut output = BufReader::new(test.stdout.take().expect("piped"));
    output.read_line(&mut line).expect("says which server");
    let mut words = line.trim_end().split(' ').skip(1);
    let pid = words.next().and_then(|pid| pid.parse().ok()).expect("a number");
    let socket = PathBuf::from(words.next().expect("a path"));
    assert!(process(pid).exists() && socket.exists());
    test.kill().expect("runs");
    test.wait().expect("runs");
    let folder = socket.parent().expect("a folder");
    wait_until("nothing is left", || !process(pid).exists() && !folder.exists());
}

fn process(pid: u32) -> PathBuf {
    format!("/proc/{pid}").into()
}

/// The first line of the answer to a request over TCP, as anybody.
fn over_tcp(server: &Server, arguments: &[&str]) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("listens");
    let mut request = format!("*{}\r\n", arguments.len());
    for argument in arguments {
        request += &format!("${}\r\n{argument}\r\n", argument.len());
    }
    stream.write_all(request.as_bytes()).expect("listens");
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("answers");
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

//! Tickets and tokens are told by `acquire` on stdout, and by nothing else.

use std::process::Output;

use crate::common::{PROGRAM, Store, stderr, stdout};

trials! {
    no_command_tells_a_token,
}

/// What was said, with the secrets to look for in it.
struct Said {
    texts: Vec<String>,
    secrets: Vec<String>,
}

impl Said {
    fn note(&mut self, output: &Output) -> Option<i32> {
        self.texts.push(stdout(output));
        self.texts.push(stderr(output));
        output.status.code()
    }

    /// A ticket that was acquired, of which the token is the secret.
    fn acquired(&mut self, ticket: &str) {
        let token = ticket.rsplit('/').next().expect("a ticket has parts");
        assert_eq!(token.len(), 32, "the test knows what a token is");
        self.secrets.push(token.to_owned());
    }
}

/// Runs `leasehold -v ARGS…` with everything on that could make it talk.
fn loud(store: &Store, args: &[&str]) -> Output {
    let (command, rest) = args.split_first().expect("a command");
    let mut command = store.leasehold(&[command, "-v"]);
    command.args(rest).env("RUST_LOG", "trace").env("RUST_BACKTRACE", "full").output().unwrap()
}

fn acquire(store: &Store, said: &mut Said, args: &[&str]) -> String {
    let output = loud(store, &[&["acquire"], args].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    said.texts.push(stderr(&output));
    let ticket = stdout(&output).trim().to_owned();
    said.acquired(&ticket);
    ticket
}

fn no_command_tells_a_token() {
    let store = Store::new();
    let mut said = Said { texts: Vec::new(), secrets: Vec::new() };
    let ticket = acquire(&store, &mut said, &["n", "--ttl", "10m", "--label", "work"]);
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["list", "--all"],
        &["show", "n"],
        &["show", "n", "--json"],
    ] {
        assert_eq!(said.note(&loud(&store, args)), Some(0), "{args:?}");
    }
    for args in [
        // A waiter is told what stands in its way.
        &["run", "n", "--wait", "50ms", "--", "true"][..],
        &["acquire", "n", "--ttl", "1s", "--wait", "50ms"],
        &["acquire", "n", "--ttl", "1s", "--no-wait"],
    ] {
        assert_eq!(said.note(&loud(&store, args)), Some(75), "{args:?}");
    }
    assert_eq!(said.note(&loud(&store, &["renew", &ticket])), Some(0));
    assert_eq!(said.note(&loud(&store, &["renew", &ticket, "--ttl", "5m"])), Some(0));
    assert_eq!(said.note(&loud(&store, &["adopt", &ticket, "--", "true"])), Some(0));
    for args in [&["renew", &ticket][..], &["release", &ticket], &["adopt", &ticket, "--", "true"]]
    {
        assert_eq!(said.note(&loud(&store, args)), Some(79), "{args:?}");
    }
    let ticket = acquire(&store, &mut said, &["n", "--permits", "2", "--ttl", "10m"]);
    assert_eq!(said.note(&loud(&store, &["release", &ticket])), Some(0));
    assert_eq!(said.note(&loud(&store, &["release", &ticket, &ticket])), Some(64));

    // What a command is given is its own; only the file knows it here.
    let file = store.dir().join("ticket");
    let keep = format!("echo $LEASEHOLD_TICKET >'{}'", file.display());
    let lose = format!("{keep}; '{PROGRAM}' release -v");
    let nested = format!("{keep}; '{PROGRAM}' list; '{PROGRAM}' renew -v");
    for (args, script, code) in [
        (&["run", "n"][..], &nested, 0),
        (&["run", "n", "--ttl", "10s"], &nested, 0),
        (&["run", "n", "--ttl", "10s"], &lose, 79),
    ] {
        let output = loud(&store, &[args, &["--", "sh", "-c", script]].concat());
        assert_eq!(said.note(&output), Some(code), "{}", stderr(&output));
        said.acquired(std::fs::read_to_string(&file).unwrap().trim());
    }

    for text in &said.texts {
        for secret in &said.secrets {
            assert!(!text.contains(secret.as_str()), "a token is told: {text}");
        }
    }
    assert_eq!(said.secrets.len(), 5);
    assert!(said.texts.iter().any(|text| text.contains("(work)")), "nothing was said at all");
}

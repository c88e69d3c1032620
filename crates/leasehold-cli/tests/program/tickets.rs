//! Where a ticket is read from, and what becomes of one that is none.

use crate::common::{SECTION, Store, stderr, stdout};

trials! {
    from_stdin_and_from_the_environment,
    no_ticket_at_all,
    what_follows_the_ticket_on_stdin_is_the_command_s,
    what_is_no_ticket_is_refused_and_not_repeated,
    a_ticket_in_the_wrong_place_is_not_repeated,
    a_url_in_the_wrong_place_keeps_its_password,
    a_store_that_is_not_there_has_no_grants_and_is_not_made,
    a_name_that_no_environment_can_hold_is_refused_before_the_grant_is_touched,
}

const WRONG: [&str; 6] = [
    "",
    "hunter2",
    "lh1/default/mutex/hunter2",
    "lh1/default/lock/n/hunter2",
    "lh9/default/mutex/n/hunter2",
    "lh1/default/mutex/n/%hunter2",
];

fn from_stdin_and_from_the_environment() {
    let store = Store::new();
    let ticket = store.ticket(&["n", "--ttl", "10m"]);
    for line in [format!("{ticket}\n"), ticket.clone(), format!("{ticket}\r\n")] {
        let output = store.output_of(&["renew", "-"], &line);
        assert!(output.status.success(), "{output:?}");
    }
    let mut renew = store.leasehold(&["renew"]);
    assert!(renew.env("LEASEHOLD_TICKET", &ticket).status().unwrap().success());
    // The argument wins, also an empty one: the ticket of another grant is not meant.
    for args in [&["release", "-"][..], &["release", ""], &["release", "lh1/default/mutex/n/x"]] {
        let mut release = store.leasehold(args);
        let output = release.env("LEASEHOLD_TICKET", &ticket).output().unwrap();
        assert!(matches!(output.status.code(), Some(64 | 79)), "{args:?}: {output:?}");
        assert_eq!(store.counts(), (1, 0), "{args:?}");
    }
    let mut release = store.leasehold(&["release"]);
    assert!(release.env("LEASEHOLD_TICKET", &ticket).status().unwrap().success());
    assert_eq!(store.counts(), (0, 0));
}

fn no_ticket_at_all() {
    let store = Store::new();
    for variable in [None, Some("")] {
        let mut release = store.leasehold(&["release"]);
        release.envs(variable.map(|empty| ("LEASEHOLD_TICKET", empty)));
        let output = release.output().unwrap();
        let why = "leasehold: there is no ticket; LEASEHOLD_TICKET is not set\n";
        assert_eq!((output.status.code(), stderr(&output)), (Some(64), why.to_owned()));
    }
}

fn what_follows_the_ticket_on_stdin_is_the_command_s() {
    let store = Store::new();
    let ticket = store.ticket(&["n", "--ttl", "10m"]);
    let output = store.output_of(&["adopt", "-", "--", "cat"], &format!("{ticket}\none\ntwo"));
    assert_eq!(stdout(&output), "one\ntwo", "{}", stderr(&output));
}

fn what_is_no_ticket_is_refused_and_not_repeated() {
    let store = Store::new();
    for text in WRONG {
        for command in [&["renew"][..], &["release"], &["adopt"]] {
            let rest = if command == ["adopt"] { &["--", "echo", "ran"][..] } else { &[] };
            let output = store.output(&[command, &[text], rest].concat());
            assert_eq!(output.status.code(), Some(64), "{text:?}: {output:?}");
            assert_eq!(stdout(&output), "");
            let errors = stderr(&output);
            assert!(errors.contains("ticket") && !errors.contains("hunter2"), "{errors}");
        }
        let output = store.output_of(&["release", "-"], text);
        assert_eq!(output.status.code(), Some(64), "{text:?}: {output:?}");
        assert!(!stderr(&output).contains("hunter2"), "{output:?}");
    }
    let endless = "x".repeat(1 << 20);
    assert_eq!(store.output_of(&["release", "-"], &endless).status.code(), Some(64));
    assert!(!store.database().exists(), "a wrong ticket has made a store");
}

fn a_ticket_in_the_wrong_place_is_not_repeated() {
    let store = Store::new();
    let ticket = store.ticket(&["n", "--ttl", "10m"]);
    let ttl = format!("--ttl={ticket}");
    for args in [
        &["release", "x", &ticket][..],
        &["list", &ticket],
        &[&ticket],
        &["renew", &ttl],
        // It would be the name of a lock, for all to see.
        &["acquire", &ticket, "--ttl", "5s"],
        &["run", &ticket, "--", "true"],
        &["show", &ticket],
    ] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let errors = stderr(&output);
        assert!(errors.contains("(a ticket)") && !errors.contains(&ticket), "{errors}");
    }
}

fn a_url_in_the_wrong_place_keeps_its_password() {
    let store = Store::new();
    let url = "redis://u:hun@ter2@h";
    for args in [
        &[url, "list"][..],
        &["list", url],
        &["list", "--", url],
        &["list", "--log-format", url],
        &["run", "n", "--ttl", url, "--", "true"],
    ] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let errors = stderr(&output);
        assert!(errors.contains("://***@h") && !errors.contains("ter2"), "{errors}");
    }
}

fn a_store_that_is_not_there_has_no_grants_and_is_not_made() {
    let store = Store::new();
    let ticket = "lh1/default/mutex/n/0123";
    for args in [&["renew", ticket][..], &["release", ticket], &["adopt", ticket, "--", "true"]] {
        assert_eq!(store.output(args).status.code(), Some(79), "{args:?}");
    }
    assert!(!store.database().exists());
}

fn a_name_that_no_environment_can_hold_is_refused_before_the_grant_is_touched() {
    let store = Store::new();
    let mut holder = store.start("run", &["n"], SECTION);
    holder.is_in();
    let output = store.output(&["adopt", "lh1/default/mutex/a%00b/x", "--", "echo", "ran"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(64), String::new()));
    assert_eq!(holder.finish(), Some(0));
}

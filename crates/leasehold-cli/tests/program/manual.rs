//! The manual, the page in the docs that is made of it, and completions.

use std::{fs, path::Path};

use crate::common::{PROGRAM, Store, stderr, stdout};

trials! {
    the_page_in_the_docs_is_not_stale,
    the_page_for_man_is_what_man_takes,
    completions_know_commands_and_options,
    typos_are_answered_with_the_right_word,
    the_short_help_is_short_and_the_long_one_has_examples,
    no_colour_where_nobody_sees_it,
}

fn the_page_in_the_docs_is_not_stale() {
    let store = Store::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let made = stdout(&store.output(&["man", "--markdown"]));
    let kept = fs::read_to_string(&page).unwrap_or_default();
    assert!(
        kept == made,
        "docs/cli.md is stale: cargo run -q --bin leasehold -- man --markdown >docs/cli.md"
    );
}

fn the_page_for_man_is_what_man_takes() {
    let store = Store::new();
    let page = stdout(&store.output(&["man"]));
    assert!(page.starts_with(".TH LEASEHOLD 1 "), "{page}");
    for section in [".SH NAME", ".SH COMMANDS", ".SS run", ".SS top", ".SH EXIT CODES"] {
        assert!(page.contains(section), "{section}");
    }
    assert!(!page.contains("__"), "hidden commands are for nobody");
}

fn completions_know_commands_and_options() {
    let store = Store::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = store.output(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let text = stdout(&output);
        assert!(text.contains("at-most-once-per") && text.contains("doctor"), "{shell}");
        assert!(!text.contains("__exec") && !text.contains("__guard"), "{shell}");
    }
    let script = store.dir().join("completion");
    fs::write(&script, stdout(&store.output(&["completions", "bash"]))).unwrap();
    let check = std::process::Command::new("bash").arg("-n").arg(&script).status();
    assert!(check.is_ok_and(|status| status.success()), "bash reads it");
    let output = store.output(&["completions", "bsh"]);
    assert!(stderr(&output).contains("'bash'"), "{output:?}");
}

fn typos_are_answered_with_the_right_word() {
    let store = Store::new();
    for (args, right) in [
        (&["lsit"][..], "'list'"),
        (&["rnu", "n"], "'run'"),
        (&["tpo"], "'top'"),
        (&["run", "n", "--permit", "2", "--", "true"], "'--permits'"),
        (&["acquire", "n", "--tll", "1s"], "'--ttl'"),
        (&["top", "--sort", "waitng"], "'waiting'"),
    ] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert!(stderr(&output).contains(right), "{args:?}: {}", stderr(&output));
    }
}

fn the_short_help_is_short_and_the_long_one_has_examples() {
    let store = Store::new();
    for command in [
        "run",
        "acquire",
        "renew",
        "release",
        "adopt",
        "list",
        "show",
        "wait",
        "watch",
        "top",
        "cancel",
        "break",
        "doctor",
        "bench",
        "completions",
        "man",
    ] {
        let short = stdout(&store.output(&[command, "-h"]));
        let long = stdout(&store.output(&[command, "--help"]));
        assert!(!short.contains("Examples:"), "{command}: {short}");
        assert!(long.contains("Examples:\n    "), "{command}");
        assert!(long.contains("Exit codes:") && long.len() > short.len(), "{command}");
    }
}

fn no_colour_where_nobody_sees_it() {
    let store = Store::new();
    for args in
        [&["list"][..], &["doctor"], &["lsit"], &["--help"], &["run", "n", "-v", "--", "true"]]
    {
        let output = store.output(args);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
    }
    let mut session = crate::session::Session::start(&store, &[PROGRAM, "doctor"]);
    session.shows("\x1b[32mok");
    assert_eq!(session.end(), Some(0));
    let mut plain =
        crate::session::Session::start(&store, &["env", "NO_COLOR=1", PROGRAM, "doctor"]);
    let text = plain.shows("hand-off");
    assert!(!text.contains('\x1b'), "{text}");
    plain.end();
}

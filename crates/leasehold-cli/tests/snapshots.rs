//! What every command says, to the byte: exit code, stdout and stderr, for people and as JSON.
//!
//! A file of `tests/snapshots/STORE` is a session on a store of its own, one of `every` on each of
//! them, to the same byte. A step a line:
//!
//! - `$ ARGS` runs the program to its end; `< TEXT` after them is its stdin.
//! - `^ ARGS` does so on a terminal, and types `q` when it says how it ends.
//! - `% ARGS` does so, too, and shows only how its long output begins and ends.
//! - `& ARGS` starts a `run` and waits until its command is in; `+ ARGS` starts one that queues.
//! - `* ARGS` starts the program, and `> N` shows one line of the N-th that was started.
//! - `@ FILE TEXT` writes a file beside the store.
//! - `. N` lets the command of the N-th end, `x N` interrupts it, and `! N` waits for its end.
//!
//! TICKET is the last ticket that was printed, DIR the directory of the store. What follows a line is what came of it. What differs
//! from run to run (pids, times, tokens) is replaced by words. `LEASEHOLD_SNAPSHOTS=write cargo test
//! -p leasehold-cli --test snapshots` writes the files anew, to be read before they are committed.

#[path = "program/common.rs"]
mod common;
#[path = "snapshots/plain.rs"]
mod plain;
#[path = "program/session.rs"]
mod session;

use std::{
    env,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use common::{PROGRAM, Section, Store, eventually, stderr, stdout};
use libtest_mimic::{Arguments, Failed, Trial};
use plain::plain;
use rustix::process::Signal;
use session::Session;
use test_servers::{Flavor, Server};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // One for all sessions, each under a prefix of its own. Without one they are listed as ignored.
    let server = if arguments.list { None } else { Server::start(Flavor::Redis70).ok() };
    let url = server.as_ref().map(Server::url);
    let of = |kind: &str| files(kind).into_iter().chain(files("every"));
    let mut trials: Vec<Trial> = of("sqlite")
        .map(|(name, path)| {
            Trial::test(format!("sqlite::{name}"), move || compare(&path, Store::new()))
        })
        .collect();
    trials.extend(of("redis").map(|(name, path)| {
        let (url, prefix) = (url.clone().unwrap_or_default(), name.clone());
        let play = move || compare(&path, Store::on_server(&url, &prefix));
        Trial::test(format!("redis::{name}"), play)
            .with_ignored_flag(!arguments.list && server.is_none())
    }));
    common::run_with(arguments, trials)
}

/// The sessions on one kind of store, by name.
fn files(kind: &str) -> Vec<(String, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(kind);
    let name = |path: &Path| path.file_stem().expect("a file").to_string_lossy().into_owned();
    let entries = fs::read_dir(directory).expect("there are snapshots");
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).map(|path| (name(&path), path)).collect();
    files.sort();
    assert!(!files.is_empty(), "there are snapshots");
    files
}

fn compare(path: &Path, store: Store) -> Result<(), Failed> {
    let kept = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let made = play(&kept, &store);
    if env::var("LEASEHOLD_SNAPSHOTS").is_ok_and(|wish| wish == "write") {
        return Ok(fs::write(path, made)?);
    }
    if kept == made {
        return Ok(());
    }
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    let at = differs.unwrap_or_else(|| kept.lines().count().min(made.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
    Err(format!("line {}:\nkept: {}\nmade: {}\n\n{made}", at + 1, line(&kept), line(&made)).into())
}

/// The session anew, with what came of each line.
fn play(session: &str, store: &Store) -> String {
    let mut stage =
        Stage { store, sections: Vec::new(), ticket: String::new(), made: String::new() };
    for line in session.lines() {
        let Some((what, rest)) = line.split_once(' ') else { continue };
        match what {
            "#" => stage.say(line),
            "$" | "%" | "^" | "&" | "+" | "*" | ">" | "@" | "." | "x" | "!" => {
                stage.say("");
                stage.say(line);
                stage.step(what, rest);
            }
            // What came of the last run.
            _ => {}
        }
    }
    stage.made
}

struct Stage<'a> {
    store: &'a Store,
    sections: Vec<Section>,
    ticket: String,
    made: String,
}

impl Stage<'_> {
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.made, "{}", line.trim_end());
    }

    fn show(&mut self, what: &str, text: &str, command: &str) {
        for line in plain(self.store, text, command).lines() {
            self.say(&format!("{what}: {line}"));
        }
    }

    fn step(&mut self, what: &str, rest: &str) {
        let dir = self.store.dir().display().to_string();
        let rest = rest.replace("TICKET", &self.ticket).replace("DIR", &dir);
        match what {
            "$" | "%" => self.run(&rest, what == "%"),
            "^" => self.on_terminal(&arguments(&rest)),
            "@" => {
                let (name, text) = rest.split_once(' ').expect("a file and its text");
                let mut file = OpenOptions::new();
                file.write(true).create(true).mode(0o600);
                let file = file.open(self.store.dir().join(name));
                write!(file.expect("it can be made"), "{text}").expect("it can be written");
            }
            "*" => {
                let program = self.store.leasehold(&arguments(&rest));
                self.sections.push(Section::start(program));
            }
            "&" => {
                let section = self.store.section(&arguments(&rest));
                section.is_in();
                self.sections.push(section);
            }
            "+" => {
                let (holders, waiters) = self.store.counts();
                self.sections.push(self.store.section(&arguments(&rest)));
                self.store.wait_for_counts(holders, waiters + 1);
            }
            _ => self.go_on(what, rest.parse().expect("the number of a section")),
        }
    }

    fn run(&mut self, rest: &str, is_long: bool) {
        let (rest, stdin) = rest.split_once(" < ").unwrap_or((rest, ""));
        let args = arguments(rest);
        let output = self.store.output_of(&args, stdin);
        let code = output.status.code().expect("it ends by itself");
        self.say(&format!("[{code}]"));
        let mut text = stdout(&output);
        if let Some(at) = text.find("lh1/") {
            let of_it = |sign: char| !sign.is_whitespace() && sign != '"';
            self.ticket = text[at..].chars().take_while(|sign| of_it(*sign)).collect();
        }
        if is_long {
            let (first, last) = (text.lines().next(), text.lines().last());
            text = format!("{}\n(…)\n{}", first.expect("a line"), last.expect("a line"));
        }
        self.show("out", &text, args[0]);
        self.show("err", &stderr(&output), "");
    }

    fn on_terminal(&mut self, args: &[&str]) {
        // Wide, so that nothing is cut whose width differs.
        let command = [&[PROGRAM], args].concat();
        let mut session = Session::start_sized(self.store, &command, Some((200, 8)));
        let mut text = session.shows("q end");
        session.types("q");
        text += &session.shows("\x1b[?1049l");
        let code = session.end().expect("it ends by itself");
        self.say(&format!("[{code}]"));
        self.show("screen", &text.replace('\r', "").replace('\x1b', "^["), args[0]);
    }

    fn go_on(&mut self, what: &str, number: usize) {
        let section = &mut self.sections[number - 1];
        match what {
            ">" => {
                let line = section.line().expect("it says something");
                return self.show("out", &line, "");
            }
            "." => section.go_on(),
            "x" => section.signal(Signal::INT),
            _ => {}
        }
        let code = section.end().code();
        eventually("it has left the store", || code.is_some());
        let errors = section.errors();
        self.say(&format!("[{}]", code.expect("it ends by itself")));
        self.show("err", &errors, "");
    }
}

/// Words between spaces; `'one word'` in quotes.
fn arguments(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

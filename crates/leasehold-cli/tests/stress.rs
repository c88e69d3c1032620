//! Many programs on one store, a quarter of them killed at any moment.

#[path = "program/common.rs"]
mod common;

use std::{
    collections::HashSet,
    fs, thread,
    time::{Duration, Instant},
};

use common::Store;

const WORKERS: u32 = 16;
const SECTIONS: u32 = 50;

/// Appends are atomic and ordered by the file, so the log itself is the clock.
const SCRIPT: &str = "printf 'start %s\\n' $1 >>$2; printf 'end %s\\n' $1 >>$2";

#[test]
fn no_overlap_and_nobody_stranded() {
    let store = Store::new();
    let log = store.dir().join("log");
    let lived: HashSet<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (store, log) = (&store, log.to_str().unwrap());
                scope.spawn(move || work(store, worker, log))
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    // The commands of killed runs end by themselves; the next one gets in after them.
    let after = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(after.status.success(), "somebody is stranded: {after:?}");
    store.wait_for_counts(0, 0);

    let log = fs::read_to_string(log).unwrap();
    let seen = sections_in_turn(&log).unwrap();
    assert!(seen.is_superset(&lived), "a run that lived did not run its command");
    let killed = (WORKERS * SECTIONS) as usize - lived.len();
    eprintln!("{} sections, {killed} runs killed before their end", seen.len());
    assert!(killed > 0, "nobody was killed in time");
}

/// Runs the sections of one worker one after another and gives the names of those that lived.
fn work(store: &Store, worker: u32, log: &str) -> Vec<String> {
    let mut lived = Vec::new();
    for section in 0..SECTIONS {
        let name = format!("{worker}.{section}");
        let mut command = store.leasehold(&["run", "n", "--", "sh", "-c", SCRIPT, "sh"]);
        let mut process = command.args([&name, log]).spawn().unwrap();
        if (worker + section).is_multiple_of(4) {
            // sleep: reason: a moment to be killed at, spread over start, wait, hold and end.
            thread::sleep(Duration::from_millis(u64::from((worker * 31 + section * 17) % 97)));
            process.kill().unwrap();
            if process.wait().unwrap().success() {
                lived.push(name);
            }
        } else {
            let start = Instant::now();
            let status = process.wait().unwrap();
            assert!(status.success(), "{name}: {status} after {:?}", start.elapsed());
            lived.push(name);
        }
    }
    lived
}

/// The sections of a log, if each ended before the next began.
fn sections_in_turn(log: &str) -> Result<HashSet<String>, String> {
    let mut seen = HashSet::new();
    let mut inside: Option<&str> = None;
    for line in log.lines() {
        inside = match (line.split_once(' '), inside) {
            (Some(("start", name)), None) => Some(name),
            (Some(("end", name)), Some(started)) if name == started => {
                if !seen.insert(name.to_owned()) {
                    return Err(format!("{name} ran twice"));
                }
                None
            }
            _ => return Err(format!("{line:?} while inside is {inside:?}")),
        };
    }
    inside.map_or(Ok(seen), |name| Err(format!("{name} never ended")))
}

#[test]
fn the_checker_finds_an_overlap() {
    assert_eq!(sections_in_turn("start a\nend a\nstart b\nend b\n").unwrap().len(), 2);
    for wrong in [
        "start a\nstart b\nend a\nend b\n",
        "start a\nend b\n",
        "start a\n",
        "end a\n",
        "start a\nend a\nstart a\nend a\n",
    ] {
        assert!(sections_in_turn(wrong).is_err(), "{wrong}");
    }
}

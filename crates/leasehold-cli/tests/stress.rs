//! Many programs on one store, a quarter of them killed at any moment.

#[path = "program/common.rs"]
mod common;

use std::{
    collections::HashSet,
    fs,
    os::unix::process::ExitStatusExt,
    thread,
    time::{Duration, Instant},
};

use common::Store;

const WORKERS: u32 = 16;
/// Of each worker; a multiple of eight, so that all of them are killed equally often.
const SECTIONS: u32 = 16;

/// Appends are atomic and ordered by the file, so the log itself is the clock.
const SECTION: &str = "printf 'start %s\\n' $1 >>$2; printf 'end %s\\n' $1 >>$2";

/// The same, whose `leasehold` is killed in the middle of it. The pause lets others in, if the lock
/// is wrongly free by then.
const ORPHANED: &str = "printf 'start %s\\n' $1 >>$2; kill -9 $PPID; sleep 0.02; \
                        printf 'end %s\\n' $1 >>$2";

#[test]
fn no_overlap_and_nobody_stranded() {
    let store = Store::new();
    let log = store.dir().join("log");
    let ends: Vec<(String, End)> = thread::scope(|scope| {
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

    let seen = sections_in_turn(&fs::read_to_string(log).unwrap()).unwrap();
    for (name, end) in &ends {
        let must_run = *end != End::KilledAnyTime;
        assert!(!must_run || seen.contains(name), "{name}, {end:?}, did not run its command");
    }
    let count = |end| ends.iter().filter(|(_, other)| *other == end).count();
    eprintln!(
        "{} sections; {} killed as holders, {} at any time",
        seen.len(),
        count(End::KilledInside),
        count(End::KilledAnyTime)
    );
    assert_eq!(count(End::KilledInside), (WORKERS * SECTIONS / 8) as usize);
    assert!(count(End::KilledAnyTime) > 0, "nobody was killed in time");
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lived,
    KilledInside,
    KilledAnyTime,
}

/// Runs the sections of one worker one after another.
fn work(store: &Store, worker: u32, log: &str) -> Vec<(String, End)> {
    (0..SECTIONS).map(|section| one(store, worker, section, log)).collect()
}

fn one(store: &Store, worker: u32, section: u32, log: &str) -> (String, End) {
    let name = format!("{worker}.{section}");
    let turn = worker + section;
    let inside = turn.is_multiple_of(8);
    let script = if inside { ORPHANED } else { SECTION };
    let mut command = store.leasehold(&["run", "n", "--", "sh", "-c", script, "sh"]);
    let mut process = command.args([&name, log]).spawn().unwrap();
    if turn % 8 == 4 {
        // sleep: reason: a moment to be killed at, spread over start, wait, hold and end.
        thread::sleep(Duration::from_millis(u64::from((worker * 131 + section * 37) % 397)));
        process.kill().unwrap();
    }
    let start = Instant::now();
    let status = process.wait().unwrap();
    let end = match status.signal() {
        Some(9) if inside => End::KilledInside,
        Some(9) if turn % 8 == 4 => End::KilledAnyTime,
        _ => End::Lived,
    };
    assert_eq!(status.success(), end == End::Lived, "{name}: {status} after {:?}", start.elapsed());
    (name, end)
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

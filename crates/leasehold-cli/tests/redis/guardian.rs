//! `kill -9` of a `run` with a TTL: pipelines and grandchildren end with it at once, on a server as on
//! a store that proves the death of processes.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::common::{Store, eventually, lives};

/// A trial on whatever store.
type Test = fn(&Store);

pub(crate) const ALL: [(&str, Test); 2] = [
    ("a_pipeline_and_its_grandchildren_end_with_a_killed_run", pipeline),
    ("they_end_before_another_gets_in", before_another),
];

/// A child with a child of its own, and a pipeline, which ignore all that asks politely.
const STUBBORN: &str = "trap '' TERM INT HUP QUIT; exec 3<&0 4>&1; \
    sh -c 'sh -c \"echo in \\$\\$ >&4; read line; exit\" <&3; read line' <&3 & \
    sh -c 'echo in $$ >&4; read line' <&3 | sh -c 'echo in $$ >&4; cat' & \
    echo in $$; read line; wait";
/// Those of them that say who they are.
const SPEAKERS: usize = 4;

/// Less than the TTL by far; on an idle machine it takes milliseconds.
const AT_ONCE: Duration = Duration::from_secs(3);

fn pipeline(store: &Store) {
    let killed = store.script(&["n", "--ttl", "30s"], STUBBORN);
    let group: HashSet<_> = (0..SPEAKERS).map(|_| killed.is_in()).collect();
    assert_eq!(group.len(), SPEAKERS);
    let start = Instant::now();
    killed.signal(Signal::KILL);
    for pid in group {
        eventually("a process of the group is ended", || !lives(pid));
    }
    assert!(start.elapsed() < AT_ONCE, "it took {:?}", start.elapsed());
}

fn before_another(store: &Store) {
    let killed = store.script(&["n", "--ttl", "2s"], STUBBORN);
    let group: Vec<_> = (0..SPEAKERS).map(|_| killed.is_in()).collect();
    killed.signal(Signal::KILL);
    let mut next = store.section(&["n"]);
    next.is_in();
    assert!(group.iter().all(|pid| !lives(*pid)), "the lock has passed on while they ran");
    assert_eq!(next.finish(), Some(0));
}

//! The program on a cluster and with sentinels: one URL more, and what `doctor` says of the servers.

use serde_json::Value;
use test_servers::{Cluster, Flavor, Sentinels};

use crate::{
    common::{Store, eventually},
    findings,
};

/// A trial that starts what it needs.
type Test = fn();

pub(crate) const ALL: [(&str, Test); 2] = [
    ("a_cluster_is_used_and_looked_at", cluster),
    ("sentinels_are_asked_and_looked_at", sentinels),
];

/// What is said of one thing, and whether all of it is healthy.
fn said(findings: &[Value], what: &str) -> (Vec<String>, bool) {
    let about: Vec<_> = findings.iter().filter(|one| one["what"] == what).collect();
    let texts = about.iter().map(|one| one["found"].as_str().unwrap_or_default().to_owned());
    (texts.collect(), about.iter().all(|one| one["healthy"] != false))
}

fn take_turns(store: &Store) {
    for name in ["a", "b", "c", "d"] {
        let mut first = store.section(&[name, "--ttl", "10s"]);
        first.is_in();
        let busy = store.output(&["run", name, "--no-wait", "--", "true"]);
        assert_eq!(busy.status.code(), Some(75), "{busy:?}");
        assert_eq!(first.finish(), Some(0));
    }
}

fn cluster() {
    let cluster = Cluster::start(Flavor::Redis70, 1).expect("it is installed");
    let store = Store::on_server(&cluster.url(), "t");
    take_turns(&store);
    let (servers, healthy) = said(&findings(&store, &store.url(), 0), "servers");
    assert_eq!((servers.len(), healthy), (3, true), "{servers:?}");
    assert!(servers.iter().any(|server| server.contains("1 replicas")), "{servers:?}");
    let wanting = format!("{}&wait_replicas=1", store.url());
    let (servers, healthy) = said(&findings(&store, &wanting, 1), "servers");
    assert!(!healthy, "two of them have no replica: {servers:?}");
    cluster.node(2).kill();
    eventually("the others know", || {
        let known = cluster.node(0).command(&["CLUSTER", "NODES"]).text();
        known.lines().any(|line| line.contains("fail") && !line.contains("fail?"))
    });
    let (servers, healthy) = said(&findings(&store, &store.url(), 1), "servers");
    assert!(!healthy && servers.len() == 3, "{servers:?}");
}

fn sentinels() {
    let all = Sentinels::start(Flavor::Redis70, 1).expect("it is installed");
    let store = Store::on_server(&all.url(), "t");
    take_turns(&store);
    let (seen, healthy) = said(&findings(&store, &store.url(), 0), "sentinels");
    assert!(healthy && !seen.is_empty(), "{seen:?}");
    all.server(0).kill();
    all.wait_for_another(Some(0));
    take_turns(&store);
}

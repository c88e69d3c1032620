//! Several servers come about, change their roles and move slots.

use std::time::Instant;

use test_servers::{Cluster, Flavor, SLOTS, Sentinels};

pub(crate) const TESTS: &[crate::Test] = &[
    ("a_cluster_moves_a_slot_and_survives_a_master", a_cluster_moves_a_slot_and_survives_a_master),
    ("sentinels_put_a_replica_in_the_place", sentinels_put_a_replica_in_the_place),
    ("a_parted_master_goes_on_beside_the_new_one", a_parted_master_goes_on_beside_the_new_one),
];

fn a_cluster_moves_a_slot_and_survives_a_master(flavor: Flavor) {
    let begun = Instant::now();
    let cluster = Cluster::start(flavor, 1).expect("installed");
    println!("{} cluster: {:?}", flavor.name(), begun.elapsed());
    assert_eq!(cluster.nodes().len(), 4);
    assert_eq!((cluster.owner(0), cluster.owner(SLOTS - 1)), (0, 2));
    let slot = cluster.slot("{here}a");
    assert_eq!(slot, cluster.slot("{here}b"));
    let (from, to) = (cluster.owner(slot), (cluster.owner(slot) + 1) % 3);
    assert_eq!(cluster.node(from).command(&["SET", "{here}a", "1"]).text(), "OK");
    cluster.begin_move(slot, to);
    let asked = cluster.node(from).command(&["GET", "{here}b"]).text();
    assert!(asked.starts_with("ASK "), "{asked}");
    assert_eq!(cluster.move_keys(slot, to), 1);
    cluster.end_move(slot, to);
    assert_eq!(cluster.owner(slot), to);
    assert_eq!(cluster.node(to).command(&["GET", "{here}a"]).text(), "1");
    let moved = cluster.node(from).command(&["GET", "{here}a"]).text();
    assert!(moved.starts_with("MOVED "), "{moved}");
    cluster.node(0).kill();
    cluster.wait_until_master(3);
    assert_eq!(cluster.owner(0), 3);
    cluster.node(0).start_again();
    cluster.wait_until_whole();
    cluster.hand_over_to(0);
    assert_eq!(cluster.owner(0), 0);
}

fn sentinels_put_a_replica_in_the_place(flavor: Flavor) {
    let begun = Instant::now();
    let all = Sentinels::start(flavor, 1).expect("installed");
    println!("{} sentinels: {:?}", flavor.name(), begun.elapsed());
    assert_eq!(all.master(), Some(0));
    all.server(0).command(&["SET", "kept", "1"]);
    assert_eq!(all.server(0).command(&["WAIT", "1", "10000"]).int(), 1);
    all.server(0).kill();
    assert_eq!(all.wait_for_another(Some(0)), 1);
    assert_eq!(all.server(1).command(&["GET", "kept"]).text(), "1");
}

fn a_parted_master_goes_on_beside_the_new_one(flavor: Flavor) {
    let all = Sentinels::start(flavor, 1).expect("installed");
    all.part();
    assert_eq!(all.wait_for_another(Some(0)), 1);
    assert!(all.is_master(0), "nobody could tell it");
    assert_eq!(all.server(0).command(&["SET", "a", "old"]).text(), "OK");
    assert_eq!(all.server(1).command(&["SET", "a", "new"]).text(), "OK");
}

//! A full disk: nothing is half done, and what was held is given back when there is room again.

mod support;

use support::{Home, Peer};

/// Runs the peer on a file system of one MiB, in a mount namespace that goes with it.
fn on_small_disk(home: &Home, prepare: &str, words: &[&str]) -> Peer {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root, to mount a small disk: run it under sudo or in a container"
    );
    let here = home.0.path().display().to_string();
    let script = format!(
        "mount -t tmpfs -o size=1m,mode=700 small '{here}' && cd '{here}' && {prepare} && exec \"$@\""
    );
    let program = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    Peer::start_by(&program, &home.path(), words)
}

#[test]
fn a_store_cannot_be_made_on_a_full_disk() {
    let home = Home::new();
    let fill = "{ dd if=/dev/zero of=ballast bs=4k 2>/dev/null || true; }";
    on_small_disk(&home, fill, &["open"]).says("fault Full");
}

#[test]
fn a_release_on_a_full_disk_is_repeated_until_there_is_room() {
    let home = Home::new();
    let peer = on_small_disk(&home, "true", &["full-disk"]);
    peer.says("held");
    peer.says("full Full");
    // Given up while the disk was full, and free once there was room.
    peer.says("free");
    peer.end();
}

//! How a client is told to look, and that it is left alone otherwise.

mod support;

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    time::{Duration, Instant},
};

use leasehold_core::Backend;
use support::{Home, granted, mutex, queued, release, request, run, told_granted, until};

#[test]
fn a_full_pipe_loses_no_wake() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("pipe"));
    let held = request(&lock);
    granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    // Somebody writes more wakes than the pipe holds, all the time.
    let pipe = home.side("wake").join(b.client().to_string());
    let mut pipe = fs::OpenOptions::new()
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(pipe)
        .unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = pipe.write(&[b'l'; 65536]);
            }
        });
        until("the client looks in spite of it", || {
            run(b.counts(&lock)).unwrap().is_some_and(|counts| counts.queued == 1)
        });
        release(&a, &held);
        told_granted(&b, &wanted, &place);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_lost_pipe_delays_and_does_not_strand() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("lost"));
    let held = request(&lock);
    granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    fs::remove_file(home.side("wake").join(b.client().to_string())).unwrap();
    let start = Instant::now();
    release(&a, &held);
    told_granted(&b, &wanted, &place);
    // L5: bounded by the heartbeat of 1 s.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

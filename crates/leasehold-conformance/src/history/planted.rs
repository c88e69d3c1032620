//! Histories with something planted in them, each of which the checker must find, and clean ones.

use std::time::Duration;

use leasehold_core::LockKind;

use super::{
    check::{Limits, Violation, ViolationKind, check},
    event::{Doing, Event, Found, Id, What},
};

const LIMITS: Limits = Limits { wait_max: Duration::from_secs(1) };
const TTL: u64 = 500_000;

/// Events of one lock with three permits, in the order of their times. An acquisition is named by
/// its process and a letter.
#[derive(Default)]
struct Made(Vec<Event>);

impl Made {
    fn at(mut self, at_us: u64, id: &str, what: impl FnOnce(Id) -> What) -> Self {
        let process = id.split('/').next().unwrap().parse().unwrap();
        self.0.push(Event { at_us, process, what: what(Id(id.to_owned())) });
        self
    }

    fn asks(self, at_us: u64, id: &str, weight: u32) -> Self {
        let (kind, lock, ttl_us) = (LockKind::Semaphore, "x".to_owned(), Some(TTL));
        self.at(at_us, id, |id| What::Asked { id, lock, kind, capacity: 3, weight, ttl_us })
    }

    fn queues(self, at_us: u64, id: &str) -> Self {
        self.at(at_us, id, |id| What::Queued { id, ahead: None })
    }

    fn enters(self, at_us: u64, id: &str, fencing: u64) -> Self {
        let (sent_us, left_us) = (at_us - 5, Some(TTL));
        self.at(at_us, id, |id| What::Granted { id, sent_us, fencing, left_us, waited: true }).at(
            at_us,
            id,
            |id| What::Entered { id },
        )
    }

    fn leaves(self, at_us: u64, id: &str) -> Self {
        self.at(at_us, id, |id| What::Left { id }).releases(at_us, id, Found::Holder)
    }

    fn releases(self, at_us: u64, id: &str, found: Found) -> Self {
        self.at(at_us, id, |id| What::Releasing { id })
            .at(at_us + 5, id, |id| What::Released { id, found })
    }

    fn sees(self, at_us: u64, waiters: &[&str]) -> Self {
        let waiters = waiters.iter().map(|id| Id((*id).to_owned())).collect();
        let (lock, sent_us) = ("x".to_owned(), at_us - 5);
        self.at(at_us, "0/", |_| What::Seen { lock, sent_us, waiters })
    }

    fn dies(self, at_us: u64, process: u32) -> Self {
        self.at(at_us, &format!("{process}/"), |_| What::Killed { doing: Doing::Holding })
    }

    fn sleeps(self, from: u64, until: u64, process: u32) -> Self {
        self.at(from, &format!("{process}/"), |_| What::Stopped { doing: Doing::Holding }).at(
            until,
            &format!("{process}/"),
            |_| What::Continued,
        )
    }

    fn steps(mut self, from_us: u64, at_us: u64) -> Self {
        self.0.push(Event { at_us, process: 0, what: What::Stepped { from_us } });
        self
    }

    /// The server before is dead when its replica answers.
    fn fails_over(self, since_us: u64, until_us: u64) -> Self {
        self.fails_over_alive(since_us, until_us, until_us)
    }

    fn fails_over_alive(mut self, since_us: u64, from_us: u64, until_us: u64) -> Self {
        let what = What::FailedOver { since_us, from_us, until_us };
        self.0.push(Event { at_us: until_us + 1, process: 0, what });
        self
    }

    fn renews(self, at_us: u64, id: &str) -> Self {
        let (sent_us, left_us) = (at_us - 5, Some(TTL));
        self.at(at_us, id, |id| What::Renewed { id, sent_us, left_us })
    }

    /// What the checker finds once every process that was not killed has ended.
    fn found(self) -> Vec<ViolationKind> {
        self.found_and_explained().0
    }

    /// The same, and what only failovers explain.
    fn found_and_explained(mut self) -> (Vec<ViolationKind>, Vec<ViolationKind>) {
        let mut processes: Vec<u32> = self.0.iter().map(|event| event.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let is_killed = |process: &u32| {
            let mut own = self.0.iter().filter(|event| event.process == *process);
            own.any(|event| matches!(event.what, What::Killed { .. }))
        };
        processes.retain(|process| !is_killed(process));
        for process in processes {
            self = self.at(9_000_000, &format!("{process}/"), |_| What::Ended);
        }
        self.0.sort_by_key(|event| event.at_us);
        let report = check(&self.0, LIMITS);
        let kinds = |of: Vec<Violation>| of.into_iter().map(|violation| violation.kind).collect();
        (kinds(report.violations), kinds(report.explained))
    }
}

/// One holds all, two wait in line and are granted in that order.
fn line() -> Made {
    Made::default()
        .asks(100, "1/a", 3)
        .enters(110, "1/a", 50)
        .asks(120, "2/b", 3)
        .queues(130, "2/b")
        .asks(140, "3/c", 3)
        .queues(150, "3/c")
        .sees(160, &["2/b", "3/c"])
}

#[test]
fn clean_histories_pass() {
    let line = line().leaves(1_000, "1/a").enters(1_020, "2/b", 51).leaves(2_000, "2/b");
    assert_eq!(line.enters(2_020, "3/c", 52).leaves(3_000, "3/c").found(), []);
    // Two of three permits and one of three go together, and a try is refused.
    let together = Made::default()
        .asks(100, "1/a", 2)
        .enters(110, "1/a", 7)
        .asks(120, "2/b", 1)
        .enters(130, "2/b", 8)
        .asks(140, "2/c", 1)
        .at(150, "2/c", |id| What::Refused { id })
        .leaves(200, "2/b")
        .leaves(210, "1/a");
    assert_eq!(together.found(), []);
}

#[test]
fn a_killed_holder_gives_way_and_a_killed_waiter_is_passed() {
    let killed = line().dies(1_000, 1).dies(1_010, 2).enters(1_100, "3/c", 60);
    assert_eq!(killed.leaves(2_000, "3/c").found(), []);
}

#[test]
fn a_stopped_holder_that_learns_of_its_loss_is_fine() {
    let stopped = |lost: bool| {
        let made = line().sleeps(1_000, 900_000, 1).enters(510_000, "2/b", 51);
        let made = made.leaves(511_000, "2/b").enters(512_000, "3/c", 52);
        let made = made.leaves(513_000, "3/c");
        let made = if lost { made.at(900_100, "1/a", |id| What::Lost { id }) } else { made };
        made.at(900_200, "1/a", |id| What::Left { id }).releases(900_200, "1/a", Found::Nothing)
    };
    assert_eq!(stopped(true).found(), []);
    assert_eq!(stopped(false).found(), [ViolationKind::UnawareHolder]);
}

#[test]
fn a_stopped_holder_whose_grant_was_prolonged_by_a_step_is_fine() {
    let stopped = |steps: bool| {
        let made = line().sleeps(1_000, 900_000, 1);
        let made = if steps { made.steps(400_000, 400_100) } else { made };
        let made = made.leaves(900_200, "1/a").enters(900_300, "2/b", 51).leaves(901_000, "2/b");
        made.enters(901_100, "3/c", 52).leaves(902_000, "3/c")
    };
    assert_eq!(stopped(true).found(), []);
    assert_eq!(stopped(false).found(), [ViolationKind::UnawareHolder]);
}

#[test]
fn a_planted_overlap_is_found() {
    let made = line().enters(900, "2/b", 51).leaves(1_000, "1/a").leaves(2_000, "2/b");
    let made = made.enters(2_020, "3/c", 52).leaves(3_000, "3/c");
    assert_eq!(made.found(), [ViolationKind::Overlap]);
    // Weights are summed: two and two are more than three.
    let made = Made::default().asks(100, "1/a", 2).enters(110, "1/a", 7);
    let made = made.asks(120, "2/b", 2).enters(130, "2/b", 8);
    assert_eq!(made.leaves(200, "2/b").leaves(210, "1/a").found(), [ViolationKind::Overlap]);
}

#[test]
fn an_overlap_before_the_ttl_of_a_stopped_holder_is_found() {
    let made = line().sleeps(1_000, 900_000, 1).enters(400_000, "2/b", 51);
    let made = made.leaves(500_000, "2/b").enters(600_000, "3/c", 52).leaves(600_100, "3/c");
    let made = made.at(900_100, "1/a", |id| What::Lost { id });
    let made = made.at(900_200, "1/a", |id| What::Left { id });
    assert_eq!(made.releases(900_200, "1/a", Found::Nothing).found(), [ViolationKind::Overlap]);
}

#[test]
fn a_planted_order_violation_is_found() {
    let made = line().leaves(1_000, "1/a").enters(1_020, "3/c", 51).leaves(2_000, "3/c");
    let made = made.enters(2_020, "2/b", 52).leaves(3_000, "2/b");
    let found = made.found();
    // By the times of the requests, and by the queue as it was seen.
    assert_eq!(found, [ViolationKind::Overtaken; 2]);
}

#[test]
fn overtaking_a_waiter_that_then_leaves_is_found() {
    let made = line().leaves(1_000, "1/a").enters(1_020, "3/c", 51).leaves(2_000, "3/c");
    assert_eq!(made.releases(3_000, "2/b", Found::Waiter).found(), [ViolationKind::Overtaken]);
    // The queue shows it, too.
    let made = line().leaves(1_000, "1/a").enters(1_020, "3/c", 51).sees(1_500, &["2/b"]);
    let made = made.dies(1_600, 2).leaves(2_000, "3/c");
    assert_eq!(made.found(), [ViolationKind::Overtaken]);
}

#[test]
fn an_order_that_only_the_queue_shows_is_found() {
    // Both were asked for at the same time; the store's queue says who was first.
    let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 50);
    let made = made.asks(120, "2/b", 3).asks(121, "3/c", 3).queues(130, "2/b").queues(131, "3/c");
    let made = made.sees(160, &["3/c", "2/b"]).leaves(1_000, "1/a").enters(1_020, "2/b", 51);
    let made = made.leaves(2_000, "2/b").enters(2_020, "3/c", 52).leaves(3_000, "3/c");
    assert_eq!(made.found(), [ViolationKind::Overtaken]);
}

#[test]
fn a_planted_lost_waiter_is_found() {
    // It never hears anything.
    let made = line().leaves(1_000, "1/a").enters(1_020, "2/b", 51).leaves(2_000, "2/b");
    assert_eq!(made.found(), [ViolationKind::Stranded]);
    // It gives up, but long after.
    let made = line().leaves(1_000, "1/a").enters(1_020, "2/b", 51).leaves(2_000, "2/b");
    assert_eq!(made.releases(2_000_000, "3/c", Found::Waiter).found(), [ViolationKind::Stranded]);
    // It was stopped for most of that time.
    let made = line().leaves(1_000, "1/a").enters(1_020, "2/b", 51).leaves(2_000, "2/b");
    let made = made.sleeps(3_000, 1_900_000, 3);
    assert_eq!(made.at(2_000_000, "3/c", |id| What::Missed { id }).found(), []);
}

#[test]
fn a_planted_fencing_regression_is_found() {
    for (second, third) in [(49, 52), (51, 51), (52, 51)] {
        let made = line().leaves(1_000, "1/a").enters(1_020, "2/b", second);
        let made = made.leaves(2_000, "2/b").enters(2_020, "3/c", third);
        let found = made.leaves(3_000, "3/c").found();
        assert!(found.contains(&ViolationKind::FencingRegression), "{second} {third}: {found:?}");
    }
    // Of two that can be held together, only the order of requests and answers tells.
    let made = Made::default().asks(100, "1/a", 1).enters(110, "1/a", 9);
    let made = made.asks(120, "2/b", 1).enters(130, "2/b", 8);
    let made = made.leaves(200, "2/b").leaves(210, "1/a");
    assert_eq!(made.found(), [ViolationKind::FencingRegression]);
}

#[test]
fn a_grant_that_others_ended_is_found() {
    let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 9);
    assert_eq!(made.releases(1_000, "1/a", Found::Nothing).found(), [ViolationKind::EndedByOthers]);
    let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 9);
    let made = made.at(1_000, "1/a", |id| What::Lapsed { id });
    assert_eq!(
        made.releases(600_000, "1/a", Found::Nothing).found(),
        [ViolationKind::EndedByOthers]
    );
}

#[test]
fn a_step_of_the_stores_clock_excuses_what_was_there_before_it_and_no_more() {
    // The step ends the grant and loses the queue.
    let stepped = |at| line().steps(at, at + 10).enters(900, "3/c", 51).leaves(1_000, "3/c");
    let end = |made: Made| {
        let made = made.enters(1_100, "2/b", 52).leaves(1_200, "2/b");
        made.releases(1_300, "1/a", Found::Nothing).found()
    };
    assert_eq!(end(stepped(500)), []);
    // After it all is as ever.
    assert!(end(stepped(950)).contains(&ViolationKind::Overlap));
    let late = line().steps(50, 60).enters(900, "3/c", 51).leaves(1_000, "3/c");
    let found = end(late);
    for kind in [ViolationKind::Overlap, ViolationKind::Overtaken, ViolationKind::EndedByOthers] {
        assert!(found.contains(&kind), "{kind:?} of {found:?}");
    }
}

/// `1/a` is granted at 110 and renewed, and goes on while `2/b` is granted at this moment.
fn two_hold_from(at_us: u64, renewed_at: &[u64], since_us: u64, until_us: u64) -> Made {
    let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 50);
    let made = renewed_at.iter().fold(made, |made, at| made.renews(*at, "1/a"));
    let made = made.asks(at_us - 10, "2/b", 3).enters(at_us, "2/b", 51).leaves(at_us + 10, "2/b");
    let late = at_us + 100;
    made.leaves(late, "1/a").fails_over(since_us, until_us)
}

#[test]
fn a_failover_explains_what_it_may_have_forgotten_and_no_more() {
    const OVERLAP: [ViolationKind; 1] = [ViolationKind::Overlap];
    let of = |at, renewed_at: &[u64], since, until| {
        two_hold_from(at, renewed_at, since, until).found_and_explained()
    };
    let (explained, found) = ((vec![], OVERLAP.to_vec()), (OVERLAP.to_vec(), vec![]));
    // The grant may be forgotten.
    assert_eq!(of(2_000, &[], 50, 1_000), explained);
    // The replica had it.
    assert_eq!(of(2_000, &[], 200, 1_000), found);
    // The server that granted both still answered.
    assert_eq!(of(900, &[], 50, 1_000), found);
    // The replica knows it after all: it renewed it.
    assert_eq!(of(3_000, &[2_000], 50, 1_000), found);
    // Only the renewal may be forgotten: the grant counts for as long as it was promised.
    assert_eq!(of(400_000, &[300_000], 200_000, 310_000), found);
    assert_eq!(of(600_000, &[300_000], 200_000, 310_000), explained);
    // The replica answered before the other one was silent.
    let both = |from| {
        let made = two_hold_from(900, &[], 2_000, 2_000).fails_over_alive(50, from, 1_000);
        made.found_and_explained()
    };
    assert_eq!(both(800), explained);
    assert_eq!(both(950), found);
    // It was forgotten by nobody: the failover came before, or long after.
    assert_eq!(of(2_000, &[], 50, 90), found);
    assert_eq!(of(2_000, &[], 5_000, 6_000), found);
}

#[test]
fn what_one_failover_kept_another_may_forget() {
    // The first may have forgotten the grant, and the second what its replica was told since.
    let made = |second: u64| {
        let made = two_hold_from(9_000, &[2_000], 50, 1_000).fails_over(second, 8_000);
        made.found_and_explained()
    };
    assert_eq!(made(1_900), (vec![], vec![ViolationKind::Overlap]));
    assert_eq!(made(3_000), (vec![ViolationKind::Overlap], vec![]));
}

#[test]
fn a_failover_explains_a_queue_that_shows_who_had_its_turn() {
    // The server before granted and released both of those who wait at its replica.
    let made = |since| {
        let made = line().leaves(1_000, "1/a").enters(1_020, "2/b", 51).leaves(1_100, "2/b");
        let made = made.enters(1_120, "3/c", 52).leaves(1_200, "3/c");
        made.sees(2_000, &["2/b", "3/c"]).fails_over(since, 1_300).found_and_explained()
    };
    assert_eq!(made(900), (vec![], vec![ViolationKind::Overtaken]));
    assert_eq!(made(1_250), (vec![ViolationKind::Overtaken], vec![]));
}

#[test]
fn a_failover_explains_grants_that_end_but_no_stale_write_and_no_step_back_of_a_fence() {
    let made = |since| {
        let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 9).fails_over(since, 900);
        made.releases(1_000, "1/a", Found::Nothing).found_and_explained()
    };
    assert_eq!(made(50), (vec![], vec![ViolationKind::EndedByOthers]));
    assert_eq!(made(200), (vec![ViolationKind::EndedByOthers], vec![]));

    let stored = |accepted| move |id| What::Stored { id, accepted };
    let made = |fencing| {
        let made = Made::default().asks(100, "1/a", 3).enters(110, "1/a", 50).fails_over(50, 900);
        let made = made.asks(990, "2/b", 3).enters(1_000, "2/b", fencing);
        let made = made.at(1_010, "2/b", stored(true)).leaves(1_020, "2/b");
        made.at(1_030, "1/a", stored(fencing < 50)).leaves(1_040, "1/a")
    };
    assert_eq!(made(51).found(), []);
    assert_eq!(made(49).found(), [ViolationKind::FencingRegression]);
    let stale = two_hold_from(2_000, &[], 50, 1_000).at(2_005, "2/b", stored(true));
    let stale = stale.at(2_020, "1/a", stored(true)).found();
    assert_eq!(stale, [ViolationKind::StaleWrite]);
}

#[test]
fn what_the_storage_must_not_do_is_found() {
    let stored = |accepted| move |id| What::Stored { id, accepted };
    let made = line().at(500, "1/a", stored(false)).leaves(1_000, "1/a");
    let made = made.enters(1_020, "2/b", 51).at(1_030, "2/b", stored(true));
    let made = made.at(1_040, "1/a", stored(true)).leaves(2_000, "2/b");
    let made = made.enters(2_020, "3/c", 52).leaves(3_000, "3/c");
    assert_eq!(made.found(), [ViolationKind::HolderRefused, ViolationKind::StaleWrite]);
}

#[test]
fn a_process_without_an_end_and_a_stray_event_are_found() {
    let started = Event { at_us: 10, process: 1, what: What::Started };
    let stray = What::Left { id: Id("2/never asked".to_owned()) };
    let stray = Event { at_us: 20, process: 2, what: stray };
    let ended = Event { at_us: 30, process: 2, what: What::Ended };
    let found = check(&[started, stray, ended], LIMITS).violations;
    let kinds: Vec<ViolationKind> = found.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, [ViolationKind::BrokenProcess, ViolationKind::Stray]);
}

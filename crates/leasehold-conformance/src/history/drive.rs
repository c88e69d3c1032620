//! The driver of a history: it starts processes, kills, stops and continues them, and disturbs the
//! store, until enough has happened; then it has the logs checked.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use leasehold_core::{Acquired, Backend as _, HolderInfo};

use super::{
    check::{Limits, Report, check},
    child::Child,
    event::{Doing, Id, What},
    log::{self, Log},
    plan::{Assignment, Fate, LockPlan, Rng, Size, Step, Tells},
    recorder::Recorder,
    rogue::request,
    stage::{Forgets, Stage},
};
use crate::bench::block::outcome;

/// After so many stops of holders one of them writes too late.
const STOPS_FOR_A_STALE_WRITE: usize = 4;
/// How often the driver looks at its timers.
const LOOK: Duration = Duration::from_millis(5);
/// How long processes may take to end when they are told to.
const ENDING_BOUND: Duration = Duration::from_secs(60);

/// What came of a history.
#[derive(Debug)]
pub struct Outcome {
    /// What its choices were drawn from.
    pub seed: u64,
    /// What the checker says.
    pub report: Report,
    /// What the driver saw itself that should not be, and what has not happened often enough.
    pub findings: Vec<String>,
    /// What was done to the store, and how often.
    pub disturbed: BTreeMap<&'static str, u32>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Whether everything was as it must be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.report.violations.is_empty() && self.findings.is_empty()
    }
}

/// Runs a history on a new store in `directory`, and checks it.
///
/// # Panics
/// When processes or files cannot be had.
pub fn drive(stage: &dyn Stage, directory: &Path, size: Size, seed: u64) -> Outcome {
    let start = Instant::now();
    let mut driver = Driver::new(stage, directory, size, seed);
    driver.run(start + bound_of(size));
    driver.wind_down();
    driver.reboot();
    driver.end();
    let Driver { mut findings, disturbed, .. } = driver;
    let events = log::read(directory).expect("the logs can be read");
    let report = check(&events, Limits { wait_max: size.wait_max() });
    findings.extend(missing(&report, size));
    Outcome { seed, report, findings, disturbed, took: start.elapsed() }
}

/// A history that takes longer is one in which too little happens.
fn bound_of(size: Size) -> Duration {
    let kills = u32::try_from(3 * size.kills_each + size.kills_anywhere).expect("few");
    Duration::from_secs(100)
        + Duration::from_millis(150) * u32::try_from(size.hand_offs).expect("few")
        + Duration::from_secs(1) * kills
}

/// What has not happened often enough.
fn missing(report: &Report, size: Size) -> Vec<String> {
    let summary = &report.summary;
    // After few stops it may be that nobody wrote before the stopped holder went on.
    let stale = usize::from(size.stops_each >= STOPS_FOR_A_STALE_WRITE);
    let mut counts = vec![
        ("hand-offs".to_owned(), summary.hand_offs, size.hand_offs),
        ("kills at any moment".to_owned(), summary.killed(Doing::Anything), size.kills_anywhere),
        ("stale writes refused".to_owned(), summary.stale_writes_refused, stale),
    ];
    for doing in [Doing::Holding, Doing::Queued, Doing::Claimed] {
        counts.push((format!("kills while {doing:?}"), summary.killed(doing), size.kills_each));
        counts.push((format!("stops while {doing:?}"), summary.stopped(doing), size.stops_each));
    }
    counts
        .into_iter()
        .filter(|(_, is, wanted)| is < wanted)
        .map(|(what, is, wanted)| format!("only {is} of {wanted} {what}"))
        .collect()
}

struct Driver<'a> {
    stage: &'a dyn Stage,
    directory: &'a Path,
    address: PathBuf,
    size: Size,
    rng: Rng,
    locks: Vec<LockPlan>,
    log: Arc<Log>,
    observer: Recorder,
    next_process: u32,
    children: BTreeMap<u32, Child>,
    sender: Sender<(u32, Option<Tells>)>,
    told: Receiver<(u32, Option<Tells>)>,
    /// What has happened, as the store saw it.
    met: BTreeMap<Fate, usize>,
    hand_offs: usize,
    turns: u32,
    findings: Vec<String>,
    disturbed: BTreeMap<&'static str, u32>,
    is_ending: bool,
}

impl<'a> Driver<'a> {
    fn new(stage: &'a dyn Stage, directory: &'a Path, size: Size, seed: u64) -> Self {
        let address = directory.join("locks.db");
        let mut rng = Rng::new(seed);
        let locks = LockPlan::draw(&mut rng, size);
        let log = Arc::new(Log::create(directory, 0).expect("a new log"));
        let backend = stage.connect(&address).expect("the store opens");
        let observer = Recorder::new(backend, Arc::clone(&log));
        log.note(What::Started);
        let (sender, told) = channel();
        Self {
            stage,
            directory,
            address,
            size,
            rng,
            locks,
            log,
            observer,
            next_process: 1,
            children: BTreeMap::new(),
            sender,
            told,
            met: BTreeMap::new(),
            hand_offs: 0,
            turns: 0,
            findings: Vec::new(),
            disturbed: BTreeMap::new(),
            is_ending: false,
        }
    }

    fn run(&mut self, deadline: Instant) {
        for _ in 0..self.size.processes {
            self.start_child();
        }
        while !self.is_enough() && Instant::now() < deadline {
            self.listen();
            self.disturb();
            // What a fate was about may have been over when it was met: somebody else has to.
            if self.is_stalled() {
                self.start_child();
            }
        }
    }

    /// Every process ends after its section; fates that are met meanwhile are still met.
    fn wind_down(&mut self) {
        self.is_ending = true;
        for child in self.children.values_mut() {
            child.finish();
        }
        let deadline = Instant::now() + ENDING_BOUND;
        while !self.children.is_empty() {
            self.listen();
            if Instant::now() > deadline {
                let left: Vec<u32> = self.children.keys().copied().collect();
                self.findings.push(format!("processes {left:?} do not end"));
                return;
            }
        }
    }

    /// After the boot every lock is free, and fencing tokens go on.
    fn reboot(&mut self) {
        if let Err(fault) = outcome(self.observer.close()) {
            self.findings.push(format!("the observer does not close: {fault}"));
        }
        self.log.note(What::Ended);
        if let Err(what) = self.stage.reboot(&self.address) {
            self.findings.push(what);
        }
        let log = Log::create(self.directory, self.next_process).expect("a new log");
        let backend = self.stage.connect(&self.address).expect("the store opens");
        let client = Recorder::new(backend, Arc::new(log));
        let info = Arc::new(HolderInfo::here());
        for plan in &self.locks {
            let request = request(plan, &info, plan.capacity);
            match outcome(client.acquire(&request)) {
                Ok(Acquired::Granted(_)) => {}
                other => self.findings.push(format!("{} is not free: {other:?}", plan.name)),
            }
            if let Err(fault) = outcome(client.release(&request.lock, &request.token)) {
                self.findings.push(format!("{} cannot be released: {fault}", plan.name));
            }
        }
        client.log().note(What::Ended);
    }

    fn end(&mut self) {
        if let Err(what) = self.stage.end(&self.address) {
            self.findings.push(what);
        }
    }

    fn is_enough(&self) -> bool {
        self.hand_offs >= self.size.hand_offs
            && self.fates().iter().all(|(fate, wanted)| self.met(*fate) >= *wanted)
    }

    /// Whether nobody is left who could meet what is still wanted.
    fn is_stalled(&self) -> bool {
        let is_done = self.children.values().all(|child| child.fates.is_empty());
        is_done && !(self.wanted(true).is_empty() && self.wanted(false).is_empty())
    }

    fn met(&self, fate: Fate) -> usize {
        self.met.get(&fate).copied().unwrap_or(0)
    }

    fn fates(&self) -> [(Fate, usize); 7] {
        let (kills, stops) = (self.size.kills_each, self.size.stops_each);
        [
            (Fate::Killed(Doing::Anything), self.size.kills_anywhere),
            (Fate::Killed(Doing::Holding), kills),
            (Fate::Killed(Doing::Queued), kills),
            (Fate::Killed(Doing::Claimed), kills),
            (Fate::Stopped(Doing::Holding), stops),
            (Fate::Stopped(Doing::Queued), stops),
            (Fate::Stopped(Doing::Claimed), stops),
        ]
    }

    /// What is wanted and not yet on its way, of those that end a life or of those that do not.
    fn wanted(&self, ends_life: bool) -> Vec<Fate> {
        let on_its_way = |fate: Fate| -> usize {
            self.children
                .values()
                .map(|child| child.fates.iter().filter(|f| **f == fate).count())
                .sum()
        };
        self.fates()
            .into_iter()
            .filter(|(fate, _)| matches!(fate, Fate::Killed(_)) == ends_life)
            .filter(|(fate, wanted)| self.met(*fate) + on_its_way(*fate) < *wanted)
            .map(|(fate, _)| fate)
            .collect()
    }

    fn start_child(&mut self) {
        let (stops, kills) = (self.wanted(false), self.wanted(true));
        let mut fates = Vec::new();
        if !stops.is_empty() && (kills.is_empty() || self.rng.chance(40)) {
            fates.push(*self.rng.pick(&stops));
        }
        // With no more deaths wanted it lives to the end: where a death is not proven, each costs
        // everybody a TTL.
        if !kills.is_empty() {
            fates.push(*self.rng.pick(&kills));
        }
        let steps = fates.iter().map(|fate| Step { sections: self.rng.between(1, 8), fate: *fate });
        let steps = steps.collect();
        let process = self.next_process;
        self.next_process += 1;
        let assignment = Assignment {
            process,
            seed: self.rng.next(),
            address: self.address.clone(),
            directory: self.directory.to_owned(),
            locks: self.locks.clone(),
            steps,
        };
        let child = Child::start(&assignment, fates.into(), self.sender.clone());
        self.children.insert(process, child);
    }

    /// Waits a little for what processes tell, and for timers.
    fn listen(&mut self) {
        match self.told.recv_timeout(LOOK) {
            Ok((process, Some(tells))) => self.hear(process, tells),
            Ok((process, None)) => self.ended(process),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the driver has a sender"),
        }
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let children = &self.children;
        let of = |which: fn(&Child) -> Option<Instant>| -> Vec<u32> {
            children.iter().filter(|(_, child)| due(which(child))).map(|(n, _)| *n).collect()
        };
        let (to_continue, to_kill) = (of(|child| child.continue_at), of(|child| child.kill_at));
        for process in to_continue {
            self.go_on(process);
        }
        for process in to_kill {
            self.kill(process, Doing::Anything);
        }
    }

    fn hear(&mut self, process: u32, tells: Tells) {
        let Some(child) = self.children.get_mut(&process) else { return };
        match tells {
            Tells::Ready => {
                child.is_ready = true;
                self.time_a_kill(process);
            }
            Tells::HandOffs { count } => self.hand_offs += count,
            Tells::AtFate { id, lock } => match child.fates.front() {
                Some(Fate::Killed(fate)) => {
                    // A waiter is soon none any more.
                    let us = self.rng.between(0, if *fate == Doing::Queued { 100 } else { 8_000 });
                    // sleep: lets others come into its way, at another moment each time.
                    thread::sleep(Duration::from_micros(us.into()));
                    let doing = self.doing(&id, &lock);
                    self.kill(process, doing);
                }
                Some(Fate::Stopped(_)) => self.stop(process, &id, &lock),
                None => self.findings.push(format!("process {process} has no fate to meet")),
            },
        }
    }

    /// A process whose last fate is to be killed at any moment is killed soon.
    fn time_a_kill(&mut self, process: u32) {
        let after = Duration::from_millis(self.rng.between(5, 200).into());
        if let Some(child) = self.children.get_mut(&process)
            && child.fates.front() == Some(&Fate::Killed(Doing::Anything))
        {
            child.kill_at = Some(Instant::now() + after);
        }
    }

    /// What the store says about an acquisition.
    fn doing(&mut self, id: &Id, lock: &str) -> Doing {
        let plan = self.locks.iter().find(|plan| plan.name == lock).expect("a lock of the history");
        let lock = request(plan, &Arc::new(HolderInfo::here()), 1).lock;
        let Ok(Some(state)) = outcome(self.observer.inspect(&lock)) else { return Doing::Anything };
        if state.waiters.iter().any(|waiter| Id::of_waiter(waiter).as_ref() == Some(id)) {
            return Doing::Queued;
        }
        match state.holders.iter().find(|holder| Id::of_holder(holder).as_ref() == Some(id)) {
            Some(holder) if holder.claimed => Doing::Claimed,
            Some(_) => Doing::Holding,
            None => Doing::Anything,
        }
    }

    fn kill(&mut self, process: u32, doing: Doing) {
        let Some(mut child) = self.children.remove(&process) else { return };
        // From here on nothing that it holds counts.
        self.log.note_at(self.log.now(), process, What::Killed { doing });
        child.kill9();
        *self.met.entry(Fate::Killed(doing)).or_default() += 1;
        self.replace();
    }

    fn stop(&mut self, process: u32, id: &Id, lock: &str) {
        let for_more = Duration::from_millis(self.rng.between(150, 500).into());
        let Some(child) = self.children.get_mut(&process) else { return };
        child.stop();
        let doing = self.doing(id, lock);
        // After the stop, and before the continuation: a stop is at least as long as it is logged.
        self.log.note_at(self.log.now(), process, What::Stopped { doing });
        *self.met.entry(Fate::Stopped(doing)).or_default() += 1;
        if let Some(child) = self.children.get_mut(&process) {
            child.continue_at = Some(Instant::now() + self.size.ttl + for_more);
        }
    }

    fn go_on(&mut self, process: u32) {
        let Some(child) = self.children.get_mut(&process) else { return };
        child.continue_at = None;
        child.fates.pop_front();
        self.log.note_at(self.log.now(), process, What::Continued);
        child.go_on();
        self.time_a_kill(process);
    }

    fn ended(&mut self, process: u32) {
        let Some(mut child) = self.children.remove(&process) else { return };
        let status = child.wait();
        if !status.success() || !self.is_ending {
            self.findings.push(format!("process {process} ended by itself: {status}"));
        }
        self.replace();
    }

    fn replace(&mut self) {
        if !self.is_ending {
            self.start_child();
        }
    }

    /// Disturbs the store now and then, spread over the history, while nobody is about to open it.
    fn disturb(&mut self) {
        let killed = self.next_process.saturating_sub(self.size.processes);
        let all = 3 * self.size.kills_each + self.size.kills_anywhere;
        let all = u32::try_from(all).expect("few");
        let due = u64::from(self.turns) * u64::from(all)
            <= u64::from(killed) * u64::from(self.size.disturbances);
        if due
            && self.turns < self.size.disturbances
            && self.children.values().all(|child| child.is_ready)
        {
            let from_us = self.log.now();
            match self.stage.disturb(&self.address, self.turns) {
                Ok(done) => {
                    if done.steps_clock {
                        self.log.note(What::Stepped { from_us });
                    }
                    if let Some(Forgets { since, from, until }) = done.forgets {
                        // Each a little further than it was: nothing is to be reported that did
                        // not happen.
                        let now_us = self.log.now();
                        let since_us = now_us - us(since.elapsed());
                        let from_us = now_us - us(from.elapsed());
                        let ago_us = us(until.elapsed());
                        let until_us = self.log.now() - ago_us;
                        self.log.note(What::FailedOver { since_us, from_us, until_us });
                    }
                    *self.disturbed.entry(done.what).or_default() += 1;
                }
                Err(what) => self.findings.push(what),
            }
            self.turns += 1;
        }
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("no history is that long")
}

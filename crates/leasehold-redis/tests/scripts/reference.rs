//! Random programs of every operation, step by step on the server and on `LockMachine`, the reference
//! for all stores. Fencing tokens are compared by their order, times to within a tolerance; on servers
//! whose clock can be stepped, time passes too.

use std::{collections::BTreeMap, slice, sync::Arc, time::Duration};

use leasehold_core::{
    Acquired, Binding, CapacityClaim, Clock as _, Confirmed, FencingToken, Generation, Grant,
    LockKind, ManualClock, Obstacle, Remaining, Renewed, Share, Token, Ttl, WatchFor, Watched,
    machine::{LockMachine, Step, Timeline},
};
use leasehold_redis::script::{
    AcquireReply, ConfirmReply, Extension, Pulse, RebindReply, WatchReply,
};
use test_servers::{Flavor, Server};

use crate::{
    Own,
    program::Draw,
    store::{Ask, Store, client, ttl},
};

pub(crate) const TESTS: &[Own] =
    &[("programs_agree_with_the_reference", programs_agree_with_the_reference)];

/// Where the clock can be stepped.
pub(crate) const TESTS_OF_TIME: &[Own] =
    &[("programs_agree_with_the_reference_while_time_passes", programs_agree_while_time_passes)];

const STEPS: usize = 400;

fn programs_agree_with_the_reference(flavor: Flavor) {
    let server = Server::start(flavor).expect("it is installed");
    for seed in 1..=12 {
        run(&server, seed, None);
    }
}

fn programs_agree_while_time_passes(flavor: Flavor) {
    let server = Server::builder(flavor).fake_clock().start().expect("it is installed");
    let mut stepped = 0;
    for seed in 101..=112 {
        run(&server, seed, Some(&mut stepped));
    }
}

/// `stepped`: by how much the server's clock was stepped before, when it may be.
fn run(server: &Server, seed: u64, mut stepped: Option<&mut u64>) {
    let kinds = [(LockKind::Mutex, 1), (LockKind::Semaphore, 4), (LockKind::RwLock, 1 << 29)];
    let (kind, capacity) = *Draw::new(seed).pick(&kinds);
    let store = Store::new(server, kind, &format!("program-{seed}"), capacity);
    let clock = ManualClock::new();
    let mut both = Both {
        machine: LockMachine::new(Arc::clone(&store.id), FencingToken(0)),
        timeline: Timeline::starting_now(Arc::new(clock.clone())),
        store,
        fences: BTreeMap::new(),
        asks: Vec::new(),
        watchers: Vec::new(),
        generation: 0,
        is_a_line: seed.is_multiple_of(2),
        tolerance: Duration::from_secs(5),
        time_passes: stepped.is_some(),
    };
    let mut draw = Draw::new(seed);
    for step in 0..STEPS {
        let context = format!("seed {seed}, step {step}");
        both.step(&mut draw, &context);
        if let Some(stepped) = &mut stepped
            && draw.one_in(12)
        {
            both.tell_everybody(&context);
            let seconds = 10 + 10 * draw.below(2);
            clock.advance(Duration::from_secs(seconds));
            **stepped += seconds;
            server.step_clock(i64::try_from(**stepped).expect("a few"));
            both.beat_everybody(&mut draw);
        }
    }
    both.end();
    assert!(stepped.is_none() || clock.now().0 > 0, "time has passed");
}

/// The server and the reference, and who has been seen by both.
struct Both {
    store: Store,
    machine: LockMachine,
    timeline: Timeline,
    /// Which fence of the server each of the reference's is.
    fences: BTreeMap<u64, u64>,
    asks: Vec<Ask>,
    watchers: Vec<(Token, WatchFor)>,
    generation: u64,
    /// Nothing but turns of who waits in line, which have short ways of their own.
    is_a_line: bool,
    tolerance: Duration,
    time_passes: bool,
}

/// Runs one operation on the reference.
macro_rules! on_machine {
    ($both:ident, |$machine:ident, $step:ident| $work:expr) => {{
        let mut step = Step::new(&$both.timeline);
        let ($machine, $step) = (&mut $both.machine, &mut step);
        let answer = $work;
        step.finish();
        answer
    }};
}

impl Both {
    fn step(&mut self, draw: &mut Draw, context: &str) {
        let kinds = if self.is_a_line && !draw.one_in(20) { 14 } else { 20 };
        match draw.below(kinds) {
            9..=12 if self.is_a_line => self.take_turns(draw, context),
            0..=6 => self.acquire(draw, context),
            7..=8 => self.confirm(draw, context),
            9..=12 => self.release(draw, context),
            13 => self.renew(draw, context),
            14 => self.extend(draw, context),
            15 => self.rebind(draw, context),
            16 => self.watch(draw, context),
            17 => self.unwatch(draw),
            18 => self.look(draw, context),
            _ => self.end_many(draw, context),
        }
        self.compare_counts(context);
    }

    fn acquire(&mut self, draw: &mut Draw, context: &str) {
        let ask = match draw.below(8) {
            0 if !self.asks.is_empty() => draw.pick(&self.asks).clone(),
            1 if !self.asks.is_empty() => {
                draw.pick(&self.asks).clone().with(|ask| ask.request.attempt.0 ^= 1)
            }
            _ => self.new_ask(draw),
        };
        let found = self.store.acquire(&ask);
        let client = ask.sender.client;
        let expected =
            on_machine!(self, |m, s| m.acquire(&ask.request, client, s)).expect("no fault");
        match (expected, found) {
            (Acquired::Granted(expected), AcquireReply::Granted(found)) => {
                self.compare_grants(&expected, &found, context);
            }
            (Acquired::Busy(expected), AcquireReply::Busy(found)) => {
                compare_obstacles(&expected, &found, context);
            }
            (Acquired::Refused(expected), AcquireReply::Refused(found)) => {
                assert_eq!(expected, found, "{context}");
            }
            (Acquired::Queued(expected), AcquireReply::Queued { obstacle, generation, .. }) => {
                compare_obstacles(&expected.obstacle, &obstacle, context);
                assert_eq!(expected.generation, generation, "{context}");
            }
            (expected, found) => panic!("{context}: {expected:?} is {found:?}"),
        }
        if !self.asks.iter().any(|known| known.token() == ask.token()) {
            self.asks.push(ask);
        }
    }

    fn new_ask(&mut self, draw: &mut Draw) -> Ask {
        let capacity = self.store.capacity;
        let share = match draw.below(6) {
            0 => Share::Whole,
            1 => Share::Permits(leasehold_core::Weight::new(2).expect("a weight")),
            _ => Share::ONE,
        };
        let (ttl, wait, of) = (draw_ttl(draw), !draw.one_in(4), draw.below(4));
        let is_a_line = self.is_a_line;
        let ttl = if is_a_line { ttl.or(Some(self::ttl(65_000))) } else { ttl };
        let otherwise = draw.one_in(10);
        let generation = self.generation.saturating_sub(u64::from(draw.one_in(5)));
        self.store.wants(draw.below(3)).with(|ask| {
            ask.sender.claim = Duration::from_secs(5);
            ask.request.share = share;
            ask.request.ttl = ttl;
            ask.request.wait = wait || is_a_line;
            ask.request.queue_limit = 6;
            ask.request.generation = (of == 0).then_some(Generation(generation));
            let other = leasehold_core::Capacity::new(capacity.min(3)).expect("a capacity");
            if otherwise {
                ask.request.capacity = CapacityClaim::Exactly(other);
            } else if of == 1 {
                ask.request.capacity = CapacityClaim::Registered { otherwise: other };
            }
        })
    }

    fn any_token(&mut self, draw: &mut Draw) -> Token {
        if self.asks.is_empty() || draw.one_in(20) {
            return Token::random();
        }
        // Mostly of those who came last: the others are gone.
        let recent = self.asks.len().saturating_sub(10);
        draw.pick(&self.asks[recent..]).token()
    }

    fn confirm(&mut self, draw: &mut Draw, context: &str) {
        let token = self.any_token(draw);
        self.confirm_one(&token, context);
    }

    fn confirm_one(&mut self, token: &Token, context: &str) {
        let found = self.store.confirm(token);
        let expected = on_machine!(self, |m, s| m.confirm(token, s));
        match (expected, found) {
            (Confirmed::Granted(expected), ConfirmReply::Told(Confirmed::Granted(found))) => {
                self.compare_grants(&expected, &found, context);
            }
            (Confirmed::Waiting, ConfirmReply::Waiting(_)) => {}
            (expected, ConfirmReply::Told(found)) => assert_eq!(expected, found, "{context}"),
            (expected, found) => panic!("{context}: {expected:?} is {found:?}"),
        }
    }

    fn release(&mut self, draw: &mut Draw, context: &str) {
        let token = self.any_token(draw);
        let found = match self.asks.iter().position(|ask| ask.token() == token) {
            // As a client that knows of copies on their way (rule L7), which never come. Where no
            // time passes, what is remembered of them would hide who holds (see `obstacle`).
            Some(at) if self.time_passes && draw.one_in(2) => {
                let ask = self.asks.remove(at);
                let until = self.store.time().after(Duration::from_secs(5 + draw.below(25)));
                self.store.abandon(&ask, until)
            }
            _ => self.store.release(&token),
        };
        let expected = on_machine!(self, |m, s| m.release(&token, s));
        use leasehold_core::Released::Waiter;
        match (&expected, &found) {
            (Waiter(Some(expected)), Waiter(Some(found))) => {
                compare_obstacles(expected, found, context);
            }
            _ => assert_eq!(expected, found, "{context}"),
        }
    }

    /// Whoever holds releases, and mostly the next confirms.
    fn take_turns(&mut self, draw: &mut Draw, context: &str) {
        for releases in [true, false] {
            let Some(holder) =
                self.store.inspect().and_then(|found| found.holders.first().cloned())
            else {
                return;
            };
            let named = |ask: &&Ask| ask.token().short_id() == holder.short_id;
            let Some(token) = self.asks.iter().find(named).map(Ask::token) else { return };
            if releases {
                let found = self.store.release(&token);
                assert_eq!(on_machine!(self, |m, s| m.release(&token, s)), found, "{context}");
                self.compare_counts(context);
            } else if !draw.one_in(4) {
                self.confirm_one(&token, context);
            }
        }
    }

    fn renew(&mut self, draw: &mut Draw, context: &str) {
        let token = self.any_token(draw);
        let found = self.store.renew(&token);
        let expected = on_machine!(self, |m, s| m.renew(&token, s));
        match (expected, found) {
            (Renewed::Held { remaining: expected }, Renewed::Held { remaining: found }) => {
                self.compare_times(expected, found, context);
            }
            _ => assert_eq!(expected, found, "{context}"),
        }
    }

    fn extend(&mut self, draw: &mut Draw, context: &str) {
        let (token, to) = (self.any_token(draw), draw_ttl(draw));
        let found = self.store.extend(&token, to);
        let expected = on_machine!(self, |m, s| m.extend(&token, to, s));
        assert_eq!(expected, found, "{context}");
    }

    fn rebind(&mut self, draw: &mut Draw, context: &str) {
        let (token, to) = (self.any_token(draw), draw_ttl(draw));
        let binding = if draw.one_in(2) { Binding::Token } else { Binding::Client };
        let to = Extension { binding, client: client(3), ttl: to };
        let found = self.store.rebind(&token, to);
        let expected = on_machine!(self, |m, s| m.rebind(&token, binding, to.ttl, to.client, s));
        match (expected, found) {
            (Ok(Some(expected)), RebindReply::Bound(found)) => {
                self.compare_grants(&expected, &found, context);
            }
            (Ok(None), RebindReply::Gone) | (Err(_), RebindReply::NeedsTtl) => {}
            (expected, found) => panic!("{context}: {expected:?} is {found:?}"),
        }
    }

    fn watch(&mut self, draw: &mut Draw, context: &str) {
        let kinds =
            [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable, WatchFor::Destroyed];
        let (id, what) = match self.watchers.is_empty() || draw.one_in(2) {
            true => (Token::random(), *draw.pick(&kinds)),
            false => draw.pick(&self.watchers).clone(),
        };
        let of = draw.one_in(2).then_some(self.generation.saturating_sub(draw.below(2)));
        self.watch_one(&id, what, of.map(Generation), context);
        self.watchers.retain(|(known, _)| *known != id);
        self.watchers.push((id, what));
    }

    fn watch_one(&mut self, id: &Token, what: WatchFor, of: Option<Generation>, context: &str) {
        let found = self.store.watch(id, what, of);
        let expected = on_machine!(self, |m, s| m.watch(of, id, what, client(9), s));
        let agree = matches!(
            (&expected, &found),
            (Watched::Done, WatchReply::Done)
                | (Watched::Waiting(_), WatchReply::Waiting(_))
                | (Watched::Destroyed, WatchReply::Destroyed)
        );
        assert!(agree, "{context}: {expected:?} is {found:?}");
    }

    fn unwatch(&mut self, draw: &mut Draw) {
        if self.watchers.is_empty() {
            return;
        }
        let at = draw.index(self.watchers.len());
        let (id, _) = self.watchers.remove(at);
        self.store.unwatch(&id);
        on_machine!(self, |m, s| m.unwatch(&id, s));
    }

    /// What only reads.
    fn look(&mut self, draw: &mut Draw, context: &str) {
        let token = self.any_token(draw);
        let found = self.store.remaining(&token);
        let expected = on_machine!(self, |m, s| m.remaining(&token, s));
        match (expected, found) {
            (Remaining::Left(expected), Remaining::Left(found)) => {
                self.compare_times(Some(expected), Some(found), context);
            }
            _ => assert_eq!(expected, found, "{context}"),
        }
        let found = self.store.inspect();
        let expected = on_machine!(self, |m, s| m.inspect(s));
        let (Some(expected), Some(found)) = (&expected, &found) else {
            assert!(expected.is_none() && found.is_none(), "{context}: {expected:?} is {found:?}");
            return;
        };
        assert_eq!(expected.holders.len(), found.holders.len(), "{context}");
        let waits = expected.waiters.iter().any(|waiter| waiter.short_id == token.short_id());
        let pulses = self.store.beat(slice::from_ref(&token), &[]).pulses;
        assert_eq!(pulses, [if waits { Pulse::Waits } else { Pulse::Look }], "{context}");
        for (expected, found) in expected.holders.iter().zip(&found.holders) {
            self.compare_times(expected.ttl_left, found.ttl_left, context);
            let said = |holder: &leasehold_core::HolderState| {
                let share = (holder.share, holder.binding, holder.claimed);
                (holder.short_id.clone(), share, holder.info.clone())
            };
            assert_eq!(said(expected), said(found), "{context}");
            self.compare_fences(expected.fencing, found.fencing, context);
        }
        let waiters = |state: &leasehold_core::LockState| {
            let said = state.waiters.iter();
            said.map(|waiter| (waiter.short_id.clone(), waiter.share)).collect::<Vec<_>>()
        };
        assert_eq!(waiters(expected), waiters(found), "{context}");
    }

    fn end_many(&mut self, draw: &mut Draw, context: &str) {
        if draw.one_in(3) {
            let of =
                draw.one_in(2).then_some(Generation(self.generation.saturating_sub(draw.below(2))));
            let found = self.store.destroy(of, context);
            let expected = on_machine!(self, |m, s| m.destroy(of, context, s));
            assert_eq!(expected, found, "{context}");
            if let leasehold_core::Destroyed::Now { next } = found {
                self.generation = next.0;
            }
        } else {
            let found = self.store.cancel_all(context);
            let expected = on_machine!(self, |m, s| m.cancel_all(context, s));
            assert_eq!(expected, found, "{context}");
        }
    }

    /// Before time passes: what waits to be told is remembered for half a minute only.
    fn tell_everybody(&mut self, context: &str) {
        for ask in self.asks.clone() {
            self.confirm_one(&ask.token(), context);
        }
        for (id, what) in self.watchers.clone() {
            self.watch_one(&id, what, None, context);
        }
    }

    /// What clients do while time passes: each for all that wait for a lock, be it one or many.
    fn beat_everybody(&mut self, draw: &mut Draw) {
        let mut waiters: Vec<Token> = self.asks.iter().map(Ask::token).collect();
        if draw.one_in(2) {
            for waiter in waiters.drain(..) {
                self.store.beat(&[waiter], &[]);
            }
        }
        let watchers: Vec<Token> = self.watchers.iter().map(|(id, _)| id.clone()).collect();
        if waiters.len() + watchers.len() > 0 {
            self.store.beat(&waiters, &watchers);
        }
    }

    fn end(&mut self) {
        for ask in self.asks.clone() {
            self.store.release(&ask.token());
        }
        for (id, _) in self.watchers.clone() {
            self.store.unwatch(&id);
        }
        assert_eq!(self.store.counts(), None, "everybody is gone");
    }

    fn compare_counts(&mut self, context: &str) {
        let found = self.store.counts();
        let expected = on_machine!(self, |m, s| m.counts(s));
        assert_eq!(expected, found, "{context}");
    }

    fn compare_grants(&mut self, expected: &Grant, found: &Grant, context: &str) {
        self.compare_fences(expected.fencing, found.fencing, context);
        self.compare_times(expected.remaining, found.remaining, context);
        let rest = |grant: &Grant| (grant.ttl, grant.generation, grant.capacity);
        assert_eq!(rest(expected), rest(found), "{context}");
    }

    fn compare_fences(&mut self, expected: FencingToken, found: FencingToken, context: &str) {
        let known = *self.fences.entry(expected.0).or_insert(found.0);
        assert_eq!(known, found.0, "{context}: one grant has one fencing token");
        let in_order = self.fences.values().zip(self.fences.values().skip(1)).all(|(a, b)| a < b);
        assert!(in_order, "{context}: fencing tokens grow with every grant");
    }

    fn compare_times(&self, expected: Option<Duration>, found: Option<Duration>, context: &str) {
        let close = match (expected, found) {
            (Some(expected), Some(found)) => expected.abs_diff(found) < self.tolerance,
            (expected, found) => expected == found,
        };
        assert!(close, "{context}: {expected:?} is {found:?}");
    }
}

fn compare_obstacles(expected: &Obstacle, found: &Obstacle, context: &str) {
    assert_eq!(expected.ahead, found.ahead, "{context}");
    assert_eq!(expected.holder.is_some(), found.holder.is_some(), "{context}");
}

/// None, or one that runs out between two steps of the clock.
fn draw_ttl(draw: &mut Draw) -> Option<Ttl> {
    (!draw.one_in(3)).then(|| ttl(1000 * (15 + 10 * draw.below(6))))
}

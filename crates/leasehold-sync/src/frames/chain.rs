//! The frames that enclose what is polled now.
//!
//! A frame is on the chain only while the future that it belongs to is polled: it is a value on
//! the stack of that poll, and the thread knows the innermost one. So a frame has no life of its
//! own that a dropped future could outlive, and nothing to clean up but that one pointer.

use std::{cell::Cell, marker::PhantomData, ptr, sync::Arc};

use parking_lot::Mutex;

use super::{
    ask::{Ask, Order},
    hold::{Hold, Meeting, Remembered, Share},
    once::OnceArc,
};
use crate::error::{Error, Place};

/// One frame, for the time of one poll.
pub(super) struct Frame<'a> {
    parent: *const Frame<'static>,
    kind: Kind<'a>,
    /// Where guards are remembered that were taken in this frame.
    guards: &'a Guards,
    place: Place,
    task: Task,
}

/// The task of Tokio that is polled. What is polled inside of a frame of another one, as a
/// `LocalSet` or a runtime polls the tasks that were spawned on it, is not in that frame (rule R1).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Task(#[cfg(feature = "tokio")] Option<tokio::task::Id>);

/// What a frame was opened for.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    /// `scope`.
    Scope,
    /// `run_exclusive` or `run_shared`, which hold.
    Run(&'a Hold),
    /// `.in_current_scope()`: what the frames held where it was called.
    Inherited(&'a [Remembered]),
}

/// The movable guards that were taken in one frame. Empty, and one word, for as long as there are
/// none.
pub(super) struct Guards(OnceArc<Mutex<Vec<Remembered>>>);

/// How many enclosing holds the graph is told of; the outer ones beyond are left out.
const HOLDS_MAX: usize = 32;

thread_local! {
    /// The innermost frame of what this thread polls.
    static INNERMOST: Cell<*const Frame<'static>> = const { Cell::new(ptr::null()) };
}

/// Polls within a frame.
#[inline]
pub(super) fn enter<R>(
    kind: Kind<'_>,
    guards: &Guards,
    place: Place,
    poll: impl FnOnce() -> R,
) -> R {
    let parent = INNERMOST.get();
    let frame = Frame { parent, kind, guards, place, task: Task::now() };
    // Restored also when the poll panics, and before `frame` goes.
    let _pop = Pop { parent, _frame: PhantomData::<&Frame<'_>> };
    INNERMOST.set((&raw const frame).cast());
    poll()
}

struct Pop<'a> {
    parent: *const Frame<'static>,
    _frame: PhantomData<&'a Frame<'a>>,
}

impl Drop for Pop<'_> {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.set(self.parent);
    }
}

/// Looks at the frames from the inside out, until `look` gives something.
#[inline]
fn find<R>(mut look: impl FnMut(&Frame<'_>) -> Option<R>) -> Option<R> {
    let mut at = INNERMOST.get();
    if at.is_null() {
        return None;
    }
    let task = Task::now();
    // SAFETY: the pointer is null or that of a frame in `enter` further up this stack, which takes
    // the pointer back before its frame goes; so is the parent of each. `look` gets no lifetime
    // that it could keep.
    while let Some(frame) = unsafe { at.as_ref() }
        && frame.task == task
    {
        if let Some(found) = look(frame) {
            return Some(found);
        }
        at = frame.parent;
    }
    None
}

/// Whether anything that is polled now is in a frame.
#[inline]
pub(crate) fn in_a_frame() -> bool {
    find(|_| Some(())).is_some()
}

/// Rule R2: what the enclosing frames hold, against what is asked for.
#[inline]
pub(super) fn check(ask: &Ask) -> Result<Option<Share>, Error> {
    if INNERMOST.get().is_null() { Ok(None) } else { check_frames(ask) }
}

#[inline(never)]
fn check_frames(ask: &Ask) -> Result<Option<Share>, Error> {
    find(|frame| frame.meet(ask)).transpose()
}

/// Remembers a movable guard in the innermost frame.
pub(super) fn remember(guard: Remembered) {
    let mut guard = Some(guard);
    find(|frame| {
        frame.guards.push(guard.take()?);
        Some(())
    });
}

/// What all enclosing frames hold now, and where the outermost was opened; for
/// `.in_current_scope()`.
pub(super) fn inherit() -> Option<(Vec<Remembered>, Place)> {
    let (mut all, mut task) = (Vec::new(), None);
    find(|frame| {
        match frame.kind {
            Kind::Scope => {}
            Kind::Run(hold) => all.push(hold.remember()),
            Kind::Inherited(inherited) => all.extend_from_slice(inherited),
        }
        frame.guards.each(|guard| all.push(guard.clone()));
        task = Some(frame.place);
        None::<()>
    });
    all.retain(|hold| !hold.is_over());
    task.map(|task| (all, task))
}

/// Goes through the structured holds that end only after what is polled now, inner ones first, and
/// gives the place of the outermost frame. Those beyond an `.in_current_scope()` do not wait for
/// what is polled now (rule R4), nor are more than [`HOLDS_MAX`] looked at.
pub(super) fn enclosing(otherwise: Place, mut each: impl FnMut(&Hold)) -> Place {
    let (mut left, mut task) = (HOLDS_MAX, otherwise);
    find(|frame| {
        match frame.kind {
            Kind::Run(hold) if left > 0 && hold.ask().order != Order::Apart => {
                each(hold);
                left -= 1;
            }
            Kind::Inherited(_) => left = 0,
            Kind::Run(_) | Kind::Scope => {}
        }
        task = frame.place;
        None::<()>
    });
    task
}

impl Task {
    #[inline]
    fn now() -> Self {
        Self(
            #[cfg(feature = "tokio")]
            tokio::task::try_id(),
        )
    }
}

impl Frame<'_> {
    #[inline]
    fn meet(&self, ask: &Ask) -> Option<Result<Share, Error>> {
        match self.kind {
            Kind::Scope => {}
            Kind::Run(hold) => {
                if let Some(met) = told(hold.meet(ask), ask, hold.ask()) {
                    return Some(met);
                }
            }
            Kind::Inherited(inherited) => {
                let met = inherited.iter().find_map(|held| told(held.meet(ask), ask, &held.ask));
                if met.is_some() {
                    return met;
                }
            }
        }
        self.guards.meet(ask)
    }
}

#[inline]
fn told(meeting: Meeting, ask: &Ask, held: &Ask) -> Option<Result<Share, Error>> {
    match meeting {
        Meeting::Nothing => None,
        Meeting::Shares(share) => Some(Ok(share)),
        Meeting::Reentrant => Some(Err(ask.reentrant(held.place))),
    }
}

impl Guards {
    pub(super) const fn new() -> Self {
        Self(OnceArc::new())
    }

    #[inline]
    fn meet(&self, ask: &Ask) -> Option<Result<Share, Error>> {
        let guards = self.0.get()?.lock();
        guards.iter().find_map(|held| told(held.meet(ask), ask, &held.ask))
    }

    fn each(&self, look: impl FnMut(&Remembered)) {
        if let Some(guards) = self.0.get() {
            guards.lock().iter().for_each(look);
        }
    }

    fn push(&self, guard: Remembered) {
        let guards = self.0.share(Arc::default);
        let mut guards = guards.lock();
        // Those that are over go when the list would grow: so it stays within twice the live ones.
        if guards.len() == guards.capacity() {
            guards.retain(|guard| !guard.is_over());
        }
        guards.push(guard);
    }
}

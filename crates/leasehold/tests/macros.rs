//! Methods under `#[exclusive]` and `#[shared]`, as they run.
#![cfg(feature = "macros")]

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicU32, Ordering},
    task::{Context, Poll, Waker},
};

use leasehold::{Error, ErrorKind, Mutex, RwLock, exclusive, shared};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn done<F: Future + ?Sized>(future: Pin<&mut F>) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready yet"),
    }
}

async fn pause() {
    let mut paused = false;
    poll_fn(|_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

#[derive(Default)]
struct Account {
    state: RwLock<u32>,
    inside: AtomicU32,
}

impl Account {
    #[exclusive(self.state as n)]
    async fn add(&self, more: u32) -> Result<u32, Error> {
        let before = *n;
        pause().await;
        *n = before + more;
        Ok(*n)
    }

    #[shared(self.state as n)]
    async fn balance(&self) -> Result<u32, Error> {
        self.inside.fetch_add(1, Ordering::Relaxed);
        pause().await;
        Ok(*n)
    }

    #[exclusive(self.state)]
    async fn add_twice(&self, more: u32) -> Result<u32, Error> {
        pause().await;
        self.add(more).await?;
        self.add(more).await
    }

    #[exclusive(self.state)]
    async fn add_balance(&self) -> Result<u32, Error> {
        self.balance().await
    }

    #[shared(self.state)]
    async fn read_and_add(&self) -> Result<u32, Error> {
        self.add(1).await
    }

    #[shared(self.state)]
    async fn balances(&self) -> Result<(u32, u32), Error> {
        let (mut one, mut two) = (pin!(self.balance()), pin!(self.balance()));
        assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
        assert_eq!(self.inside.load(Ordering::Relaxed), 2);
        pause().await;
        Ok((done(one)?, done(two)?))
    }

    #[exclusive(self.state)]
    async fn function_form(&self) -> Result<u32, Error> {
        Ok(self.state.run_exclusive(async |n| *n).await?)
    }

    #[exclusive(self.state)]
    async fn pay(&self, to: &Self, back: bool) -> Result<u32, Error> {
        if back { Box::pin(to.pay(self, false)).await } else { Ok(5) }
    }

    #[exclusive(self.state)]
    async fn fail(&self) -> Result<u32, Box<dyn std::error::Error>> {
        Err("on purpose")?
    }
}

#[test]
fn ao9_a_read_modify_write_method_loses_no_update() {
    let account = Account::default();
    {
        let (mut one, mut two) = (pin!(account.add(1)), pin!(account.add(1)));
        assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
        assert_eq!(done(one), Ok(1));
        assert!(poll(two.as_mut()).is_pending());
        assert_eq!(done(two), Ok(2));
    }
    assert_eq!(account.state.into_inner(), 2);
}

#[test]
fn ao10_two_calls_of_a_shared_method_overlap() {
    let account = Account::default();
    let (mut one, mut two) = (pin!(account.balance()), pin!(account.balance()));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    assert_eq!(account.inside.load(Ordering::Relaxed), 2);
    assert_eq!((done(one), done(two)), (Ok(0), Ok(0)));
}

#[test]
fn ao12_a_method_that_fails_or_panics_frees_the_lock() {
    struct Fragile(Mutex<u32>);
    impl Fragile {
        #[exclusive(self.0)]
        async fn panic(&self) -> Result<u32, Error> {
            panic!("on purpose")
        }
    }
    let account = Account::default();
    assert_eq!(done(pin!(account.fail())).unwrap_err().to_string(), "on purpose");
    assert!(!account.state.is_locked());
    let fragile = Fragile(Mutex::new(0));
    let panics = std::panic::AssertUnwindSafe(|| done(pin!(fragile.panic())));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(!fragile.0.is_locked());
}

#[test]
fn ao15_an_exclusive_method_that_calls_one_is_told_with_both_places() {
    let account = Account::default();
    let mut twice = pin!(account.add_twice(1));
    assert!(poll(twice.as_mut()).is_pending());
    let error = done(twice).unwrap_err();
    let ErrorKind::Reentrant { held, asked } = error.kind() else { panic!("{error}") };
    // The places are those of the attributes.
    let source = include_str!("macros.rs").lines().collect::<Vec<_>>();
    let line = |place: &std::panic::Location<'_>| {
        source[usize::try_from(place.line()).unwrap() - 1].trim()
    };
    assert_eq!(line(held), "#[exclusive(self.state)]");
    assert_eq!(line(asked), "#[exclusive(self.state as n)]");
}

#[test]
fn ao16_ao17_reads_and_writes_within_one_another_are_told() {
    let account = Account::default();
    assert!(done(pin!(account.add_balance())).unwrap_err().is_reentrant());
    assert!(done(pin!(account.read_and_add())).unwrap_err().is_reentrant());
}

#[test]
fn ao18_shared_methods_within_a_shared_one_overlap() {
    let account = Account::default();
    let mut outer = pin!(account.balances());
    assert!(poll(outer.as_mut()).is_pending());
    assert_eq!(account.state.readers(), 1);
    assert_eq!(done(outer), Ok((0, 0)));
    assert!(!account.state.is_locked());
}

#[test]
fn ao19_the_function_form_within_an_exclusive_method_is_told() {
    let account = Account::default();
    assert!(done(pin!(account.function_form())).unwrap_err().is_reentrant());
}

#[test]
fn ao20_reentrancy_is_told_after_an_await() {
    let account = Account::default();
    let mut twice = pin!(account.add_twice(1));
    assert!(poll(twice.as_mut()).is_pending());
    assert!(done(twice).unwrap_err().is_reentrant());
}

#[test]
fn ao21_reentrancy_is_told_across_several_objects() {
    let (a, b) = (Account::default(), Account::default());
    // A pays B, which pays back into A.
    let told = done(pin!(a.state.run_exclusive(async |_| b.pay(&a, true).await)));
    assert!(told.unwrap().unwrap_err().is_reentrant());
    assert_eq!(done(pin!(b.pay(&a, true))), Ok(5));
}

/// Without an argument: the object lock of `self`, and no field for it.
struct Bare {
    n: AtomicU32,
}

impl Bare {
    #[exclusive]
    async fn add(&self, more: u32) -> Result<u32, Error> {
        let before = self.n.load(Ordering::Relaxed);
        pause().await;
        self.n.store(before + more, Ordering::Relaxed);
        Ok(before + more)
    }

    #[exclusive]
    async fn add_twice(&self, more: u32) -> Result<u32, Error> {
        self.add(more).await?;
        self.add(more).await
    }

    #[shared]
    async fn get(&self) -> Result<u32, Error> {
        Ok(self.n.load(Ordering::Relaxed))
    }

    #[shared]
    async fn get_twice(&self) -> Result<u32, Error> {
        Ok(self.get().await? + self.get().await?)
    }
}

#[test]
fn ao9_ao15_ao18_methods_without_a_lock_of_their_own_use_that_of_the_object() {
    let bare = Bare { n: AtomicU32::new(0) };
    let (mut one, mut two) = (pin!(bare.add(1)), pin!(bare.add(1)));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    assert_eq!(done(one), Ok(1));
    assert!(poll(two.as_mut()).is_pending());
    assert_eq!(done(two), Ok(2));
    assert!(done(pin!(bare.add_twice(1))).unwrap_err().is_reentrant());
    assert_eq!(done(pin!(bare.get_twice())), Ok(4));
}

#[test]
fn ao22_independent_calls_of_one_method_end_in_the_order_of_the_calls() {
    struct Slow(Mutex<Vec<u32>>);
    impl Slow {
        #[exclusive(self.0 as order)]
        async fn call(&self, id: u32, pauses: &Cell<u32>) -> Result<(), Error> {
            for _ in 0..pauses.get() {
                pause().await;
            }
            order.push(id);
            Ok(())
        }
    }
    let slow = Slow(Mutex::new(Vec::new()));
    let pauses = [50, 0, 10].map(Cell::new);
    {
        let calls = (0_u32..).zip(&pauses).map(|(id, pauses)| Box::pin(slow.call(id, pauses)));
        let mut calls = calls.collect::<Vec<_>>();
        for _ in 0..70 {
            calls.retain_mut(|call| match poll(call.as_mut()) {
                Poll::Ready(told) => told.is_err(),
                Poll::Pending => true,
            });
        }
        assert!(calls.is_empty());
    }
    assert_eq!(slow.0.into_inner(), [0, 1, 2]);
}

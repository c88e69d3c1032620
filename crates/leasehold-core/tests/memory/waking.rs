//! Wakers run outside of the store's locks, and a blocked thread is woken by the machine's clock.

use std::{
    sync::{Arc, Mutex, mpsc::channel},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use leasehold_core::{Acquire, Backend, MemoryBackend, MemoryStore};

use crate::kit::{Ask, Kit, answer};

/// Calls the store from within the wake, on the very lock.
struct Reentrant {
    client: Arc<MemoryBackend>,
    request: Acquire,
    seen: Mutex<u32>,
}

impl Wake for Reentrant {
    fn wake(self: Arc<Self>) {
        self.client.confirmed(&self.request);
        self.client.gives_back(&self.request);
        *self.seen.lock().unwrap() += 1;
    }
}

/// A row of waiters, each of which confirms and gives back inside of its waker: had the store its
/// lock held, this would not end.
#[test]
fn a_waker_may_call_the_store() {
    let kit = Kit::mutex();
    let client = Arc::new(kit.client());
    let holder = kit.request();
    client.granted(&holder);
    let wakers: Vec<_> = (0..5)
        .map(|_| {
            let request = kit.request();
            let place = client.queued(&request);
            let seen = Mutex::new(0);
            let waker = Arc::new(Reentrant { client: Arc::clone(&client), request, seen });
            let waits = Waker::from(Arc::clone(&waker));
            assert_eq!(place.wake.poll_notified(&Context::from_waker(&waits)), Poll::Pending);
            waker
        })
        .collect();
    client.gives_back(&holder);
    for waker in wakers {
        assert_eq!(*waker.seen.lock().unwrap(), 1);
    }
    assert_eq!(kit.used(), 0);
}

/// Rule W9, acceptance P4: on the machine's clock, with no runtime and no call by anybody.
#[test]
fn a_blocked_thread_is_woken_at_the_expiry_it_waits_for() {
    let store = MemoryStore::new();
    let client = Arc::new(store.client());
    let kit = Kit::mutex();
    let start = Instant::now();
    client.granted(&kit.lasting(50));
    let waiter = kit.lasting(1_000);
    let place = client.queued(&waiter);
    let (told, woken) = channel();
    struct Tell(std::sync::mpsc::Sender<()>);
    impl Wake for Tell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    let waker = Waker::from(Arc::new(Tell(told)));
    if place.wake.poll_notified(&Context::from_waker(&waker)).is_pending() {
        woken.recv_timeout(Duration::from_secs(10)).unwrap();
    }
    assert!(start.elapsed() >= Duration::from_millis(50));
    client.confirmed(&waiter);
}

/// Rule Q4 under contention: threads of two clients, each section alone, each permit accounted for.
#[test]
fn threads_take_turns() {
    const THREADS: usize = 8;
    const TURNS: usize = 500;
    let kit = Kit::mutex();
    let store = MemoryStore::new();
    let clients = [Arc::new(store.client()), Arc::new(store.client())];
    let fences = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let (client, fences) = (Arc::clone(&clients[n % 2]), Arc::clone(&fences));
            let lock = Arc::clone(&kit.lock);
            let template = kit.lasting(60_000);
            thread::spawn(move || {
                for turn in 0..TURNS {
                    let request = Acquire {
                        token: leasehold_core::Token::random(),
                        attempt: leasehold_core::AttemptId::random(),
                        ..template.clone()
                    };
                    let fence = enter(&client, &request);
                    if turn % 7 == 3 {
                        // A waiter that gives up at some point of its way.
                        let other =
                            Acquire { token: leasehold_core::Token::random(), ..request.clone() };
                        drop(answer(client.acquire(&other)));
                        client.abandon(&lock, &other.token);
                    }
                    let section = fences.try_lock();
                    section.expect("alone in the section").push(fence);
                    client.gives_back(&request);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let fences = fences.lock().unwrap();
    assert_eq!(fences.len(), THREADS * TURNS);
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "fencing tokens out of order");
    assert!(answer(clients[0].counts(&kit.lock)).is_none());
}

/// Blocks this thread until the request holds.
fn enter(client: &MemoryBackend, request: &Acquire) -> u64 {
    use leasehold_core::{Acquired, Confirmed};
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let place = match answer(client.acquire(request)) {
        Acquired::Granted(grant) => return grant.fencing.get(),
        Acquired::Queued(place) => place,
        other => panic!("{other:?}"),
    };
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.wake.poll_notified(&Context::from_waker(&waker)).is_pending() {
        assert!(Instant::now() < deadline, "never woken");
        thread::park_timeout(Duration::from_secs(1));
    }
    match answer(client.confirm(&request.lock, &request.token)) {
        Confirmed::Granted(grant) => grant.fencing.get(),
        other => panic!("{other:?}"),
    }
}

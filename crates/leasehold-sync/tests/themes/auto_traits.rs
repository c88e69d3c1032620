//! `Send`, `Sync` and `Unpin` of every public type are part of the API.

use std::{cell::Cell, marker::PhantomPinned, rc::Rc, sync::MutexGuard as NotSend};

use leasehold_sync::{
    Acquire, AcquireWith, CapacityError, Error, ErrorKind, LockKind, MappedRwLockWriteGuard, Mutex,
    MutexGuard, OwnedMappedRwLockWriteGuard, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockUpgradableGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock,
    RwLockReadGuard, RwLockUpgradableGuard, RwLockWriteGuard, Semaphore, SemaphorePermit, Upgrade,
    Watch,
};

/// Whether a type has a trait, found out by which method is the nearer one.
macro_rules! has {
    ($trait:ident, $type:ty) => {{
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "found only where the nearer one is missing")]
        trait No {
            const ANSWER: bool = false;
        }
        impl<T: ?Sized> No for Probe<T> {}
        #[allow(dead_code, reason = "the answer is the point, not the place")]
        impl<T: ?Sized + $trait> Probe<T> {
            const ANSWER: bool = true;
        }
        <Probe<$type>>::ANSWER
    }};
}

macro_rules! pinned {
    ($($type:ty => $send:literal $sync:literal $unpin:literal;)*) => {
        $(
            let found = (has!(Send, $type), has!(Sync, $type), has!(Unpin, $type));
            assert_eq!(found, ($send, $sync, $unpin), stringify!($type));
        )*
    };
}

/// `Send` and not `Sync`.
type Celled = Cell<u8>;
/// `Sync` and not `Send`.
type Guarded = NotSend<'static, u8>;
/// Neither.
type Counted = Rc<u8>;

#[test]
fn locks_and_errors() {
    pinned! {
        Semaphore => true true true;
        Mutex<u8> => true true true;
        Mutex<Celled> => true true true;
        Mutex<Guarded> => false false true;
        Mutex<Counted> => false false true;
        Mutex<PhantomPinned> => true true false;
        RwLock<u8> => true true true;
        RwLock<Celled> => true false true;
        RwLock<Guarded> => false false true;
        RwLock<PhantomPinned> => true true false;
        Error => true true true;
        ErrorKind => true true true;
        LockKind => true true true;
        CapacityError => true true true;
    }
}

#[test]
fn guards() {
    pinned! {
        SemaphorePermit<'static> => true true true;
        OwnedSemaphorePermit => true true true;
        MutexGuard<'static, u8> => true true true;
        MutexGuard<'static, Celled> => true false true;
        MutexGuard<'static, Guarded> => false true true;
        OwnedMutexGuard<u8> => true true true;
        OwnedMutexGuard<Celled> => true false true;
        OwnedMutexGuard<Guarded> => false false true;
        OwnedMutexGuard<u8, Counted> => false false true;
        RwLockReadGuard<'static, u8> => true true true;
        RwLockReadGuard<'static, Celled> => false false true;
        RwLockReadGuard<'static, Guarded> => true true true;
        OwnedRwLockReadGuard<u8> => true true true;
        OwnedRwLockReadGuard<Celled> => false false true;
        OwnedRwLockReadGuard<Guarded> => false false true;
        RwLockWriteGuard<'static, u8> => true true true;
        RwLockWriteGuard<'static, Celled> => false false true;
        RwLockWriteGuard<'static, Guarded> => false false true;
        OwnedRwLockWriteGuard<u8> => true true true;
        OwnedRwLockWriteGuard<Celled> => false false true;
        MappedRwLockWriteGuard<'static, u8> => true true true;
        MappedRwLockWriteGuard<'static, Celled> => true false true;
        MappedRwLockWriteGuard<'static, Counted> => false false true;
        OwnedMappedRwLockWriteGuard<u8, Celled> => true false true;
        OwnedMappedRwLockWriteGuard<Celled, u8> => false false true;
        RwLockUpgradableGuard<'static, u8> => true true true;
        RwLockUpgradableGuard<'static, Celled> => false false true;
        OwnedRwLockUpgradableGuard<u8> => true true true;
        OwnedRwLockUpgradableGuard<Counted> => false false true;
    }
}

#[test]
fn futures() {
    pinned! {
        Watch<'static> => true true false;
        Acquire<MutexGuard<'static, u8>> => true true false;
        Acquire<MutexGuard<'static, Celled>> => true true false;
        Acquire<MutexGuard<'static, Counted>> => false false false;
        Acquire<OwnedMutexGuard<u8>> => true true false;
        Acquire<RwLockReadGuard<'static, u8>> => true true false;
        Acquire<RwLockReadGuard<'static, Celled>> => false false false;
        Acquire<Upgrade<RwLockWriteGuard<'static, u8>>> => true true false;
        Acquire<SemaphorePermit<'static>> => true true false;
        AcquireWith<SemaphorePermit<'static>> => true true false;
        AcquireWith<MutexGuard<'static, u8>, Counted> => false false false;
    }
}

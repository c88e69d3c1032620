//! [`ObjectLock`]: a lock for an object that has none (rule K5).

use std::{
    any::TypeId,
    fmt,
    future::Future,
    hash::BuildHasher,
    panic::Location,
    sync::{Arc, LazyLock},
};

use crate::{
    error::{Error, LockKind, Place},
    keyed::{
        AcquireKeyed, AcquireKeyedWith, KeyHash, KeyedGuard, KeyedSource,
        ask::Ask,
        checking::run,
        guard::{Recorded, sealed},
        shards,
        table::{Table, Wanted},
    },
};

/// The read-write lock of an object, known by where the object is and what type it has.
///
/// No field is needed in the object, and nothing is kept while nobody holds or waits. An object is
/// a shared one, `Arc<T>`, or one that is borrowed: futures and guards keep the share or the borrow,
/// so the place cannot become another object's meanwhile. The two ways meet: `of_arc(&object)` and
/// `of(&*object)` are the same lock.
///
/// A guard that is forgotten (`std::mem::forget`) holds for ever. Of an `Arc` it keeps the object, too;
/// but a borrowed object may end, and then the next one of its type in the same place is locked as
/// well: nothing but the place tells the two apart.
///
/// A trait object, `Arc<dyn Trait>`, has another type than what it was made from, and so another
/// lock: take the lock always in the same form.
///
/// The lock guards whatever the callers agree on. To guard data, take a [`Mutex`](crate::Mutex) or a
/// [`RwLock`](crate::RwLock), from which nobody can forget to lock.
///
/// # Examples
///
/// ```
/// use leasehold_sync::ObjectLock;
///
/// struct Printer {
///     pages: std::cell::Cell<u32>,
/// }
///
/// impl Printer {
///     async fn print(&self) -> Result<(), leasehold_sync::Error> {
///         let _alone = ObjectLock::of(self)?.write().await?;
///         self.pages.set(self.pages.get() + 1);
///         Ok(())
///     }
/// }
///
/// # pollster::block_on(async {
/// let printer = Printer { pages: 0.into() };
/// printer.print().await?;
/// assert_eq!(printer.pages.get(), 1);
/// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ObjectLock<P>(P);

/// What an [`ObjectLock`] can be of: `&T` and `Arc<T>`. Implemented by nothing else.
pub trait Object: Clone + seal::Sealed {
    #[doc(hidden)]
    fn key(&self) -> ObjectKey;
}

mod seal {
    /// Keeps [`Object`](super::Object) within this crate.
    pub trait Sealed {}
}

/// No two objects that live at once have the same: things of one type are in different places,
/// unless they have no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct ObjectKey {
    address: usize,
    type_id: TypeId,
}

/// The one global table, which rule K5 names: an object has no place for a lock of its own.
static OBJECTS: LazyLock<Objects> =
    LazyLock::new(|| Objects { table: Table::new(shards()), hash: KeyHash::default() });

struct Objects {
    table: Table<ObjectKey>,
    hash: KeyHash,
}

impl<'a, T: 'static> ObjectLock<&'a T> {
    /// The lock of a borrowed object.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: a type without size, as many of its objects may be in one place.
    pub fn of(object: &'a T) -> Result<Self, Error> {
        if size_of::<T>() == 0 {
            let message = format!("{} has no size, so its objects have no identity", name::<T>());
            return Err(Error::invalid(LockKind::ObjectWrite, message));
        }
        Ok(Self(object))
    }
}

impl<T: ?Sized + 'static> ObjectLock<Arc<T>> {
    /// The lock of a shared object.
    pub fn of_arc(object: &Arc<T>) -> Self {
        Self(Arc::clone(object))
    }
}

impl<P: Object> ObjectLock<P> {
    /// Waits for a read: shared with other reads of the object.
    ///
    /// # Fairness
    ///
    /// Granted in the order of arrival, neighbouring reads together (rule K2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that it was in the
    /// way of.
    ///
    /// # Errors
    ///
    /// Inside of a frame, `Reentrant` and `Deadlock` (rules R2 and R4); with a timeout or a
    /// cancellation, theirs.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_sync::ObjectLock;
    ///
    /// # pollster::block_on(async {
    /// let object = std::sync::Arc::new("anything");
    /// let lock = ObjectLock::of_arc(&object);
    /// let both = (lock.read().await?, lock.read().await?);
    /// # drop(both);
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn read(&self) -> AcquireKeyedWith<Self> {
        self.checked(Ask::Read)
    }

    /// Waits for a write: alone on the object.
    ///
    /// # Fairness
    ///
    /// Granted in the order of arrival (rule K2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that it was in the
    /// way of.
    ///
    /// # Errors
    ///
    /// Inside of a frame, `Reentrant` and `Deadlock` (rules R2 and R4); with a timeout or a
    /// cancellation, theirs.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_sync::ObjectLock;
    ///
    /// # pollster::block_on(async {
    /// let object = std::sync::Arc::new("anything");
    /// let _alone = ObjectLock::of_arc(&object).write().await?;
    /// assert!(ObjectLock::of(&*object)?.try_read().is_none());
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn write(&self) -> AcquireKeyedWith<Self> {
        self.checked(Ask::Write)
    }

    /// A read, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also behind a queued write.
    ///
    /// # Cancel safety
    ///
    /// Nothing to cancel: it does not wait.
    ///
    /// # Errors
    ///
    /// None: busy is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// let object = std::sync::Arc::new("anything");
    /// let guard = leasehold_sync::ObjectLock::of_arc(&object).try_read();
    /// assert!(guard.is_some());
    /// ```
    pub fn try_read(&self) -> Option<KeyedGuard<Self>> {
        self.ask(Ask::Read).try_now()
    }

    /// A write, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also behind a queued request.
    ///
    /// # Cancel safety
    ///
    /// Nothing to cancel: it does not wait.
    ///
    /// # Errors
    ///
    /// None: busy is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// let object = std::sync::Arc::new("anything");
    /// let lock = leasehold_sync::ObjectLock::of_arc(&object);
    /// let guard = lock.try_write();
    /// assert!(guard.is_some() && lock.try_write().is_none());
    /// ```
    pub fn try_write(&self) -> Option<KeyedGuard<Self>> {
        self.ask(Ask::Write).try_now()
    }

    #[track_caller]
    fn checked(&self, ask: Ask) -> AcquireKeyedWith<Self> {
        AcquireKeyedWith::new(self.ask(ask)).checked(Location::caller())
    }

    fn ask(&self, ask: Ask) -> AcquireKeyed<Self> {
        let key = self.0.key();
        let hash = OBJECTS.hash.hash_one(key);
        AcquireKeyed::new(self.clone(), Wanted::key(ask, key, hash))
    }
}

/// Runs `work` alone on that object, in a frame of its own: what `#[exclusive]` expands to.
#[doc(hidden)]
#[track_caller]
pub fn object_exclusive<T: 'static, R>(
    object: &T,
    work: impl AsyncFnOnce() -> R,
) -> impl Future<Output = Result<R, Error>> {
    let request = ObjectLock::of(object).map(|lock| lock.ask(Ask::Write));
    run_there(request, Location::caller(), work)
}

/// Runs `work` while nobody writes that object: what `#[shared]` expands to.
#[doc(hidden)]
#[track_caller]
pub fn object_shared<T: 'static, R>(
    object: &T,
    work: impl AsyncFnOnce() -> R,
) -> impl Future<Output = Result<R, Error>> {
    let request = ObjectLock::of(object).map(|lock| lock.ask(Ask::Read));
    run_there(request, Location::caller(), work)
}

async fn run_there<P: Object, R>(
    request: Result<AcquireKeyed<ObjectLock<P>>, Error>,
    place: Place,
    work: impl AsyncFnOnce() -> R,
) -> Result<R, Error> {
    run(AcquireKeyedWith::new(request?), place, work).await
}

impl<T> seal::Sealed for &T {}

impl<T: 'static> Object for &T {
    fn key(&self) -> ObjectKey {
        ObjectKey { address: std::ptr::from_ref(*self).addr(), type_id: TypeId::of::<T>() }
    }
}

impl<T: ?Sized> seal::Sealed for Arc<T> {}

impl<T: ?Sized + 'static> Object for Arc<T> {
    fn key(&self) -> ObjectKey {
        ObjectKey { address: Self::as_ptr(self).addr(), type_id: TypeId::of::<T>() }
    }
}

impl<P> sealed::Sealed for ObjectLock<P> {}

impl<P: Object> KeyedSource for ObjectLock<P> {
    type Key = ObjectKey;
    type Record = Recorded;

    #[inline]
    fn table(&self) -> &Table<ObjectKey> {
        &OBJECTS.table
    }

    fn kind(ask: Ask) -> LockKind {
        if ask.access().writes() { LockKind::ObjectWrite } else { LockKind::ObjectRead }
    }

    fn of() -> &'static str {
        name::<P>()
    }
}

impl<P> fmt::Debug for ObjectLock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectLock").field(&format_args!("{}", name::<P>())).finish()
    }
}

fn name<T: ?Sized>() -> &'static str {
    std::any::type_name::<T>()
}

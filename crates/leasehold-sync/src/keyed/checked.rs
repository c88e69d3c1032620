//! [`CheckedKeyedLock`], and work in a frame that holds a key.

use std::{
    future::Future,
    hash::{BuildHasher, Hash},
    panic::Location,
    sync::Arc,
};

use super::{
    KeyHash, KeyedLock,
    acquire::{AcquireKeyed, AcquireKeyedWith},
    ask::Ask,
    checking::run,
    guard::{KeyedGuard, KeyedSource},
    table::Wanted,
};
use crate::{
    cancel::CancelReason,
    error::{Error, Place},
};

/// A [`KeyedLock`] whose requests are checked (rule K4): inside of a frame, one that would wait for
/// itself fails with `Reentrant`, and a read within a read shares the outer one's grant (rule R2).
///
/// So each request gives a `Result`. See [`KeyedLock::checked`].
#[derive(Debug)]
pub struct CheckedKeyedLock<K, S = KeyHash>(KeyedLock<K, S>);

impl<K, S> KeyedLock<K, S> {
    /// The same lock with every request checked.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_sync::{KeyedLock, scope};
    ///
    /// # pollster::block_on(async {
    /// let keys = KeyedLock::new().checked();
    /// scope(async {
    ///     let _held = keys.write(1).await?;
    ///     assert!(keys.read(1).await.unwrap_err().is_reentrant());
    ///     assert!(keys.read_all().await.unwrap_err().is_reentrant());
    ///     keys.write(2).await.map(drop)
    /// })
    /// .await?;
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[must_use]
    pub const fn checked(self) -> CheckedKeyedLock<K, S> {
        CheckedKeyedLock(self)
    }
}

impl<K, S> CheckedKeyedLock<K, S> {
    /// The lock without checks: its requests are neither checked nor recorded (rule R3).
    pub const fn unchecked(&self) -> &KeyedLock<K, S> {
        &self.0
    }
}

/// What the acquiring methods of a checked keyed lock have in common: those that borrow it, those
/// whose guard keeps it alive, and those that never wait.
macro_rules! requests {
    ($($(#[$doc:meta])* $ask:ident: $name:ident, $owned:ident, $try:ident, $try_owned:ident($($key:ident)?);)*) => {
        impl<K: Eq + Hash, S: BuildHasher> CheckedKeyedLock<K, S> {
            $(
                $(#[$doc])*
                ///
                /// # Fairness
                ///
                /// As the request of a [`KeyedLock`].
                ///
                /// # Cancel safety
                ///
                /// Dropping the future takes the request back.
                ///
                /// # Errors
                ///
                /// `Reentrant` and `Deadlock` (rules R2 and R4), besides those of a timeout or a
                /// cancellation.
                ///
                /// # Examples
                ///
                /// See [`KeyedLock::checked`].
                #[track_caller]
                pub fn $name(&self $(, $key: K)?) -> AcquireKeyedWith<&Self> {
                    let wanted = self.wanted(Ask::$ask, requests!(@ $($key)?));
                    asking(self, wanted, Location::caller())
                }

                #[doc = concat!("As [`", stringify!($name), "`](Self::", stringify!($name), "), with a guard that keeps the lock alive.")]
                #[track_caller]
                pub fn $owned(self: Arc<Self> $(, $key: K)?) -> AcquireKeyedWith<Arc<Self>> {
                    let wanted = self.wanted(Ask::$ask, requests!(@ $($key)?));
                    asking(self, wanted, Location::caller())
                }

                #[doc = concat!("As [`", stringify!($name), "`](Self::", stringify!($name), "), if nothing earlier is in its way. Never waits.")]
                ///
                /// A frame remembers its guard as any other, and a read within a read shares the
                /// outer one's grant.
                ///
                /// # Fairness
                ///
                /// It never barges: `None` also behind a queued request that it conflicts with.
                ///
                /// # Cancel safety
                ///
                /// Nothing to cancel: it does not wait.
                ///
                /// # Errors
                ///
                /// None: busy is `None`, also if an enclosing frame is who holds it.
                ///
                /// # Examples
                ///
                /// See [`KeyedLock::try_write`].
                #[track_caller]
                pub fn $try(&self $(, $key: K)?) -> Option<KeyedGuard<&Self>> {
                    self.$name($($key)?).try_checked()
                }

                #[doc = concat!("As [`", stringify!($try), "`](Self::", stringify!($try), "), with a guard that keeps the lock alive.")]
                #[track_caller]
                pub fn $try_owned(self: Arc<Self> $(, $key: K)?) -> Option<KeyedGuard<Arc<Self>>> {
                    self.$owned($($key)?).try_checked()
                }
            )*

            fn wanted(&self, ask: Ask, key: Option<K>) -> Wanted<K> {
                match key {
                    Some(key) => self.0.wanted(ask, key),
                    None => Wanted::whole(ask),
                }
            }
        }
    };
    (@ $key:ident) => { Some($key) };
    (@) => { None };
}

requests! {
    /// Waits for a read of that key.
    Read: read, read_owned, try_read, try_read_owned(key);
    /// Waits for a write of that key.
    Write: write, write_owned, try_write, try_write_owned(key);
    /// Waits for a read of the whole set.
    ReadAll: read_all, read_all_owned, try_read_all, try_read_all_owned();
    /// Waits for a write of the whole set.
    WriteAll: write_all, write_all_owned, try_write_all, try_write_all_owned();
}

fn asking<L: KeyedSource>(source: L, wanted: Wanted<L::Key>, place: Place) -> AcquireKeyedWith<L> {
    AcquireKeyedWith::new(AcquireKeyed::new(source, wanted)).checked(place)
}

impl<L: KeyedSource> AcquireKeyed<L> {
    /// Acquires, runs `work` in a frame of its own, and releases: the request is checked, and so
    /// are those that `work` makes inside.
    ///
    /// # Fairness
    ///
    /// As the request itself.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    ///
    /// `Reentrant` and `Deadlock` (rules R2 and R4).
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let keys = leasehold_sync::KeyedLock::new();
    /// let told = keys
    ///     .write(1)
    ///     .run(async || keys.write(1).run(async || ()).await)
    ///     .await?;
    /// assert!(told.unwrap_err().is_reentrant());
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn run<R>(self, work: impl AsyncFnOnce() -> R) -> impl Future<Output = Result<R, Error>> {
        run(AcquireKeyedWith::new(self), Location::caller(), work)
    }
}

impl<L: KeyedSource, C: Future<Output: CancelReason>> AcquireKeyedWith<L, C> {
    /// As [`AcquireKeyed::run`]. The timeout is that of the request; the work has none.
    ///
    /// # Fairness
    ///
    /// As [`AcquireKeyed::run`].
    ///
    /// # Cancel safety
    ///
    /// As [`AcquireKeyed::run`].
    ///
    /// # Errors
    ///
    /// Those of the request, `Reentrant` and `Deadlock` (rules R2 and R4).
    #[track_caller]
    pub fn run<R>(self, work: impl AsyncFnOnce() -> R) -> impl Future<Output = Result<R, Error>> {
        run(self, Location::caller(), work)
    }
}

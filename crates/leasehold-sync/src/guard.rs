//! What every guard of data has in common.

/// `Deref`, `Debug` and `Display` of a guard with a field `data: NonNull<_>`.
macro_rules! reads {
    ([$($generics:tt)*] $guard:ty, $target:ty) => {
        impl<$($generics)*> std::ops::Deref for $guard {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                // SAFETY: the guard's hold keeps out everybody who could write the data, or use
                // it at all where the guard is for writing; it came from a pointer to the data of
                // the lock, which outlives the guard.
                unsafe { self.data.as_ref() }
            }
        }

        impl<$($generics)*> std::fmt::Debug for $guard
        where
            $target: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($generics)*> std::fmt::Display for $guard
        where
            $target: std::fmt::Display,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}

/// `DerefMut` of a guard that excludes every other.
macro_rules! writes {
    ([$($generics:tt)*] $guard:ty) => {
        impl<$($generics)*> std::ops::DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                // SAFETY: the guard's hold keeps everybody else out, and the guard is borrowed
                // mutably; the pointer is to the data of the lock, which outlives the guard.
                unsafe { self.data.as_mut() }
            }
        }
    };
}

/// `map` and `filter_map` into another guard of the same shape.
macro_rules! maps {
    (mut $from:ident => $into:ty, $target:ty, $other:ident) => {
        /// A guard of a part of the data. An associated function, as the data may have a `map`.
        pub fn map<$other: ?Sized>(
            mut guard: Self,
            part: impl FnOnce(&mut $target) -> &mut $other,
        ) -> $into {
            let data = std::ptr::NonNull::from(part(&mut *guard));
            <$into>::new(guard.hold, data)
        }

        /// As [`map`](Self::map) if there is such a part; else the guard comes back.
        ///
        /// # Errors
        ///
        /// The guard itself, if `part` gives `None`.
        pub fn filter_map<$other: ?Sized>(
            mut guard: Self,
            part: impl FnOnce(&mut $target) -> Option<&mut $other>,
        ) -> Result<$into, Self> {
            match part(&mut *guard).map(std::ptr::NonNull::from) {
                Some(data) => Ok(<$into>::new(guard.hold, data)),
                None => Err(guard),
            }
        }
    };
    (ref $from:ident => $into:ty, $target:ty, $other:ident) => {
        /// A guard of a part of the data. An associated function, as the data may have a `map`.
        pub fn map<$other: ?Sized>(guard: Self, part: impl FnOnce(&$target) -> &$other) -> $into {
            let data = std::ptr::NonNull::from(part(&*guard));
            <$into>::new(guard.hold, data)
        }

        /// As [`map`](Self::map) if there is such a part; else the guard comes back.
        ///
        /// # Errors
        ///
        /// The guard itself, if `part` gives `None`.
        pub fn filter_map<$other: ?Sized>(
            guard: Self,
            part: impl FnOnce(&$target) -> Option<&$other>,
        ) -> Result<$into, Self> {
            match part(&*guard).map(std::ptr::NonNull::from) {
                Some(data) => Ok(<$into>::new(guard.hold, data)),
                None => Err(guard),
            }
        }
    };
}

pub(crate) use {maps, reads, writes};

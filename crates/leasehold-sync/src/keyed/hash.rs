//! The hasher that a keyed lock uses unless told otherwise.

use std::hash::{BuildHasher, Hasher};

/// Hashes the keys of a [`KeyedLock`](crate::KeyedLock): fast, and seeded at random for every lock.
///
/// The seed keeps keys that happen to collide from doing so everywhere. It is no cryptographic
/// hash: where strangers choose the keys and see the timing, take
/// [`std::hash::RandomState`] and [`KeyedLock::with_hasher`](crate::KeyedLock::with_hasher).
#[derive(Clone, Debug, Default)]
pub struct KeyHash(foldhash::fast::RandomState);

/// What a [`KeyHash`] builds.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "it lives for one hash")]
pub struct KeyHasher(foldhash::fast::FoldHasher<'static>);

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0.build_hasher())
    }
}

/// Hands everything on.
macro_rules! writes {
    ($($method:ident: $number:ty;)*) => {
        impl Hasher for KeyHasher {
            #[inline]
            fn finish(&self) -> u64 {
                self.0.finish()
            }

            #[inline]
            fn write(&mut self, bytes: &[u8]) {
                self.0.write(bytes);
            }

            $(
                #[inline]
                fn $method(&mut self, number: $number) {
                    self.0.$method(number);
                }
            )*
        }
    };
}

writes! {
    write_u8: u8;
    write_u16: u16;
    write_u32: u32;
    write_u64: u64;
    write_u128: u128;
    write_usize: usize;
}

//! Attributes that run an async method under a lock of Leasehold.
//!
//! Used through `leasehold`, which re-exports them as `leasehold::{exclusive, shared}`; they expand
//! to its public API.
//!
//! ```
//! use leasehold::{Error, Mutex, exclusive};
//!
//! struct Account {
//!     balance: Mutex<u64>,
//! }
//!
//! impl Account {
//!     #[exclusive(self.balance as balance)]
//!     async fn deposit(&self, amount: u64) -> Result<u64, Error> {
//!         *balance += amount;
//!         Ok(*balance)
//!     }
//! }
//!
//! # pollster::block_on(async {
//! let account = Account { balance: Mutex::new(5) };
//! assert_eq!(account.deposit(3).await?, 8);
//! # Ok::<(), Error>(()) }).unwrap();
//! ```

#![forbid(unsafe_code)]

mod args;
mod expand;
mod method;

use proc_macro::TokenStream;

/// Runs an async method while nobody else is in: in a `run_exclusive`.
///
/// - `#[exclusive(self.lock)]`: `lock` is a mutex or a read-write lock, plain or of leases.
/// - `#[exclusive(self.state as st)]`: the same, and `st` is what `run_exclusive` gives to its work:
///   the data, as `&mut T`, or the lease.
/// - `#[exclusive]`: the object lock of `self`, without a field in it; `Self: 'static`.
/// - `crate = path` as a last argument, where `leasehold` has another name.
///
/// The method is `async`, takes `&self` and returns a `Result` whose error takes `leasehold::Error`
/// by `From`: that is what it gives when the lock is not granted, above all `Reentrant` and
/// `Deadlock`. Its body may use `?` and `return`, its arguments are moved into the frame.
///
/// # Fairness
///
/// That of the lock: first come, first served.
///
/// # Cancel safety
///
/// Dropping the future drops the body first, then gives the grant back.
#[proc_macro_attribute]
pub fn exclusive(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(expand::Kind::Exclusive, args.into(), item.into()).into()
}

/// Runs an async method while nobody writes: in a `run_shared`.
///
/// As [`macro@exclusive`], for reads: `#[shared(self.lock)]` of a read-write lock,
/// `#[shared(self.state as st)]` with `st` as `&T`, and `#[shared]`, a read of the object lock of
/// `self`. A shared method that calls a shared one of the same lock shares its grant.
///
/// # Fairness
///
/// That of the lock: first come, first served.
///
/// # Cancel safety
///
/// Dropping the future drops the body first, then gives the grant back.
#[proc_macro_attribute]
pub fn shared(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(expand::Kind::Shared, args.into(), item.into()).into()
}

//! The holder: a second program on the store under test, which a case can stop and kill.
//!
//! It is one client of the store, takes orders on its standard input and tells what happened on its
//! standard output, one line of JSON each ([`Order`], [`Event`]). Events carry the boot-time clock
//! in microseconds, which all processes of a machine share, so that a case can compare them.
//!
//! A fixture starts it with [`this_program`]: the test program starts itself, and
//! [`main()`](crate::main()) runs as the holder then. So nothing has to be built or found first, and
//! it can never be older than the store it tests. `leasehold-holder sqlite:PATH` is the same
//! program for use by hand.

mod process;
mod program;
mod protocol;

use std::{env, ffi::OsStr, process::Command};

pub use process::{EVENT_BOUND, HolderProcess};
pub use program::main;
pub use protocol::{Event, Happened, Order, Place, Wish};

/// Says to a program that runs [`main()`](crate::main()) that it is the holder, and of which store.
pub const ADDRESS_VARIABLE: &str = "LEASEHOLD_CONFORMANCE_HOLDER";

/// The running test program once more, as the holder on the store at `address`, which the fixture's
/// [`connect`](crate::Fixture::connect) will be given.
///
/// # Panics
/// When the running program cannot be found.
pub fn this_program(address: impl AsRef<OsStr>) -> Command {
    let program = env::current_exe().expect("the running program has a path");
    let mut command = Command::new(program);
    command.env(ADDRESS_VARIABLE, address);
    command
}

//! The commands of the program, one file each, and the parts they share: a `request` until a lock is
//! granted; `under` it a command runs, with `hold` and `keep`; a `success` of it; a `grant` by its
//! ticket.

pub(crate) mod acquire;
pub(crate) mod adopt;
pub(crate) mod bench;
pub(crate) mod break_lock;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod top;
pub(crate) mod wait;
pub(crate) mod watch;

mod grant;
mod hold;
mod keep;
mod request;
mod success;
mod under;

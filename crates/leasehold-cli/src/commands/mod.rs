//! The commands of the program, one file each, and the parts they share: `wait` until a lock is
//! granted; `under` it a command runs, with `hold` and `keep`; a `grant` by its ticket.

pub(crate) mod acquire;
pub(crate) mod adopt;
pub(crate) mod list;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod run;
pub(crate) mod show;

mod grant;
mod hold;
mod keep;
mod under;
mod wait;

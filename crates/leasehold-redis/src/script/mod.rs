//! The typed face of the Lua scripts: builds each request and reads its answer, without a
//! connection.
//!
//! ```text
//! acquire · confirm · renew · extend · rebind · remaining · release · beat      waiters, grants
//! watch · unwatch · cancel_all · destroy · counts · inspect                     the lock
//!         |
//!         v  Request<R>: one EVALSHA, and how to read its answer as an R
//! source.rs   the script texts          keys.rs    keys and channels of a lock
//! wire.rs     numbers and records       answer.rs  what the server says, read in order
//! push.rs     what arrives by channel
//! ```
//!
//! What the scripts do and how a lock lies in the server is written in `src/lua/README.md`.

mod acquire;
mod answer;
mod beat;
mod endings;
mod keys;
mod leases;
mod push;
mod release;
mod report;
mod request;
mod source;
mod watch;
mod wire;

pub use acquire::{AcquireReply, ConfirmReply, Sender, Waiting, acquire, confirm};
pub use answer::fault_of;
pub use beat::{BEAT_TOKENS_MAX, BeatReply, Pulse, beat};
pub use endings::{cancel_all, destroy};
pub use keys::{Keyspace, LockKeys};
pub use leases::{Extension, RebindReply, extend, rebind, remaining, renew};
pub use push::{Push, WakeId, parse_push};
pub use release::{Copies, release};
pub use report::{Inspected, counts, inspect};
pub use request::Request;
pub use source::{SOURCES, Source};
pub use watch::{WatchReply, unwatch, watch};

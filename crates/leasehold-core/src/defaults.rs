//! Every default and limit, in one table (semantics, "Defaults").

use std::time::Duration;

/// How long an acquisition of a lease lock may wait unless told otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a grant of a named lock lives unless renewed or told otherwise (rule L2).
pub const TTL: Duration = Duration::from_secs(60);
/// A renewed lease is renewed after this share of its TTL (rule L2).
pub const RENEWALS_PER_TTL: u32 = 3;
/// How often a waiter shows a remote store that it lives.
pub const BEAT: Duration = Duration::from_secs(3);
/// A waiter that was silent for this long is skipped when it reaches the head (rule L4).
pub const LIVENESS_LIMIT: Duration = Duration::from_secs(10);
/// How long a contended grant waits for its confirmation (rule L10).
pub const CLAIM: Duration = Duration::from_secs(2);
/// How long one command to Redis may take.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a SQLite client with waiters looks at the store when nobody wakes it.
pub const SQLITE_HEARTBEAT: Duration = Duration::from_secs(1);
/// How long `leasehold run` waits between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(5);
/// The most waiters that a lease or named lock queues (rule Q5).
pub const QUEUE_LIMIT: u64 = 1_000_000;
/// How many readers a read-write lock admits unless told otherwise (rule Q1).
pub const MAX_READERS: u32 = 1 << 29;
/// The largest weight and the largest capacity.
pub const PERMITS_MAX: u32 = i32::MAX as u32;
/// The longest TTL in milliseconds (rule T1).
pub const TTL_MS_MAX: u64 = i32::MAX as u64;
/// The longest name or namespace in bytes (rule N3).
pub const NAME_BYTES_MAX: usize = 512;
/// The longest token in bytes (rule T5).
pub const TOKEN_BYTES_MAX: usize = 128;
/// The longest label in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// What the local deadline of a lease gives away to clocks that drift: one part in this many
/// (rule L3: 1 %).
pub const DRIFT_DIVISOR: u32 = 100;
/// How long a destroyed lock is remembered so that old handles learn of it (rule N5).
pub const DESTROYED_RETENTION: Duration = Duration::from_secs(600);
/// How long the thread of a client lives on to flush releases after its last manager is dropped
/// (rule N6).
pub const FLUSH: Duration = Duration::from_millis(250);

-- The layout of a store, made in one transaction (rule L9: its version is the pragma user_version).
-- Times are microseconds of the boot-time clock, but for clients.beat (monotonic clock).
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    fence_floor INTEGER NOT NULL -- no lock without a row was ever granted above this (rule L8)
) STRICT;

CREATE TABLE locks (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE, -- injective over namespace, kind and name (rule N3)
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    capacity INTEGER NOT NULL, -- 0: none registered
    used INTEGER NOT NULL, -- sum of the grants' weights
    queued INTEGER NOT NULL, -- number of waiters
    watchers INTEGER NOT NULL, -- number of watchers that are not done
    seq INTEGER NOT NULL, -- the last place given in the queue
    fence INTEGER NOT NULL, -- the last fencing token given
    generation INTEGER NOT NULL,
    next_expiry INTEGER, -- no grant expires earlier; NULL: none expires
    touched INTEGER NOT NULL
) STRICT;

CREATE TABLE grants (
    lock INTEGER NOT NULL,
    token TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    client INTEGER, -- NULL: bound to the token and confirmed
    by_token INTEGER NOT NULL,
    claimed INTEGER NOT NULL, -- 1: granted after a wait, not confirmed yet (rule L10)
    weight INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    shared INTEGER NOT NULL, -- 1: the lock may have other holders
    fence INTEGER NOT NULL,
    ttl INTEGER, -- milliseconds
    since INTEGER NOT NULL,
    expires INTEGER,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    label TEXT,
    PRIMARY KEY (lock, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_client ON grants (client, claimed) WHERE client IS NOT NULL;
-- A lock of one permit has one holder, which needs no order: a page less to write.
CREATE INDEX grants_expiry ON grants (lock, expires) WHERE shared = 1 AND expires IS NOT NULL;

CREATE TABLE waiters (
    lock INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    token TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    client INTEGER NOT NULL,
    by_token INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    ttl INTEGER,
    since INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    label TEXT,
    PRIMARY KEY (lock, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX waiters_token ON waiters (lock, token);
CREATE INDEX waiters_client ON waiters (client);

-- What became of waiters that were put out of a queue, until they are told.
CREATE TABLE notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- a looker reads on from the last id it saw
    client INTEGER NOT NULL,
    lock TEXT NOT NULL,
    token TEXT NOT NULL,
    kind INTEGER NOT NULL, -- 0: look again, 1: cancelled, 2: destroyed
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX notices_client ON notices (client, id);
CREATE INDEX notices_token ON notices (client, lock, token);

CREATE TABLE watchers (
    lock TEXT NOT NULL,
    token TEXT NOT NULL,
    client INTEGER NOT NULL,
    what INTEGER NOT NULL, -- 0: any permit, 1: readable, 2: unlocked, 3: destroyed; each implies the ones before
    done INTEGER NOT NULL,
    PRIMARY KEY (lock, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX watchers_pending ON watchers (lock, what) WHERE done = 0;
CREATE INDEX watchers_client ON watchers (client, done);

CREATE TABLE clients (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    beat INTEGER NOT NULL -- monotonic clock: a suspended machine makes nobody silent (rule L4)
) STRICT;

//! Opening a store: the checks, the creation, the wipe after a boot, the registration. All of it
//! happens under the guard, so any number of processes may open, and create, at once.

use std::{path::Path, sync::Arc, time::Instant};

use leasehold_core::{ClientId, Clock, Fault, FaultKind, SystemClock};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use rustix::{
    fs::{fsync, ftruncate},
    io::{pread, pwrite},
};

use crate::{
    client::{Client, Parts},
    desk::{Context, Desk},
    error::{Stop, from_io, from_sqlite},
    fence::Fence,
    guard::{Guard, PATIENCE},
    members::Members,
    place::Place,
    steps::{Bury, Step, Sweep},
    sys,
    tx::{Mode, Tx, client, id, sql},
    waits::Waits,
};

/// Says in a database's header that it is a store of Leasehold: "Lhld".
const APPLICATION_ID: i64 = 0x4c68_6c64;
/// The version of `schema.sql` (rule L9).
const LAYOUT: i64 = 1;
/// More than there are statements.
const STATEMENTS: usize = 80;
const BOOT_BYTES_MAX: usize = 256;

/// Opens a client at a checked place.
pub(crate) fn open(place: &Place) -> Result<Arc<Client>, Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let guard = Guard::new(place.side_file("guard")?, place.side_path().join("guard"))?;
    let members = Members {
        clients: place.side_directory("clients")?,
        wake: place.side_directory("wake")?,
        path: place.side_path().to_owned(),
    };
    let held = guard.hold_by(Instant::now() + PATIENCE)?;
    check_boot(place, &members)?;
    let mut fence = Fence::open(place.side_file("fence")?, place.side_path().join("fence"))?;
    let floor = fence.ceiling();
    fence.reserve_ahead()?;
    let conn = open_database(place, &members, floor)?;
    let mut desk = Desk::new(conn, fence);
    let waits = Waits::default();
    let me = ClientId::random();
    let context = Context { me, clock: &clock, members: &members, waits: &waits };
    bury_the_dead(&mut desk, context)?;
    let alive = members.enter(me)?;
    let entered = members.make_pipe(me).and_then(|pipe| {
        run(&mut desk, context, &Register)?;
        Ok(pipe)
    });
    let pipe = entered.inspect_err(|_| members.remove(me))?;
    drop(held);
    let path = place.path.clone();
    Ok(Arc::new(Client::new(Parts {
        id: me,
        clock,
        members,
        waits,
        pipe,
        alive,
        path,
        guard,
        desk,
    })))
}

/// Enters this client's row; its liveness lock is held.
struct Register;

impl Step for Register {
    type Answer = ();

    fn run(&self, tx: &mut Tx<'_>) -> Result<(), Stop> {
        tx.make_up_for_a_standstill()?;
        tx.execute(
            sql!("client_insert"),
            rusqlite::params![id(tx.me), std::process::id(), tx.monotonic],
        )?;
        // A program that is started again and again sweeps too.
        Sweep.run(tx)
    }
}

/// The clients that are registered.
struct Registered;

impl Step for Registered {
    type Answer = Vec<ClientId>;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ClientId>, Stop> {
        tx.all(sql!("clients_after"), [i64::MIN, -1], |row| row.get(0).map(client))
    }
}

fn bury_the_dead(desk: &mut Desk, context: Context<'_>) -> Result<(), Fault> {
    let registered = run(desk, context, &Registered)?;
    for other in &registered {
        if context.members.is_dead(*other) {
            run(desk, context, &Bury(*other))?;
        }
    }
    // Files that a client left between its row and its end, or before its row.
    for file in context.members.files()? {
        if !registered.contains(&file) && context.members.is_dead(file) {
            context.members.remove(file);
        }
    }
    Ok(())
}

/// Runs a step while the guard is held and nobody else knows this client.
fn run<S: Step>(desk: &mut Desk, context: Context<'_>, step: &S) -> Result<S::Answer, Fault> {
    let (answer, effects) = desk.transact(context, Mode::Thread, step).map_err(Stop::into_fault)?;
    effects.deliver(context.waits, context.members);
    Ok(answer)
}

/// Compares the boot in which the store was used last with this one. Nothing of another boot is
/// left alive, so its state is wiped, unless somebody holds a liveness lock: then the file system
/// belongs to another host as well.
fn check_boot(place: &Place, members: &Members) -> Result<(), Fault> {
    let path = place.side_path().join("boot");
    let file = place.side_file("boot")?;
    let fail = |error| from_io(error, "read", &path);
    let mut bytes = [0; BOOT_BYTES_MAX];
    let len = pread(&file, &mut bytes, 0).map_err(fail)?;
    let known = String::from_utf8_lossy(&bytes[..len]);
    let boot = sys::boot_id()
        .map_err(|error| from_io(error, "read the boot id in", Path::new("/proc")))?;
    let here = format!("{boot} {}\n", sys::time_namespace());
    if known == here {
        return Ok(());
    }
    if known.split_whitespace().next() == Some(&*boot) {
        return Err(Fault::new(
            FaultKind::Unsupported,
            format!("the store {} is used in another time namespace", place.path.display()),
        ));
    }
    members.expect_none_alive(|| {
        format!("the store {} is in use by another host", place.path.display())
    })?;
    if place.has_database()? {
        check_stale_header(place, known.is_empty())?;
        place.remove_database()?;
    }
    for stale in members.files()? {
        members.remove(stale);
    }
    ftruncate(&file, 0).map_err(fail)?;
    pwrite(&file, here.as_bytes(), 0).map_err(|error| from_io(error, "write", &path))?;
    fsync(&file).map_err(|error| from_io(error, "sync", &path))?;
    place.sync_side()
}

/// A database is only ever removed when it is a store of this layout, or when this was a store and
/// the power cut has spoilt it.
fn check_stale_header(place: &Place, is_unknown: bool) -> Result<(), Fault> {
    let header = place.database_header()?;
    let number = |at: usize| {
        i64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    if header.starts_with(b"SQLite format 3\0") {
        check_header(place, number(68), number(60))
    } else if is_unknown {
        Err(no_store(place))
    } else {
        Ok(())
    }
}

fn check_header(place: &Place, application: i64, layout: i64) -> Result<(), Fault> {
    if application != APPLICATION_ID {
        return Err(no_store(place));
    }
    if layout != LAYOUT {
        return Err(Fault::new(
            FaultKind::Layout,
            format!(
                "the store {} has layout version {layout}, and this program knows version {LAYOUT}",
                place.path.display()
            ),
        ));
    }
    Ok(())
}

fn no_store(place: &Place) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("{} is no store of Leasehold", place.path.display()))
}

fn open_database(place: &Place, members: &Members, floor: u64) -> Result<Connection, Fault> {
    if !place.has_database()? {
        members.expect_none_alive(|| {
            format!("the database {} was deleted while in use", place.path.display())
        })?;
        place.make_database_file()?;
    }
    let opened = connect(&place.path).and_then(|conn| {
        let marks = (mark(&conn, "application_id")?, mark(&conn, "user_version")?);
        let tables: i64 =
            conn.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((conn, marks, tables))
    });
    let (conn, (application, layout), tables) =
        opened.map_err(|error| at(place, from_sqlite(error)))?;
    if (application, layout, tables) == (0, 0, 0) {
        create(&conn, floor).map_err(|error| at(place, from_sqlite(error)))?;
    } else {
        check_header(place, application, layout)?;
    }
    // After the creation, which is so in the database file and not in its log.
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|error| at(place, from_sqlite(error)))?;
    if mode != "wal" {
        return Err(at(
            place,
            Fault::new(FaultKind::Unsafe, "the place does not support a write-ahead log"),
        ));
    }
    Ok(conn)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Plans do not depend on the values that are bound; else another `LIMIT` has the statement
    // parsed again.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Locks need not outlive a power cut; and who waits, waits at the guard, never in SQLite.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY")?;
    conn.busy_timeout(std::time::Duration::ZERO)?;
    Ok(conn)
}

fn mark(conn: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    conn.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
}

fn create(conn: &Connection, floor: u64) -> rusqlite::Result<()> {
    conn.execute_batch(&format!(
        "PRAGMA page_size = 1024;
         BEGIN IMMEDIATE;
         {}
         INSERT INTO store (one, fence_floor) VALUES (1, {floor});
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {LAYOUT};
         COMMIT",
        sql!("schema")
    ))
}

fn at(place: &Place, fault: Fault) -> Fault {
    Fault::new(fault.kind(), format!("{fault} ({})", place.path.display())).with_source(fault)
}

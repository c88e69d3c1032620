//! Opening a store: the checks, the creation, the wipe after a boot, the registration. All of it
//! happens under the guard, so any number of processes may open, and create, at once.

use std::{path::Path, sync::Arc, time::Instant};

use leasehold_core::{ClientId, Clock, Fault, FaultKind, SystemClock};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    boot::Boot,
    client::{Client, Parts},
    desk::{Context, Desk},
    error::{Stop, at, from_sqlite},
    fence::Fence,
    guard::{Guard, PATIENCE},
    members::Members,
    place::Place,
    steps::{Bury, Step, Sweep},
    tx::{Mode, Tx, client, id, sql},
    waits::Waits,
};

/// Says in a database's header that it is a store of Leasehold: "Lhld".
const APPLICATION_ID: i64 = 0x4c68_6c64;
/// The version of `schema.sql` (rule L9).
const LAYOUT: i64 = 1;
/// More than there are statements.
const STATEMENTS: usize = 80;

/// Opens a client at a checked place.
pub(crate) fn open(place: &Place) -> Result<Arc<Client>, Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let guard = Guard::new(place.side_file("guard")?, place.side_path().join("guard"))?;
    let members = Members::of(place)?;
    let held = guard.hold_by(Instant::now() + PATIENCE)?;
    let boot = Boot::of(place)?;
    if !boot.is_this {
        boot.wipe(place, &members)?;
    }
    let mut fence = Fence::open(place.side_file("fence")?, place.side_path().join("fence"))?;
    let floor = fence.floor();
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
    members.keep_fresh();
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

/// Refuses what is no store of this layout.
pub(crate) fn check_header(place: &Place, application: i64, layout: i64) -> Result<(), Fault> {
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

/// What is told of it.
pub(crate) fn no_store(place: &Place) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("{} is no store of Leasehold", place.path.display()))
}

fn open_database(place: &Place, members: &Members, floor: u64) -> Result<Connection, Fault> {
    if !place.has_database()? {
        check_database_is_not_lost(place, members)?;
        place.make_database_file()?;
    }
    let (conn, is_empty) = connect_checked(place)?;
    if is_empty {
        create(&conn, floor).map_err(|error| at(&place.path, from_sqlite(error)))?;
    }
    // After the creation, which is so in the database file and not in its log.
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|error| at(&place.path, from_sqlite(error)))?;
    if mode != "wal" {
        return Err(at(
            &place.path,
            Fault::new(FaultKind::Unsafe, "the place does not support a write-ahead log"),
        ));
    }
    Ok(conn)
}

/// Where no database is, nobody must live who had one.
pub(crate) fn check_database_is_not_lost(place: &Place, members: &Members) -> Result<(), Fault> {
    members.expect_none_alive(|| {
        format!("the database {} was deleted while in use", place.path.display())
    })
}

/// The database as it is, for somebody who only looks. `None`: it has not been filled yet.
pub(crate) fn connect_known(place: &Place) -> Result<Option<Connection>, Fault> {
    let (conn, is_empty) = connect_checked(place)?;
    Ok((!is_empty).then_some(conn))
}

/// A connection, and whether the database is empty. It is a store of this layout otherwise.
fn connect_checked(place: &Place) -> Result<(Connection, bool), Fault> {
    let opened = connect(&place.path).and_then(|conn| {
        let marks = (mark(&conn, "application_id")?, mark(&conn, "user_version")?);
        let tables: i64 =
            conn.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((conn, marks, tables))
    });
    let (conn, (application, layout), tables) =
        opened.map_err(|error| at(&place.path, from_sqlite(error)))?;
    let is_empty = (application, layout, tables) == (0, 0, 0);
    if !is_empty {
        check_header(place, application, layout)?;
    }
    Ok((conn, is_empty))
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

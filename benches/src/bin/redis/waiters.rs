//! What many waiters cost while nothing happens: the process that they wait in, and the server.

use std::{fs, thread::sleep, time::Duration};

use leasehold::Obstacle;
use leasehold_benches::{Child, Orders, Report, Result, Row, Unit, say};
use test_servers::Server;
use tokio::sync::mpsc::unbounded_channel;

use crate::runtime;

const CLIENT: &str = "10,000 waiters, % of a core";
const SERVER: &str = "10,000 waiters, % of a core, server";

const WAITERS: usize = 10_000;
const TTL: Duration = Duration::from_secs(600);
/// So long that several beats of every waiter fall into it.
const WINDOW: Duration = Duration::from_secs(15);
/// In which the kernel counts processor time.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn measure(report: &mut Report, server: &Server) -> Result<()> {
    if !report.wants(&[CLIENT, SERVER]) {
        return Ok(());
    }
    let (waiters, window) =
        if report.is_quick() { (WAITERS / 10, WINDOW / 3) } else { (WAITERS, WINDOW) };
    let runtime = runtime(2);
    let held = runtime.block_on(async {
        let locks = leasehold::connect(&server.url()).await?;
        let mut held = Vec::new();
        for index in 0..waiters {
            held.push(locks.mutex(name(index))?.lock().ttl(TTL).await?);
        }
        Ok::<_, leasehold::Error>((locks, held))
    })?;
    let mut child = Child::start(&["wait", &server.url(), &waiters.to_string()])?;
    if child.hear()? != "queued" {
        return Err("a child that does not queue".into());
    }
    // What it took to queue them is no part of it.
    sleep(Duration::from_secs(1));
    let before = (of_process(child.pid())?, of_server(server)?);
    sleep(window);
    let after = (of_process(child.pid())?, of_server(server)?);
    let percent = |before: f64, after: f64| 100.0 * (after - before) / window.as_secs_f64();
    let figures = [(CLIENT, percent(before.0, after.0)), (SERVER, percent(before.1, after.1))];
    for (work, figure) in figures {
        let mut row = Row::new(work, Unit::PERCENT).goal(5.0);
        row.add_ours(figure);
        report.add(&row);
    }
    drop(child);
    runtime.block_on(async move {
        let (locks, held) = held;
        for lease in held {
            lease.release().await?;
        }
        locks.shutdown().await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })
}

fn name(index: usize) -> String {
    format!("waited for {index}")
}

/// Waits for all of them until the parent is done.
pub(crate) fn child(url: &str, names: usize) -> Result<()> {
    let runtime = runtime(2);
    let locks = runtime.block_on(leasehold::connect(url))?;
    let (tell, mut queue) = unbounded_channel();
    for index in 0..names {
        let (mutex, tell) = (locks.mutex(name(index))?, tell.clone());
        runtime.spawn(async move {
            let queued = move |_: &Obstacle| {
                let _ = tell.send(());
            };
            mutex.lock().on_queued(queued).await.map(drop)
        });
    }
    runtime.block_on(async {
        for _ in 0..names {
            queue.recv().await.ok_or("a waiter that does not queue")?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    say("queued");
    let _ = Orders::next();
    Ok(())
}

/// Seconds of processor time that a process has had.
fn of_process(pid: u32) -> Result<f64> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name before it is in parentheses and may hold anything; the times are fields 14 and 15.
    let rest = line.rsplit(')').next().ok_or("no statistics")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks =
        || fields.next().ok_or("no statistics")?.parse::<f64>().map_err(|_| "no number");
    Ok((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn of_server(server: &Server) -> Result<f64> {
    let mut seconds = 0.0;
    for key in ["used_cpu_user", "used_cpu_sys"] {
        seconds += server.info("cpu", key).ok_or("no statistics")?.parse::<f64>()?;
    }
    Ok(seconds)
}

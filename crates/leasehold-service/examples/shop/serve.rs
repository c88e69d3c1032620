//! The service: two routes, each under a lock from another entry.

use std::{env, fs::OpenOptions, io::Write, process, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use leasehold_service::{Error, LockService, ServiceManager, load};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use crate::Outcome;

#[derive(Clone)]
struct Shop {
    orders: ServiceManager,
    jobs: ServiceManager,
    journal: String,
}

pub(crate) async fn serve(config: &str) -> Outcome {
    let locks = LockService::builder("shop").config(load(config)?).boot()?.start().await?;
    let shop = Shop {
        orders: locks.default_manager()?,
        jobs: locks.manager("jobs").await?,
        journal: env::var("SHOP_JOURNAL").map_err(|_| "SHOP_JOURNAL is not set")?,
    };
    let routes = Router::new()
        .route("/orders/{id}/pay", post(pay))
        .route("/jobs/sync", post(sync))
        .with_state(shop);
    let address = env::var("SHOP_LISTEN").unwrap_or_else(|_| "127.0.0.1:0".into());
    let listener = TcpListener::bind(address).await?;
    // Before it is told that we listen: a SIGTERM from then on ends us in order.
    let mut terminate = signal(SignalKind::terminate())?;
    println!("listening on {}", listener.local_addr()?);
    let stop = async move {
        terminate.recv().await;
    };
    axum::serve(listener, routes).with_graceful_shutdown(stop).await?;
    // The last request was answered, so nothing is held; what is opened is closed.
    locks.shutdown().await?;
    println!("shut down");
    Ok(())
}

/// Within this process: payments of one order wait for one another.
async fn pay(State(shop): State<Shop>, Path(order): Path<String>) -> (StatusCode, String) {
    let paying = async {
        sleep(Duration::from_millis(5)).await;
        format!("{order} is paid\n")
    };
    let ran = async { shop.orders.executor(&format!("order:{order}"))?.run(paying).await };
    ran.await.map_or_else(failed, |paid| (StatusCode::OK, paid))
}

/// For all processes on one store: a job that runs already is not run again.
async fn sync(State(shop): State<Shop>) -> (StatusCode, String) {
    let job = async {
        let Ok(executor) = shop.jobs.executor("orders:sync") else { unreachable!("a good name") };
        executor.try_run(Duration::from_secs(1), work(&shop.journal)).await
    };
    match job.await {
        Ok(Some(Ok(()))) => (StatusCode::OK, "done\n".into()),
        Ok(Some(Err(error))) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        Ok(None) => (StatusCode::CONFLICT, "busy\n".into()),
        Err(error) => failed(error),
    }
}

fn failed(error: Error) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}

/// The job: it writes down when it begins and ends, in one append each, for whoever checks.
async fn work(journal: &str) -> std::io::Result<()> {
    let mut journal = OpenOptions::new().append(true).create(true).open(journal)?;
    journal.write_all(format!("begin {}\n", process::id()).as_bytes())?;
    sleep(Duration::from_millis(10)).await;
    journal.write_all(format!("end {}\n", process::id()).as_bytes())
}

//! A process without free file descriptors.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Instance, free_address};

use crate::metrics::Scrape;

const MAX_WAIT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn server_resumes_accepting_when_descriptors_are_free() -> Result<()> {
    let mut instance = Instance::new("")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let server = instance.serve_under("ulimit -n 200").await?;
    let warned = server.output();
    let warned = warned.lines().find(|line| line.contains("too few file descriptors"));
    ensure!(warned.is_some_and(|line| line.contains("descriptors.limit=200 descriptors.needed=")), "{warned:?}");
    let before = Scrape::take(metrics).await?;
    ensure!(before.value("process_max_fds") == 200);
    ensure!((10..190).contains(&before.value("process_open_fds")), "{}", before.value("process_open_fds"));

    let mut held = Vec::new();
    let since = Instant::now();
    while !server.output().contains("Error accepting connection") {
        ensure!(since.elapsed() < MAX_WAIT, "the descriptors do not run out");
        if held.len() < 400 {
            held.push(TcpStream::connect(server.address()).await?);
        }
        sleep(Duration::from_millis(2)).await;
    }
    drop(held);
    let (since, live) = (Instant::now(), Call::get("/health/live"));
    loop {
        let live = tokio::time::timeout(Duration::from_secs(5), live.send(server.address())).await;
        if live.is_ok_and(|reply| reply.is_ok_and(|reply| reply.status == 200)) {
            break;
        }
        ensure!(since.elapsed() < MAX_WAIT, "it accepts nothing any more");
    }
    server.ensure_healthy().await?;
    let after = Scrape::take(metrics).await?;
    ensure!(after.value("tollgate_accept_pauses_total") >= 1);
    server.stop().await
}

#[tokio::test]
async fn start_raises_the_limit_of_file_descriptors() -> Result<()> {
    let mut instance = Instance::new("[server]\nworkers = 1\nmax_connections_per_worker = 64\n")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let server = instance.serve_under("ulimit -S -n 100; ulimit -H -n 1000").await?;
    ensure!(Scrape::take(metrics).await?.value("process_max_fds") == 1_000);
    ensure!(!server.output().contains("too few file descriptors"), "{}", server.output());
    server.stop().await
}

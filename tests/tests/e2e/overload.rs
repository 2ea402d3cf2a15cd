//! Load beyond the limits of a process.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, free_address, raw};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};
use crate::metrics::Scrape;

async fn measured(toml: &str) -> Result<(TestGateway, SocketAddr)> {
    let mut instance = Instance::new(toml)?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok((TestGateway::of(instance).await?, metrics))
}

#[tokio::test]
async fn connections_over_limit_are_rejected_immediately() -> Result<()> {
    const PLACES: usize = 50;
    const CROWD: usize = 1_000;
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let toml =
        format!("[limits]\nmax_in_flight = {PLACES}\n{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000));
    let (gateway, metrics) = measured(&toml).await?;
    // A workspace gets half of the places.
    let other = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "other", "--workspace", &other]).await?;
    let mut calls = JoinSet::new();
    for number in 0..CROWD {
        let secret = if number % 2 == 0 { &gateway.inference.secret } else { &other.secret };
        let (call, address) = (decisions(secret, body("acme/alone")), gateway.server.address());
        calls.spawn(async move { call.send(address).await });
    }
    // The provider does not respond, so early responses are rejections.
    for _ in 0..CROWD - PLACES {
        let reply = calls.join_next().await.context("too few answers")???;
        match reply.status {
            429 => drop(reply.error(429, "requests in flight")?),
            _ => drop(reply.error(503, "Service temporarily unavailable")?),
        }
        ensure!(reply.header("retry-after") == "1");
    }
    let late = gateway.server.send(&decisions(&other.secret, body("acme/alone"))).await?;
    late.error(503, "Service temporarily unavailable")?;
    for path in ["/health/live", "/health/ready"] {
        let began = Instant::now();
        ensure!(gateway.server.send(&Call::get(path)).await?.status == 200, "{path}");
        ensure!(began.elapsed() < Duration::from_secs(20), "{path} took {:?}", began.elapsed());
    }
    let scrape = Scrape::take(metrics).await?;
    ensure!(scrape.value("tollgate_requests_in_flight") == i64::try_from(PLACES)?);
    ensure!(scrape.value("tollgate_requests_in_flight_limit") == i64::try_from(PLACES)?);
    // Admitted requests stay until their clients disconnect. The provider notices only those that have reached it.
    alpha.wait_for_requests(PLACES).await?;
    calls.shutdown().await;
    alpha.wait_until_abandoned(PLACES).await?;
    alpha.behave(Behaviour::json(ANSWER));
    for attempt in 0.. {
        if Scrape::take(metrics).await?.value("tollgate_requests_in_flight") == 0 {
            break;
        }
        ensure!(attempt < 200, "places are not released");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// Sends `head` and then a byte every 50 ms until the server closes; returns the server's output.
async fn drip(address: SocketAddr, head: String, dripping: &'static str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    let (mut reading, mut writing) = stream.split();
    let mut said = Vec::new();
    let drips = async {
        for byte in dripping.bytes().cycle() {
            if writing.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    let read = async {
        let mut piece = [0; 4_096];
        while let Ok(read @ 1..) = reading.read(&mut piece).await {
            said.extend_from_slice(&piece[..read]);
        }
    };
    tokio::select! {
        () = read => {}
        () = drips => {}
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Its pauses are short, so that only the rate ends it.
#[tokio::test]
async fn dripping_upload_does_not_keep_its_place() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let head = format!(
        "PUT /api/v1/containers/sess_a/files?path=a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 100000\r\n\r\n",
        gateway.management.secret
    );
    let dripped = drip(gateway.server.address(), head, "x");
    let said = tokio::time::timeout(Duration::from_mins(1), dripped).await.context("it is not sent away")??;
    ensure!(said.starts_with("HTTP/1.1 400 ") && said.contains("The body did not arrive in time"), "{said:?}");
    ensure!(tollgate_tests::files_below(&gateway.instance.blobs())?.is_empty(), "it left a file");
    Ok(())
}

#[tokio::test]
async fn slow_clients_delay_no_others_and_are_disconnected() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let (address, secret) = (gateway.server.address(), &gateway.inference.secret);
    let mut slow = JoinSet::new();
    for number in 0..200 {
        let with_key = format!(
            "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
             content-type: application/json\r\ncontent-length: 100000\r\n\r\n{{"
        );
        let (kind, head, dripping, longest) = match number % 2 {
            0 => ("head", "GET /api/v1/models/count HTTP/1.1\r\nhost: x\r\nx-long: ".to_owned(), "a", 60),
            _ => ("body", with_key, " ", 150),
        };
        let longest = Duration::from_secs(longest);
        slow.spawn(async move { (kind, tokio::time::timeout(longest, drip(address, head, dripping)).await) });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        let began = Instant::now();
        gateway.decide(body("sandbox/decider")).await?;
        longest = longest.max(began.elapsed());
    }
    eprintln!("the longest of 40 requests beside 200 slow clients took {longest:?}");
    ensure!(longest < Duration::from_secs(9), "a request waited for {longest:?}");
    while let Some(ended) = slow.join_next().await {
        let (kind, said) = ended?;
        let said = said.with_context(|| format!("a slow {kind} is not sent away"))??;
        let expected = if kind == "head" { "HTTP/1.1 408 " } else { "HTTP/1.1 400 " };
        ensure!(said.starts_with(expected), "a slow {kind} received {said:?}");
        ensure!(kind == "head" || said.contains("The body took longer than 60000 ms to arrive"), "{said}");
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn silent_connection_is_closed() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let began = Instant::now();
    let mut stream = TcpStream::connect(gateway.server.address()).await?;
    let mut said = Vec::new();
    tokio::time::timeout(Duration::from_secs(40), stream.read_to_end(&mut said)).await.context("it may stay")??;
    ensure!(began.elapsed() >= Duration::from_secs(9), "closed after {:?}", began.elapsed());
    ensure!(said.is_empty() || said.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

#[tokio::test]
async fn oversized_head_is_rejected_and_connection_closed() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let address = gateway.server.address();
    let with = |headers: &str| format!("GET /api/v1/models/count HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
    let many = "x-many: 1\r\n".repeat(200);
    let long = format!("x-long: {}\r\n", "a".repeat(200_000));
    for (what, headers) in [("many headers", many), ("a long header", long)] {
        let said = raw(address, with(&headers).as_bytes()).await?;
        ensure!(said.starts_with("HTTP/1.1 431 "), "{what}: {said:?}");
    }
    // A long head within the limits is accepted.
    let fits = format!("x-long: {}\r\n", "a".repeat(60_000));
    let said = raw(address, with(&format!("{fits}connection: close\r\n")).as_bytes()).await?;
    ensure!(said.starts_with("HTTP/1.1 401 "), "{said:?}");
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn metrics_are_served_while_connections_wait() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000);
    let (gateway, metrics) =
        measured(&format!("[server]\nworkers = 1\nmax_connections_per_worker = 3\n{providers}")).await?;
    let mut busy = JoinSet::new();
    for _ in 0..3 {
        let (call, address) = (decisions(&gateway.inference.secret, body("acme/alone")), gateway.server.address());
        busy.spawn(async move { call.send(address).await });
    }
    alpha.wait_for_requests(3).await?;
    let one_more = Call::get("/health/live");
    let waiting = tokio::time::timeout(Duration::from_millis(500), one_more.send(gateway.server.address())).await;
    ensure!(waiting.is_err(), "a fourth connection was served");
    ensure!(Call::get("/health/live").send(metrics).await?.status == 200);
    Scrape::take(metrics).await?;
    busy.shutdown().await;
    ensure!(one_more.send(gateway.server.address()).await?.status == 200, "a further client is not served");
    gateway.server.stop().await
}

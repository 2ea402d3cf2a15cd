//! Connections of hostile clients, and pipelined requests.

mod client;
mod drain;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Instance, Upstream, free_address};

use self::client::{Answer, Client, decision, request};
use crate::gateway::{ANSWER, TestGateway, body, providers_toml};
use crate::metrics::Scrape;

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

#[tokio::test]
async fn oldest_idle_connection_is_closed_for_new_one() -> Result<()> {
    let mut instance = Instance::new("[server]\nworkers = 1\nmax_connections_per_worker = 4\n")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let gateway = TestGateway::of(instance).await?;
    let live = request("GET", "/health/live", "");
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(gateway.server.address()).await?;
        client.send(&live).await?;
        ensure!(!client.answer().await?.closes());
        idle.push(client);
    }
    // A used connection becomes the youngest.
    idle[0].send(&live).await?;
    idle[0].answer().await?;
    for _ in 0..3 {
        let mut client = Client::connect(gateway.server.address()).await?;
        client.send(&live).await?;
        client.answer().await?;
        idle.push(client);
    }
    for client in &mut idle[1..4] {
        client.ensure_closed().await?;
    }
    for number in [0, 4, 5, 6] {
        idle[number].send(&live).await?;
        idle[number].answer().await.with_context(|| format!("connection {number} was closed"))?;
    }
    // A response arrives slightly before its connection counts as idle.
    let mut counts = [0; 4];
    for _ in 0..500 {
        let scrape = Scrape::take(metrics).await?;
        ensure!(scrape.value("tollgate_connection_evictions_total") == 3);
        ensure!(scrape.value("tollgate_connections_limit") == 4);
        let in_state = |state| scrape.of("tollgate_connections", &[("state", state)]);
        counts = ["waiting", "idle", "reading_headers", "in_request"].map(in_state);
        if counts == [0, 4, 0, 0] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(counts == [0, 4, 0, 0], "{counts:?}");
    gateway.server.stop().await
}

#[tokio::test]
async fn active_connections_close_after_response_when_others_wait() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_secs(2), ANSWER.to_owned())).await?;
    let toml = format!(
        "[server]\nworkers = 1\nmax_connections_per_worker = 2\n{}",
        providers_toml(&alpha.base_url(), &alpha.base_url(), 20_000)
    );
    let gateway = TestGateway::start(&toml).await?;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(gateway.server.address()).await?;
        client.send(decision(&gateway.inference.secret, &body("acme/alone"))).await?;
        busy.push(client);
    }
    alpha.wait_for_requests(2).await?;
    let mut waiting = Client::connect(gateway.server.address()).await?;
    waiting.send(request("GET", "/health/live", "")).await?;
    let answers = [busy[0].answer().await?, busy[1].answer().await?];
    ensure!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    ensure!(answers.iter().any(Answer::closes), "no connection is closed: {answers:?}");
    ensure!(waiting.answer().await?.status == 200);
    gateway.server.stop().await
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_until_close() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let address = gateway.server.address();
    let paid = decision(&gateway.inference.secret, &body("sandbox/decider"));
    let (get, head) = (request("GET", "/health/live", ""), request("HEAD", "/health/live", ""));

    let mut client = Client::connect(address).await?;
    client.send([get.as_str(), &head, &get, &paid, &head, &paid].concat()).await?;
    for head_only in [false, true, false] {
        let answer = if head_only { client.answer_to_head().await? } else { client.answer().await? };
        ensure!(answer.status == 200 && answer.body.is_empty() == head_only, "{answer:?}");
        ensure!(answer.head.contains("content-length: 15\r\n"), "{answer:?}");
    }
    for last in [false, true] {
        let answer = client.answer().await?;
        let answer: serde_json::Value = serde_json::from_str(&answer.body).context("the paid answer is not whole")?;
        ensure!(answer["answers"]["refund"].is_object(), "{answer}");
        if !last {
            let answer = client.answer_to_head().await?;
            ensure!(answer.status == 200 && !answer.closes(), "{answer:?}");
        }
    }

    let closing = request("GET", "/health/live", "connection: close\r\n");
    let old = "GET /health/live HTTP/1.0\r\n\r\n".to_owned();
    for last in [closing, old] {
        let mut client = Client::connect(address).await?;
        client.send([last.as_str(), &paid, &get].concat()).await?;
        ensure!(client.answer().await?.status == 200);
        client.ensure_closed().await?;
    }
    let records = gateway.instance.json(&["usage", "list"]).await?;
    ensure!(records["data"].as_array().map(Vec::len) == Some(2), "{records}");
    gateway.server.stop().await
}

#[tokio::test]
async fn continue_is_sent_only_when_body_will_be_read() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let expecting = |secret: &str, length: usize| {
        let headers = format!(
            "authorization: Bearer {secret}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             expect: 100-continue\r\n"
        );
        request("POST", "/api/alpha/decisions", &headers)
    };
    let secret = &gateway.inference.secret;
    for (name, head, status) in [
        ("without a key", expecting("sk-nobody", 10), 401),
        ("beyond the bound", expecting(secret, 1 << 30), 413),
        ("at no route", request("POST", "/nothing", "content-length: 9\r\nexpect: 100-continue\r\n"), 404),
    ] {
        let mut client = Client::connect(gateway.server.address()).await?;
        client.send(head).await?;
        let answer = client.answer().await?;
        ensure!(answer.status == status && answer.closes(), "{name}: {answer:?}");
        client.ensure_closed().await?;
    }
    let body = body("sandbox/decider");
    let mut client = Client::connect(gateway.server.address()).await?;
    client.send(expecting(secret, body.len())).await?;
    ensure!(client.answer().await?.status == 100);
    client.send(&body).await?;
    let answer = client.answer().await?;
    ensure!(answer.status == 200 && !answer.closes(), "{answer:?}");
    gateway.server.stop().await
}

#[tokio::test]
async fn http_2_preface_is_rejected_with_few_log_lines() -> Result<()> {
    let mut instance = Instance::new("")?;
    instance.set_env("RUST_LOG", "info,api_actix=debug");
    let gateway = TestGateway::of(instance).await?;
    let lines = || gateway.server.output().lines().count();
    let before = lines();
    let began = tokio::time::Instant::now();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(gateway.server.address()).await?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await?;
        // GOAWAY with the code HTTP_1_1_REQUIRED.
        ensure!(said.ends_with(&[0, 0, 0, 0xd]), "{said:?}");
    }
    let seconds = usize::try_from(began.elapsed().as_secs())? + 2;
    gateway.server.ensure_healthy().await?;
    let written = lines() - before;
    ensure!(written <= 10 * seconds + 5, "{written} lines: {}", gateway.server.output());
    gateway.server.stop().await
}

/// Sends bytes, then others repeatedly until the server closes, and reads nothing.
async fn attack(address: SocketAddr, bytes: String, repeated: &'static str) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let _ = stream.write_all(bytes.as_bytes()).await;
    while !repeated.is_empty() && stream.write_all(repeated.as_bytes()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn slow_clients_do_not_block_metrics() -> Result<()> {
    let mut instance = Instance::new("")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let gateway = TestGateway::of(instance).await?;
    let mut slow = JoinSet::new();
    for (bytes, repeated) in [
        ("GET /metrics HTTP/1.1\r\nx: ".to_owned(), "a"),
        (request("POST", "/metrics", CHUNKED), "1\r\na\r\n"),
        (request("GET", "/metrics", "").repeat(100), ""),
    ] {
        for _ in 0..100 {
            slow.spawn(attack(metrics, bytes.clone(), repeated));
        }
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let scrape = tokio::time::timeout(Duration::from_secs(10), Scrape::take(metrics)).await;
        ensure!(scrape.context("the scraper is shut out")??.value("tollgate_requests_in_flight") == 0);
    }
    drop(slow);
    gateway.server.stop().await
}

//! Graceful stops.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Instance, SecondHand, Upstream, wait_for};

use super::client::{Client, decision, request};
use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

async fn gateway(upstream: &Upstream, drain_ms: u64, server: &str) -> Result<TestGateway> {
    let toml = format!("[server]\n{server}\n{}", providers_toml(&upstream.base_url(), &upstream.base_url(), 60_000));
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    instance.set_env("TOLLGATE__SERVER__DRAIN_MS", drain_ms.to_string());
    TestGateway::of(instance).await
}

async fn stopped(gateway: TestGateway) -> Result<Instance> {
    let TestGateway { instance, server, .. } = gateway;
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(instance)
}

/// Sends requests in sequence, on one connection while the server keeps it; ends when no new connection can be opened.
/// Returns the ids of the responses.
async fn keep_asking(address: SocketAddr, request: String) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    while let Ok(mut client) = Client::connect(address).await {
        loop {
            client.send(&request).await.with_context(|| format!("request {} was not sent", ids.len()))?;
            let answer = client.answer().await.with_context(|| format!("request {} has no answer", ids.len()))?;
            ensure!(answer.status == 200, "{answer:?}");
            let closes = answer.closes();
            let answer: Value = serde_json::from_str(&answer.body)?;
            ids.push(answer["id"].as_str().context("no id")?.to_owned());
            if closes {
                break;
            }
        }
    }
    Ok(ids)
}

#[tokio::test]
async fn stop_under_load_completes_and_charges_every_request() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(20), ANSWER.to_owned())).await?;
    let gateway = gateway(&alpha, 1_000, "").await?;
    let address = gateway.server.address();
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        clients.spawn(keep_asking(address, decision(&gateway.inference.secret, &body("acme/alone"))));
    }
    alpha.wait_for_requests(100).await?;
    gateway.server.terminate().await?;
    let mut answered = BTreeSet::new();
    while let Some(ids) = clients.join_next().await {
        for id in ids?? {
            ensure!(answered.insert(id), "an id was given twice");
        }
    }
    let instance = stopped(gateway).await?;
    let database = SecondHand::of(&instance).await?;
    let charged = database.number("SELECT count(*) FROM usage_records").await?;
    let completed = database.number("SELECT count(*) FROM usage_records WHERE outcome = 'completed'").await?;
    database.close().await?;
    let answered = i64::try_from(answered.len())?;
    ensure!(answered > 100 && (charged, completed) == (answered, answered), "{answered} {charged} {completed}");
    Ok(())
}

#[tokio::test]
async fn draining_server_is_not_ready_and_sends_connection_close() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = gateway(&alpha, 60_000, "").await?;
    let address = gateway.server.address();
    let (ready, live) = (request("GET", "/health/ready", ""), request("GET", "/health/live", ""));
    let mut kept = Client::connect(address).await?;
    kept.send(&live).await?;
    ensure!(!kept.answer().await?.closes());
    gateway.server.terminate().await?;
    wait_for("the drain", || gateway.server.output().contains("draining")).await?;
    kept.send(&ready).await?;
    let answer = kept.answer().await?;
    ensure!(answer.status == 503 && answer.closes() && answer.body.contains(r#"["draining"]"#), "{answer:?}");
    kept.ensure_closed().await?;
    for asked in [live.clone(), decision(&gateway.inference.secret, &body("acme/alone"))] {
        let mut client = Client::connect(address).await?;
        client.send(asked).await?;
        let answer = client.answer().await?;
        ensure!(answer.status == 200 && answer.closes(), "{answer:?}");
        client.ensure_closed().await?;
    }
    // A second signal ends the drain period early. A connection with a partial request is still served.
    let mut begun = Client::connect(address).await?;
    begun.send(&live[..5]).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.server.terminate().await?;
    wait_for("the end of the period", || gateway.server.output().contains("listener closed")).await?;
    begun.send(&live[5..]).await?;
    ensure!(begun.answer().await?.status == 200);
    drop(begun);
    stopped(gateway).await?;
    Ok(())
}

#[tokio::test]
async fn third_signal_ends_requests_in_flight() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let gateway = gateway(&alpha, 60_000, "").await?;
    let mut client = Client::connect(gateway.server.address()).await?;
    client.send(decision(&gateway.inference.secret, &body("acme/alone"))).await?;
    alpha.wait_for_request().await?;
    for line in ["draining", "listener closed"] {
        gateway.server.terminate().await?;
        wait_for(line, || gateway.server.output().contains(line)).await?;
    }
    gateway.server.terminate().await?;
    tokio::time::timeout(Duration::from_secs(20), stopped(gateway)).await.context("it waits for the request")??;
    ensure!(client.answer().await.is_err());
    Ok(())
}

#[tokio::test]
async fn connections_in_accept_queue_are_served_at_stop() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let gateway = gateway(&alpha, 100, "workers = 1\nmax_connections_per_worker = 1").await?;
    let mut busy = Client::connect(gateway.server.address()).await?;
    busy.send(decision(&gateway.inference.secret, &body("acme/alone"))).await?;
    alpha.wait_for_request().await?;
    // More than a worker accepts beyond its limit: the others wait in the system's queue.
    let mut waiting = Vec::new();
    for _ in 0..40 {
        let mut client = Client::connect(gateway.server.address()).await?;
        client.send(request("GET", "/health/live", "")).await?;
        waiting.push(client);
    }
    gateway.server.terminate().await?;
    ensure!(busy.answer().await?.status == 200);
    for (number, mut client) in waiting.into_iter().enumerate() {
        let answer = client.answer().await.with_context(|| format!("connection {number}"))?;
        ensure!(answer.status == 200, "{answer:?}");
    }
    stopped(gateway).await?;
    Ok(())
}

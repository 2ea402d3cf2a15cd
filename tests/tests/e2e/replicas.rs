//! Two processes on one database.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use tollgate_tests::{Call, promotion};

use crate::catalogue::row;
use crate::gateway::{TestGateway, body, outdated_for};

const SEEN: Duration = Duration::from_secs(1);

#[tokio::test]
async fn changes_reach_both_processes_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let beside = gateway.instance.serve_beside().await?;
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    for server in [&gateway.server, &beside] {
        server.send(&count).await?.ok()?;
    }
    gateway.instance.json(&["key", "disable", &gateway.inference.hash]).await?;
    let since = Instant::now();
    for server in [&gateway.server, &beside] {
        let took = outdated_for(server, &count, 401, since).await?;
        ensure!(took <= SEEN, "a disabled key lived on for {took:?}");
    }
    // A new key works immediately at both.
    let key = gateway.instance.inference_key().await?;
    for server in [&beside, &gateway.server] {
        server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    std::fs::write(
        gateway.instance.path().join("rows.json"),
        json!([row("acme/new", "acme/new", "text")]).to_string(),
    )?;
    gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    let since = Instant::now();
    let model = Call::get("/api/v1/model/acme/new").key(&key.secret);
    for server in [&gateway.server, &beside] {
        let took = outdated_for(server, &model, 200, since).await?;
        ensure!(took <= SEEN, "an import took {took:?} to be seen");
    }
    beside.stop().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn processes_share_quota_and_idempotency_keys() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 1000000\n").await?;
    let beside = gateway.instance.serve_beside().await?;
    let id = gateway.instance.put("sess_a", "a", &vec![b'a'; 100_000]).await?;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..24 {
        let address = if number % 2 == 0 { gateway.server.address() } else { beside.address() };
        let call =
            promotion(&gateway.inference.secret, "sess_a", &id).header("idempotency-key", format!("k{}", number / 2));
        calls.spawn(async move { call.send(address).await });
    }
    let mut made = std::collections::BTreeMap::<String, usize>::new();
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        if reply.status == 200 {
            *made.entry(reply.ok()?["id"].to_string()).or_default() += 1;
        } else {
            reply.envelope(403)?;
        }
    }
    ensure!(made.len() == 10, "{} documents of a tenth of the quota each", made.len());
    ensure!(made.values().all(|times| *times == 2), "a retry at the other process made a document: {made:?}");
    ensure!(gateway.instance.document_blobs()?.len() == 10);
    Ok(())
}

#[tokio::test]
async fn concurrent_first_starts_create_one_instance() -> Result<()> {
    let instance = tollgate_tests::Instance::new("")?;
    let (one, two) = tokio::join!(instance.serve(), instance.serve_beside());
    let (one, two) = (one?, two?);
    let key = instance.inference_key().await?;
    for server in [&one, &two] {
        server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    let listed = instance.json(&["key", "list", "--management"]).await?;
    ensure!(crate::costs::rows(&listed)?.len() == 1, "{listed}");
    let listed = instance.json(&["workspace", "list"]).await?;
    ensure!(crate::costs::rows(&listed)?.len() == 1, "{listed}");
    Ok(())
}

//! Changes of keys over HTTP: sent back, at once, repeated, and in force on every server.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Call, Reply, decisions};

use crate::gateway::{TestGateway, body, outdated_for};

const KEYS: &str = "/api/v1/keys";

fn create(secret: &str, record: &Value) -> Call {
    Call::post(KEYS).key(secret).json(record.to_string())
}

fn of_key(method: Method, gateway: &TestGateway, name: &str) -> Call {
    Call::new(method, format!("{KEYS}/{name}")).key(&gateway.management.secret)
}

fn created(reply: &Reply) -> Result<(Value, String)> {
    ensure!(reply.status == 201, "{}: {}", reply.status, reply.text());
    let body = reply.json()?;
    let hash = body["data"]["hash"].as_str().context("no hash")?.to_owned();
    Ok((body, hash))
}

async fn entries(gateway: &TestGateway) -> Result<usize> {
    let log = gateway.instance.json(&["audit", "list", "--limit", "10000"]).await?;
    Ok(log["data"].as_array().context("no entries")?.len())
}

#[tokio::test]
async fn record_that_is_sent_back_changes_nothing() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let record = json!({"name": "all", "limit": 0.123_456_789_012, "limit_reset": "weekly", "requests_per_minute": 7,
        "tokens_per_minute": 9, "expires_at": "2097-01-31T00:00:00Z", "guardrail_id": guardrail,
        "creator_user_id": "creator", "external_user": "user"});
    let (made, hash) = created(&gateway.server.send(&create(&gateway.management.secret, &record)).await?)?;
    let (managing, other) = created(
        &gateway
            .server
            .send(&create(&gateway.management.secret, &json!({"name": "m", "management": {"access": "keys"}})))
            .await?,
    )?;
    let count = entries(&gateway).await?;
    for (hash, made) in [(hash, made), (other, managing)] {
        let read = gateway.server.send(&of_key(Method::GET, &gateway, &hash)).await?;
        let shown = &read.ok()?["data"];
        for (name, value) in made["data"].as_object().context("no record")? {
            ensure!(shown[name.as_str()] == *value, "{name}: {shown} and {made}");
        }
        let back = of_key(Method::PATCH, &gateway, &hash).json(read.ok()?["data"].to_string());
        let same = gateway.server.send(&back.header("if-match", read.header("etag"))).await?;
        ensure!(same.ok()?["data"] == made["data"], "{} and {made}", same.text());
        ensure!(same.header("etag") == read.header("etag"), "another version");
    }
    ensure!(entries(&gateway).await? == count, "an entry was written");
    Ok(())
}

#[tokio::test]
async fn concurrent_changes_of_a_version_have_a_single_effect() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let other = gateway.instance.serve_beside().await?;
    let read = gateway.server.send(&of_key(Method::GET, &gateway, &gateway.inference.hash)).await?;
    let mut calls = JoinSet::new();
    for number in 0..12 {
        let call = of_key(Method::PATCH, &gateway, &gateway.inference.hash).header("if-match", read.header("etag"));
        let call = call.json(json!({"name": format!("name {number}")}).to_string());
        let to = if number % 2 == 0 { gateway.server.address() } else { other.address() };
        calls.spawn(async move { call.send(to).await });
    }
    let mut statuses = Vec::new();
    while let Some(reply) = calls.join_next().await {
        statuses.push(reply??.status);
    }
    let count = |status| statuses.iter().filter(|other| **other == status).count();
    ensure!((count(200), count(412)) == (1, 11), "{statuses:?}");
    Ok(())
}

#[tokio::test]
async fn concurrent_creations_with_one_idempotency_key_create_one_key() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let other = gateway.instance.serve_beside().await?;
    let call = create(&gateway.management.secret, &json!({"name": "once"})).header("idempotency-key", "k");
    let mut calls = JoinSet::new();
    for number in 0..12 {
        let to = if number % 2 == 0 { gateway.server.address() } else { other.address() };
        let call = call.clone();
        calls.spawn(async move { call.send(to).await });
    }
    let mut ids = std::collections::BTreeSet::new();
    let mut secrets = 0;
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        if reply.status == 201 {
            secrets += 1;
            ids.insert(reply.json()?["data"]["id"].to_string());
        } else {
            // A secret is never stored: the repetition names the key, which its caller rotates.
            ids.insert(reply.envelope(409)?["error"]["metadata"]["id"].to_string());
        }
    }
    ensure!((secrets, ids.len()) == (1, 1), "{secrets} secrets of {ids:?}");
    let listed = gateway.server.send(&Call::get(format!("{KEYS}?name=once")).key(&gateway.management.secret)).await?;
    ensure!(listed.ok()?["total_count"] == 1, "{}", listed.text());
    Ok(())
}

#[tokio::test]
async fn key_that_is_deleted_at_one_server_ends_at_the_other_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let other = gateway.instance.serve_beside().await?;
    for change in [Some(r#"{"disabled":true}"#), None] {
        let (made, hash) =
            created(&gateway.server.send(&create(&gateway.management.secret, &json!({"name": "k"}))).await?)?;
        let call = decisions(made["key"].as_str().unwrap_or_default(), body("sandbox/decider"));
        other.send(&call).await?.ok()?;
        let end = match change {
            Some(change) => of_key(Method::PATCH, &gateway, &hash).json(change),
            None => of_key(Method::DELETE, &gateway, &hash),
        };
        gateway.server.send(&end).await?.ok()?;
        ensure!(gateway.server.send(&call).await?.status == 401, "the server of the change still accepts the key");
        let outdated = outdated_for(&other, &call, 401, Instant::now()).await?;
        ensure!(outdated <= Duration::from_secs(1), "the other server accepted the key for {outdated:?}");
    }
    Ok(())
}

//! Rotations of keys: a new secret for the same key.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Call, Instance, Key, Server};

use crate::gateway::{TestGateway, body, outdated_for};
use crate::limits::{ensure_audit_passes, gateway};

/// The time within which another process must reject the old secret.
const DEATH: Duration = Duration::from_secs(1);

fn rotation(gateway: &TestGateway, name: &str) -> Call {
    Call::post(format!("/api/v1/keys/{name}/rotate")).key(&gateway.management.secret)
}

/// Returns the key with its new secret.
fn rotated(answer: &Value) -> Result<Key> {
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("{answer}"));
    Ok(Key { secret: text(&answer["key"])?, hash: text(&answer["data"]["hash"])?, id: text(&answer["data"]["id"])? })
}

fn reading(secret: &str) -> Call {
    Call::get("/api/v1/models/count").key(secret)
}

async fn status(server: &Server, secret: &str) -> Result<u16> {
    Ok(server.send(&reading(secret)).await?.status)
}

#[tokio::test]
async fn rotated_key_keeps_its_limit_history_and_guardrail() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    let instance = &gateway.instance;
    let key = instance.key(&["--name", "ci", "--limit-usd", "1"]).await?;
    let guardrail = instance.guardrail(&[]).await?;
    instance.json(&["guardrail", "assign", &guardrail, &key.hash]).await?;
    gateway.server.decide(&key.secret, body("acme/alone")).await?.ok()?;

    let reply = gateway.server.send(&rotation(&gateway, &key.hash)).await?;
    let new = rotated(&reply.ok()?)?;
    ensure!(status(&gateway.server, &key.secret).await? == 401, "the old secret is refused at once");
    ensure!(reply.header("cache-control") == "private, no-store", "{:?}", reply.header("cache-control"));
    ensure!(new.id == key.id && new.hash != key.hash && new.secret != key.secret);
    gateway.server.decide(&new.secret, body("acme/alone")).await?.ok()?;
    // Each answer costs 0.0000042 USD; the bound of a request is far higher.
    instance.json(&["key", "update", &key.id, "--limit-usd", "0.000009"]).await?;
    tokio::time::sleep(DEATH + Duration::from_millis(100)).await;
    let refused = gateway.server.decide(&new.secret, body("acme/alone")).await?.envelope(402)?;
    let spent = &refused["error"]["metadata"]["spent_usd"];
    ensure!(spent.as_f64() == Some(0.000_008_4), "both answers count: {refused}");

    let own = gateway.server.send(&Call::get("/api/v1/key").key(&new.secret)).await?.ok()?;
    let metadata = &refused["error"]["metadata"];
    for (own, of_402) in [("limit_usd", "limit_usd"), ("spend_usd", "spent_usd"), ("reserved_usd", "reserved_usd")]
        .map(|(name, other)| (&own["data"]["effective_budget"][name], &metadata[other]))
    {
        ensure!(own == of_402, "the holder sees the figures of the 402: {own} {of_402}");
    }
    ensure!(own["data"]["usage_daily"] == *spent && own["data"]["usage"] == *spent, "{own}");
    ensure!(own["data"]["limit_remaining"].as_f64() == Some(0.000_000_6) && own["data"]["last_used_at"].is_string());

    for name in [&key.id, &new.hash] {
        let listed = instance.json(&["usage", "list", "--key", name]).await?;
        let rows = crate::costs::rows(&listed)?;
        ensure!(rows.len() == 2 && rows.iter().all(|row| row["api_key"] == key.id.as_str()), "{listed}");
        let shown = instance.json(&["key", "show", name]).await?;
        ensure!(shown["id"] == key.id.as_str() && shown["hash"] == new.hash.as_str(), "{shown}");
        ensure!(shown["guardrail_id"] == guardrail.as_str() && shown["name"] == "ci", "{shown}");
    }
    ensure!(instance.refused(&["usage", "list", "--key", &key.hash]).await?.contains("not found"));
    gateway.server.send(&rotation(&gateway, &key.hash)).await?.error(404, "Resource not found")?;

    let path = format!("/api/v1/guardrails/{guardrail}/assignments/keys");
    let names = json!({"key_hashes": [key.id, new.hash, key.hash, gateway.inference.id]}).to_string();
    for (path, member) in [(path.clone(), "assigned_count"), (format!("{path}/remove"), "unassigned_count")] {
        let answer = gateway.server.send(&Call::post(path).key(&gateway.management.secret).json(&names)).await?.ok()?;
        ensure!(answer[member] == 2, "each key once: {answer}");
    }
    ensure!(instance.json(&["key", "show", &key.id]).await?["guardrail_id"].is_null());

    let log = instance.json(&["audit", "list"]).await?;
    let entries = log["data"].as_array().with_context(|| format!("{log}"))?;
    let entry = entries.iter().find(|entry| entry["action"] == "key.rotate").context("no entry")?;
    ensure!(entry["subject"] == format!("key {}", key.id), "{entry}");
    ensure!(entry["actor"] == format!("key:{}", gateway.management.id), "{entry}");
    ensure!(entry["details"]["before"]["hash"] == key.hash.as_str(), "{entry}");
    ensure!(entry["details"]["after"]["hash"] == new.hash.as_str(), "{entry}");
    ensure!(!log.to_string().contains("sk-tg-v1-"), "a secret is in the log");
    ensure!(instance.json(&["audit", "verify"]).await?["verified"] == true);
    ensure_audit_passes(instance).await?;
    Ok(())
}

#[tokio::test]
async fn other_process_rejects_old_secret_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let second = gateway.instance.serve_beside().await?;
    let mut secret = gateway.inference.secret.clone();
    for by_command in [false, true] {
        // The first request caches the key.
        for server in [&gateway.server, &second] {
            ensure!(status(server, &secret).await? == 200);
        }
        let new = if by_command {
            let made = gateway.instance.json(&["key", "rotate", &gateway.inference.id]).await?;
            ensure!(made["id"] == gateway.inference.id.as_str() && made["name"] == "tests", "{made}");
            made["key"].as_str().context("no key")?.to_owned()
        } else {
            rotated(&gateway.server.send(&rotation(&gateway, &gateway.inference.id)).await?.ok()?)?.secret
        };
        let since = Instant::now();
        ensure!(status(&second, &new).await? == 200, "the new secret works at once");
        let took = outdated_for(&second, &reading(&secret), 401, since).await?;
        ensure!(took <= DEATH, "the old secret lived on for {took:?}");
        outdated_for(&gateway.server, &reading(&secret), 401, since).await?;
        secret = new;
    }
    second.stop().await
}

#[tokio::test]
async fn concurrent_rotations_leave_one_live_secret() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let second = gateway.instance.serve_beside().await?;
    let mut calls = JoinSet::new();
    for number in 0..8 {
        let address = if number % 2 == 0 { gateway.server.address() } else { second.address() };
        let call = rotation(&gateway, &gateway.inference.id);
        calls.spawn(async move { call.send(address).await });
    }
    let mut secrets = vec![gateway.inference.secret.clone()];
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        if reply.status == 200 {
            secrets.push(rotated(&reply.json()?)?.secret);
        } else {
            reply.error(409, "changed at the same time")?;
        }
    }
    ensure!(secrets.len() > 1, "one rotation at least succeeds");
    tokio::time::sleep(DEATH).await;
    for server in [&gateway.server, &second] {
        let mut live = 0;
        for secret in &secrets {
            live += usize::from(status(server, secret).await? == 200);
        }
        ensure!(live == 1, "{live} secrets of {} are live", secrets.len());
    }
    second.stop().await
}

#[tokio::test]
async fn rotation_needs_a_management_key_and_a_live_key() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let own = Call::post(format!("/api/v1/keys/{}/rotate", gateway.inference.id)).key(&gateway.inference.secret);
    gateway.server.send(&own).await?.error(403, "Only management keys can perform this operation")?;
    gateway.instance.json(&["key", "delete", &gateway.inference.id]).await?;
    for name in [&gateway.inference.id, &gateway.inference.hash, "nonsense"] {
        gateway.server.send(&rotation(&gateway, name)).await?.error(404, "Resource not found")?;
        gateway.instance.refused(&["key", "rotate", name]).await?;
    }
    Ok(())
}

/// A rotation with a grace, between two servers on PostgreSQL.
struct Grace<'a> {
    gateway: &'a TestGateway,
    /// The server that changes the key.
    changing: &'a Server,
    /// The other one.
    other: &'a Server,
}

impl Grace<'_> {
    fn managing(&self, call: Call) -> Call {
        call.key(&self.gateway.management.secret)
    }

    fn of_key(&self, method: Method, name: &str) -> Call {
        self.managing(Call::new(method, format!("/api/v1/keys/{name}")))
    }

    /// Rotates the key of this name; returns it with its new secret.
    async fn rotate(&self, name: &str, seconds: u32) -> Result<Key> {
        let call = rotation(self.gateway, name).json(json!({"grace_seconds": seconds}).to_string());
        let answer = self.changing.send(&call).await?.ok()?;
        ensure!(answer["data"]["previous_secret_expires_at"].is_null() == (seconds == 0), "{answer}");
        rotated(&answer)
    }

    /// Creates a key and rotates it; returns the key with the old and with the new secret, which both servers accept.
    async fn start(&self, seconds: u32) -> Result<(Key, Key)> {
        let old = self.gateway.instance.inference_key().await?;
        for server in [self.changing, self.other] {
            ensure!(status(server, &old.secret).await? == 200, "the first request caches the key");
        }
        let new = self.rotate(&old.hash, seconds).await?;
        ensure!(new.id == old.id && new.hash != old.hash, "another key");
        Ok((old, new))
    }

    /// Waits until both servers reject the secret, the other one first.
    async fn ensure_ends(&self, secret: &str, since: Instant, change: &str) -> Result<()> {
        for server in [self.other, self.changing] {
            let took = outdated_for(server, &reading(secret), 401, since).await?;
            ensure!(took <= DEATH, "{change}: the old secret lived on for {took:?}");
        }
        Ok(())
    }
}

#[tokio::test]
async fn grace_keeps_old_secret_on_every_server_until_its_end() -> Result<()> {
    let gateway = TestGateway::of(Instance::on_postgres("")?).await?;
    let beside = gateway.instance.serve_beside().await?;
    let grace = Grace { gateway: &gateway, changing: &gateway.server, other: &beside };
    let seconds = 2;
    let since = Instant::now();
    let (old, new) = grace.start(seconds).await?;
    // Time enough for a response before the grace ends.
    let during = Duration::from_millis(1_700);
    let mut tries = 0;
    while since.elapsed() < during {
        for (server, secret) in [
            (&beside, &old.secret),
            (&beside, &new.secret),
            (&gateway.server, &old.secret),
            (&gateway.server, &new.secret),
        ] {
            let own = server.send(&Call::get("/api/v1/key").key(secret)).await?;
            // A response after the grace proves nothing.
            if since.elapsed() < during {
                ensure!(own.ok()?["data"]["id"] == old.id.as_str(), "{}", own.text());
                tries += 1;
            }
        }
        let by_old_hash = beside.send(&grace.of_key(Method::GET, &old.hash)).await?;
        if since.elapsed() < during {
            let record = &by_old_hash.ok()?["data"];
            ensure!(record["hash"] == new.hash.as_str() && record["id"] == old.id.as_str(), "{record}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(tries > 0, "the machine was too slow to send a request during the grace");
    tokio::time::sleep_until(since + Duration::from_secs(seconds.into())).await;
    for server in [&gateway.server, &beside] {
        // The grace began after `since`.
        let took = outdated_for(server, &reading(&old.secret), 401, Instant::now()).await?;
        ensure!(took <= DEATH, "the old secret lived on for {took:?} after the grace");
        ensure!(status(server, &new.secret).await? == 200, "the new secret stays valid");
        server.send(&grace.of_key(Method::GET, &old.hash)).await?.error(404, "Resource not found")?;
    }
    let ended = gateway.server.send(&grace.of_key(Method::GET, &new.hash)).await?.ok()?;
    ensure!(ended["data"]["hash"] == new.hash.as_str(), "{ended}");
    beside.stop().await
}

/// The grace is far longer than the test: only the change ends it.
#[tokio::test]
async fn rotation_disabling_and_deletion_end_the_grace_on_the_other_server() -> Result<()> {
    const LONG: u32 = 600;
    let gateway = TestGateway::of(Instance::on_postgres("")?).await?;
    let beside = gateway.instance.serve_beside().await?;
    let grace = Grace { gateway: &gateway, changing: &gateway.server, other: &beside };
    let disable = |name: &str| grace.of_key(Method::PATCH, name).json(r#"{"disabled":true}"#);
    let enable = |name: &str| grace.of_key(Method::PATCH, name).json(r#"{"disabled":false}"#);

    // Another rotation: the secret before it has the grace, the one before that has none.
    let (first, second) = grace.start(LONG).await?;
    let both = async |secrets: [&str; 2]| -> Result<()> {
        for server in [&gateway.server, &beside] {
            for secret in secrets {
                ensure!(status(server, secret).await? == 200, "a secret is rejected during its grace");
            }
        }
        Ok(())
    };
    both([&first.secret, &second.secret]).await?;
    let third = grace.rotate(&first.hash, LONG).await?;
    grace.ensure_ends(&first.secret, Instant::now(), "rotation").await?;
    both([&second.secret, &third.secret]).await?;
    let fourth = grace.rotate(&second.hash, 0).await?;
    grace.ensure_ends(&second.secret, Instant::now(), "rotation without a grace").await?;
    grace.ensure_ends(&third.secret, Instant::now(), "rotation without a grace").await?;
    both([&fourth.secret, &fourth.secret]).await?;

    // The path takes the old hash. Enabling gives the old secret nothing back.
    let (old, new) = grace.start(LONG).await?;
    both([&old.secret, &new.secret]).await?;
    gateway.server.send(&disable(&old.hash)).await?.ok()?;
    let since = Instant::now();
    grace.ensure_ends(&old.secret, since, "disabling").await?;
    grace.ensure_ends(&new.secret, since, "disabling").await?;
    let enabled = gateway.server.send(&enable(&new.hash)).await?.ok()?;
    ensure!(enabled["data"]["previous_secret_expires_at"].is_null(), "{enabled}");
    outdated_for(&beside, &reading(&new.secret), 200, Instant::now()).await?;
    for server in [&gateway.server, &beside] {
        ensure!(status(server, &old.secret).await? == 401, "the old secret works again after disabling");
    }

    let (old, new) = grace.start(LONG).await?;
    both([&old.secret, &new.secret]).await?;
    gateway.server.send(&grace.of_key(Method::DELETE, &old.hash)).await?.ok()?;
    let since = Instant::now();
    grace.ensure_ends(&old.secret, since, "deletion").await?;
    grace.ensure_ends(&new.secret, since, "deletion").await?;
    beside.stop().await
}

//! Stores whose files were removed.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Reply, SecondHand};

use crate::gateway::{TestGateway, body};
use crate::stores::unavailable;

/// Repeats a call until it has this status.
async fn until(gateway: &TestGateway, call: &Call, status: u16) -> Result<Reply> {
    let since = Instant::now();
    loop {
        let reply = gateway.server.send(call).await?;
        if reply.status == status {
            return Ok(reply);
        }
        ensure!(since.elapsed() < Duration::from_secs(20), "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn unverifiable_key_is_answered_with_503() -> Result<()> {
    let gateway = TestGateway::start("[keys]\nmax_stale_ms = 0\n").await?;
    let known = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
    gateway.server.send(&known).await?.ok()?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("ALTER TABLE changes RENAME TO changes_away").await?;
    let since = Instant::now();
    unavailable(&until(&gateway, &known, 503).await?)?;
    ensure!(since.elapsed() <= Duration::from_secs(2), "a key was believed for {:?}", since.elapsed());
    unavailable(&gateway.server.send(&stranger).await?)?;
    let ready = gateway.server.send(&Call::get("/health/ready")).await?;
    ensure!(ready.status == 503, "it calls itself ready");
    ensure!(gateway.server.send(&Call::get("/health/live")).await?.status == 200);

    hand.execute("ALTER TABLE changes_away RENAME TO changes").await?;
    hand.close().await?;
    until(&gateway, &known, 200).await?;
    until(&gateway, &stranger, 401).await?;
    gateway.decide(body("sandbox/decider")).await?;
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn failed_blob_store_returns_503_and_releases_quota() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 1024\n").await?;
    let id = gateway.instance.put("sess_a", "a", b"ten bytes.").await?;
    let documents = gateway.instance.blobs().join("documents");
    let away = gateway.instance.path().join("away");
    if documents.exists() {
        std::fs::rename(&documents, &away)?;
    }
    std::fs::write(&documents, b"no folder")?;
    for _ in 0..2 {
        unavailable(&gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?)?;
    }
    gateway.decide(body("sandbox/decider")).await?;
    std::fs::remove_file(&documents)?;
    if away.exists() {
        std::fs::rename(&away, &documents)?;
    }
    // A document counts 1024 bytes at least: the quota has room for exactly one, so the failures have released theirs.
    gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?.ok()?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?.envelope(403)?;
    gateway.server.ensure_healthy().await
}

//! Stores that are not there any more.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Reply, SecondHand};

use crate::stores::unavailable;
use crate::world::{World, body};

/// Repeats a call until it has this status.
async fn until(world: &World, call: &Call, status: u16) -> Result<Reply> {
    let since = Instant::now();
    loop {
        let reply = world.server.send(call).await?;
        if reply.status == status {
            return Ok(reply);
        }
        ensure!(since.elapsed() < Duration::from_secs(20), "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn where_it_cannot_be_known_whether_a_key_still_stands_nobody_is_let_in_or_called_a_stranger() -> Result<()> {
    let world = World::start("[keys]\nmax_stale_ms = 0\n").await?;
    let known = Call::get("/api/v1/models/count").key(&world.inference.secret);
    let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
    world.server.send(&known).await?.ok()?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    hand.execute("ALTER TABLE changes RENAME TO changes_away").await?;
    let since = Instant::now();
    unavailable(&until(&world, &known, 503).await?)?;
    ensure!(since.elapsed() <= Duration::from_secs(2), "a key was believed for {:?}", since.elapsed());
    unavailable(&world.server.send(&stranger).await?)?;
    let ready = world.server.send(&Call::get("/health/ready")).await?;
    ensure!(ready.status == 503, "it calls itself ready");
    ensure!(world.server.send(&Call::get("/health/live")).await?.status == 200);

    hand.execute("ALTER TABLE changes_away RENAME TO changes").await?;
    hand.close().await?;
    until(&world, &known, 200).await?;
    until(&world, &stranger, 401).await?;
    world.decide(body("sandbox/decider")).await?;
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn a_blob_store_that_takes_nothing_is_a_503_and_quota_is_given_back() -> Result<()> {
    let world = World::start("[limits]\nworkspace_quota_bytes = 10\nmin_charged_file_bytes = 0\n").await?;
    let id = world.instance.put("sess_a", "a", b"ten bytes.").await?;
    let documents = world.instance.blobs().join("documents");
    let away = world.instance.path().join("away");
    if documents.exists() {
        std::fs::rename(&documents, &away)?;
    }
    std::fs::write(&documents, b"no folder")?;
    for _ in 0..2 {
        unavailable(&world.server.promote(&world.inference.secret, "sess_a", &id).await?)?;
    }
    world.decide(body("sandbox/decider")).await?;
    std::fs::remove_file(&documents)?;
    if away.exists() {
        std::fs::rename(&away, &documents)?;
    }
    // The quota has room for exactly one, so that nothing of the failures can have kept any.
    world.server.promote(&world.inference.secret, "sess_a", &id).await?.ok()?;
    world.server.promote(&world.inference.secret, "sess_a", &id).await?.envelope(403)?;
    world.server.ensure_healthy().await
}

//! Files that change or go away while they are copied, and processes that do.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;
use tollgate_tests::{Call, Reply, files_below, promotion};

use crate::promote::{file_id, used_bytes};
use crate::world::World;

const LIMITS: &str =
    "[limits]\nmax_file_bytes = 8589934592\nworkspace_quota_bytes = 6000000000\nmin_charged_file_bytes = 0\n";
/// Large enough that a copy is still under way when something happens to it.
const LARGE: u64 = 4_000_000_000;

async fn large(world: &World) -> Result<PathBuf> {
    let workspace = world.instance.default_workspace().await?;
    let file = world.instance.container_file(&workspace, "sess_a", "large")?;
    File::create(&file)?.set_len(LARGE)?;
    Ok(file)
}

/// Waits until bytes of the copy lie somewhere in the blob store.
async fn copying(world: &World) -> Result<()> {
    for _ in 0..500 {
        let under_way = files_below(&world.instance.blobs())?.into_iter().any(|file| {
            !file.starts_with(world.instance.blobs().join("containers"))
                && file.metadata().is_ok_and(|metadata| metadata.len() > 0)
        });
        if under_way {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("no copy began")
}

/// Promotes the large file while `meddle` happens to it.
async fn meddled(world: &World, meddle: impl FnOnce() -> std::io::Result<()>) -> Result<Reply> {
    let call: Call = promotion(&world.inference.secret, "sess_a", &file_id("large"));
    let calling = call.send(world.server.address());
    tokio::pin!(calling);
    tokio::select! {
        reply = &mut calling => anyhow::bail!("it was done before anything could happen: {}", reply?.text()),
        begun = copying(world) => begun?,
    }
    meddle()?;
    calling.await
}

/// Nothing half-made is left: a document for a 200, and no trace and no quota for anything else.
async fn settled(world: &World, reply: &Reply, statuses: &[u16]) -> Result<()> {
    ensure!(statuses.contains(&reply.status), "{}: {}", reply.status, reply.text());
    let documents = world.instance.document_blobs()?;
    let held = if reply.status == 200 {
        let file = reply.ok()?;
        ensure!(documents.len() == 1, "{documents:?}");
        ensure!(file["size_bytes"] == documents[0].metadata()?.len(), "{file} is not what lies there");
        file["size_bytes"].clone()
    } else {
        reply.envelope(reply.status)?;
        ensure!(documents.is_empty(), "{documents:?} for a {}", reply.status);
        0.into()
    };
    let workspace = world.instance.default_workspace().await?;
    File::create(world.instance.container_file(&workspace, "sess_a", "huge")?)?.set_len(6_000_000_001)?;
    let refused = world.server.promote(&world.inference.secret, "sess_a", &file_id("huge")).await?;
    let metadata = refused.envelope(403)?["error"]["metadata"].clone();
    ensure!(metadata["used_bytes"] == held, "{held} bytes are held: {metadata}");
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn a_file_that_is_cut_short_in_mid_copy_leaves_nothing_half_made() -> Result<()> {
    let world = World::start(LIMITS).await?;
    let file = large(&world).await?;
    let reply = meddled(&world, || File::options().write(true).open(&file)?.set_len(10)).await?;
    settled(&world, &reply, &[200, 404, 503]).await
}

#[tokio::test]
async fn a_file_that_goes_away_in_mid_copy_leaves_nothing_half_made() -> Result<()> {
    let world = World::start(LIMITS).await?;
    let file = large(&world).await?;
    // What was truncated before it was unlinked cannot be read to its end either.
    let reply = meddled(&world, || {
        File::options().write(true).open(&file)?.set_len(0)?;
        std::fs::remove_file(&file)
    })
    .await?;
    settled(&world, &reply, &[404, 503]).await
}

#[tokio::test]
async fn a_stop_in_mid_copy_lets_the_copy_end() -> Result<()> {
    let World { instance, server, inference, management } = World::start("").await?;
    let workspace = instance.default_workspace().await?;
    File::create(instance.container_file(&workspace, "sess_a", "large")?)?.set_len(100 << 20)?;
    let world = World { instance, server, inference, management };
    let call = promotion(&world.inference.secret, "sess_a", &file_id("large"));
    let address = world.server.address();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    copying(&world).await?;
    let World { instance, server, .. } = world;
    server.stop().await?;
    let Some(reply) = calls.join_next().await else { anyhow::bail!("the call is gone") };
    ensure!(reply??.ok()?["size_bytes"] == 100 << 20);
    ensure!(instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn a_caller_that_leaves_in_mid_copy_leaves_nothing_half_made() -> Result<()> {
    let world = World::start("[limits]\nworkspace_quota_bytes = 50000000\n").await?;
    let workspace = world.instance.default_workspace().await?;
    File::create(world.instance.container_file(&workspace, "sess_a", "large")?)?.set_len(40_000_000)?;
    let call = promotion(&world.inference.secret, "sess_a", &file_id("large"));
    let outcome = tokio::time::timeout(Duration::from_millis(30), call.send(world.server.address())).await;
    // Whether it came to an end or was given up: what is taken from the quota is what lies there.
    for _ in 0..200 {
        let lying: u64 = world
            .instance
            .document_blobs()?
            .iter()
            .filter_map(|blob| blob.metadata().ok())
            .map(|blob| blob.len())
            .sum();
        if used_bytes(&world).await? == lying && (outcome.is_err() || lying == 40_000_000) {
            return world.server.ensure_healthy().await;
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("the quota is not what lies in the store")
}

#[tokio::test]
async fn a_process_that_dies_in_mid_copy_leaves_nothing_visible_and_the_next_one_works() -> Result<()> {
    let world = World::start(LIMITS).await?;
    let file = large(&world).await?;
    let small = world.instance.put("sess_a", "small", b"x").await?;
    let call = promotion(&world.inference.secret, "sess_a", &file_id("large")).header("idempotency-key", "k");
    let calling = call.send(world.server.address());
    tokio::pin!(calling);
    tokio::select! {
        reply = &mut calling => anyhow::bail!("it was done before the process died: {}", reply?.text()),
        begun = copying(&world) => begun?,
    }
    let World { instance, server, inference, management } = world;
    server.kill().await?;
    ensure!(calling.await.is_err(), "an answer came from a dead process");
    ensure!(instance.document_blobs()?.is_empty(), "half a document is visible");
    let world = World { server: instance.serve().await?, instance, inference, management };
    let held = &world.instance.json(&["workspace", "list"]).await?["data"][0]["storage_used_bytes"];
    ensure!(*held == 0, "the dead process still holds {held} bytes of the quota");
    world.server.promote(&world.inference.secret, "sess_a", &small).await?.ok()?;
    ensure!(world.instance.document_blobs()?.len() == 1);
    // Nobody works under the key any more: its retry is a promotion like any other.
    File::create(&file)?.set_len(10)?;
    let retry = promotion(&world.inference.secret, "sess_a", &file_id("large")).header("idempotency-key", "k");
    retry.send(world.server.address()).await?.ok()?;
    ensure!(world.instance.document_blobs()?.len() == 2);
    world.server.stop().await
}

//! Promotions during which the file changes, or the process or the client ends.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;
use tollgate_tests::{Call, Reply, files_below, promotion};

use crate::gateway::TestGateway;
use crate::promote::{file_id, used_bytes};

const LIMITS: &str = "[limits]\nmax_file_bytes = 8589934592\nworkspace_quota_bytes = 6000000000\n";
/// Large enough that the copy is still running when it is disturbed.
const LARGE: u64 = 4_000_000_000;

async fn large(gateway: &TestGateway) -> Result<PathBuf> {
    let workspace = gateway.instance.default_workspace().await?;
    let file = gateway.instance.container_file(&workspace, "sess_a", "large")?;
    File::create(&file)?.set_len(LARGE)?;
    Ok(file)
}

/// Waits until the blob store contains bytes of the copy.
async fn copying(gateway: &TestGateway) -> Result<()> {
    for _ in 0..500 {
        let under_way = files_below(&gateway.instance.blobs())?.into_iter().any(|file| {
            !file.starts_with(gateway.instance.blobs().join("containers"))
                && file.metadata().is_ok_and(|metadata| metadata.len() > 0)
        });
        if under_way {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    anyhow::bail!("no copy began")
}

/// Promotes the large file and disturbs the copy with `disturb`.
async fn promote_while(gateway: &TestGateway, disturb: impl FnOnce() -> std::io::Result<()>) -> Result<Reply> {
    let call: Call = promotion(&gateway.inference.secret, "sess_a", &file_id("large"));
    let calling = call.send(gateway.server.address());
    tokio::pin!(calling);
    tokio::select! {
        reply = &mut calling => anyhow::bail!("it was done before anything could happen: {}", reply?.text()),
        begun = copying(gateway) => begun?,
    }
    disturb()?;
    calling.await
}

/// Checks that nothing partial remains: a document for a 200, and otherwise no file and no used quota.
async fn ensure_nothing_partial(gateway: &TestGateway, reply: &Reply, statuses: &[u16]) -> Result<()> {
    ensure!(statuses.contains(&reply.status), "{}: {}", reply.status, reply.text());
    let documents = gateway.instance.document_blobs()?;
    let held = if reply.status == 200 {
        let file = reply.ok()?;
        ensure!(documents.len() == 1, "{documents:?}");
        ensure!(file["size_bytes"] == documents[0].metadata()?.len(), "{file} is not what lies there");
        // A document counts 1024 bytes at least.
        serde_json::Value::from(file["size_bytes"].as_u64().context("no size")?.max(1_024))
    } else {
        reply.envelope(reply.status)?;
        ensure!(documents.is_empty(), "{documents:?} for a {}", reply.status);
        0.into()
    };
    let workspace = gateway.instance.default_workspace().await?;
    File::create(gateway.instance.container_file(&workspace, "sess_a", "huge")?)?.set_len(6_000_000_001)?;
    let refused = gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("huge")).await?;
    let metadata = refused.envelope(403)?["error"]["metadata"].clone();
    ensure!(metadata["used_bytes"] == held, "{held} bytes are held: {metadata}");
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn file_truncated_during_copy_leaves_nothing_partial() -> Result<()> {
    let gateway = TestGateway::start(LIMITS).await?;
    let file = large(&gateway).await?;
    let reply = promote_while(&gateway, || File::options().write(true).open(&file)?.set_len(10)).await?;
    ensure_nothing_partial(&gateway, &reply, &[200, 404, 503]).await
}

#[tokio::test]
async fn file_removed_during_copy_leaves_nothing_partial() -> Result<()> {
    let gateway = TestGateway::start(LIMITS).await?;
    let file = large(&gateway).await?;
    // A file that is truncated before it is unlinked cannot be read to its end either.
    let reply = promote_while(&gateway, || {
        File::options().write(true).open(&file)?.set_len(0)?;
        std::fs::remove_file(&file)
    })
    .await?;
    ensure_nothing_partial(&gateway, &reply, &[404, 503]).await
}

#[tokio::test]
async fn stop_waits_for_running_copy() -> Result<()> {
    let TestGateway { instance, server, inference, management } = TestGateway::start("").await?;
    let workspace = instance.default_workspace().await?;
    File::create(instance.container_file(&workspace, "sess_a", "large")?)?.set_len(100 << 20)?;
    let gateway = TestGateway { instance, server, inference, management };
    let call = promotion(&gateway.inference.secret, "sess_a", &file_id("large"));
    let address = gateway.server.address();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    copying(&gateway).await?;
    let TestGateway { instance, server, .. } = gateway;
    server.stop().await?;
    let Some(reply) = calls.join_next().await else { anyhow::bail!("the call is gone") };
    ensure!(reply??.ok()?["size_bytes"] == 100 << 20);
    ensure!(instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn disconnect_during_copy_leaves_nothing_partial() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 50000000\n").await?;
    let workspace = gateway.instance.default_workspace().await?;
    File::create(gateway.instance.container_file(&workspace, "sess_a", "large")?)?.set_len(40_000_000)?;
    let call = promotion(&gateway.inference.secret, "sess_a", &file_id("large"));
    let outcome = tokio::time::timeout(Duration::from_millis(30), call.send(gateway.server.address())).await;
    // The copy completed or was cancelled: the used quota equals the stored bytes.
    for _ in 0..200 {
        let lying: u64 = gateway
            .instance
            .document_blobs()?
            .iter()
            .filter_map(|blob| blob.metadata().ok())
            .map(|blob| blob.len())
            .sum();
        if used_bytes(&gateway).await? == lying && (outcome.is_err() || lying == 40_000_000) {
            return gateway.server.ensure_healthy().await;
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("the quota is not what lies in the store")
}

#[tokio::test]
async fn crash_during_copy_leaves_nothing_visible_and_retry_works() -> Result<()> {
    let gateway = TestGateway::start(LIMITS).await?;
    let file = large(&gateway).await?;
    let small = gateway.instance.put("sess_a", "small", b"x").await?;
    let call = promotion(&gateway.inference.secret, "sess_a", &file_id("large")).header("idempotency-key", "k");
    let calling = call.send(gateway.server.address());
    tokio::pin!(calling);
    tokio::select! {
        reply = &mut calling => anyhow::bail!("it was done before the process died: {}", reply?.text()),
        begun = copying(&gateway) => begun?,
    }
    let TestGateway { instance, server, inference, management } = gateway;
    server.kill().await?;
    ensure!(calling.await.is_err(), "an answer came from a dead process");
    ensure!(instance.document_blobs()?.is_empty(), "half a document is visible");
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    let held = &gateway.instance.json(&["workspace", "list"]).await?["data"][0]["storage_used_bytes"];
    ensure!(*held == 0, "the dead process still holds {held} bytes of the quota");
    gateway.server.promote(&gateway.inference.secret, "sess_a", &small).await?.ok()?;
    ensure!(gateway.instance.document_blobs()?.len() == 1);
    // The idempotency key is free again: its retry is a normal promotion.
    File::create(&file)?.set_len(10)?;
    let retry = promotion(&gateway.inference.secret, "sess_a", &file_id("large")).header("idempotency-key", "k");
    retry.send(gateway.server.address()).await?.ok()?;
    ensure!(gateway.instance.document_blobs()?.len() == 2);
    gateway.server.stop().await
}

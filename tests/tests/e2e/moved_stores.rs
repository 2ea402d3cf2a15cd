//! Stores whose files are moved or replaced while a server runs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Upstream};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};
use crate::stores::unavailable;

/// The time within which a change of the files must be detected, doubled for busy machines.
const NOTICED: Duration = Duration::from_secs(2);
/// The maximum time of a recovery.
const RECOVERED: Duration = Duration::from_secs(10);

/// Repeats a call until it has this status.
async fn wait_for_status(gateway: &TestGateway, call: &Call, status: u16, within: Duration) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = gateway.server.send(call).await?;
        if reply.status == status {
            return Ok(());
        }
        ensure!(since.elapsed() < within, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

fn lines_with(gateway: &TestGateway, text: &str) -> usize {
    gateway.server.output().lines().filter(|line| line.contains(text)).count()
}

/// Waits until this many lines of the log, which is written asynchronously, contain a text.
async fn wait_for_lines(gateway: &TestGateway, text: &str, count: usize) -> Result<()> {
    let since = Instant::now();
    while lines_with(gateway, text) != count {
        ensure!(since.elapsed() < RECOVERED, "not {count} lines with {text}: {}", gateway.server.output());
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn promotions_are_unavailable_while_blobs_folder_is_moved_or_replaced() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let id = gateway.instance.put("sess_a", "a", b"content").await?;
    let promote = async || gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await;
    let ready = Call::get("/health/ready");
    promote().await?.ok()?;
    let (blobs, away) = (gateway.instance.blobs(), gateway.instance.path().join("away"));
    for replaced in [false, true] {
        std::fs::rename(&blobs, &away)?;
        if replaced {
            copy_folder(&away.join("containers"), &blobs.join("containers"))?;
        }
        for _ in 0..3 {
            unavailable(&promote().await?)?;
        }
        let envelope = gateway.server.send(&ready).await?.envelope(503)?;
        ensure!(envelope["error"]["metadata"]["unavailable"] == serde_json::json!(["blobs"]), "{envelope}");
        ensure!(tollgate_tests::files_below(&away.join("documents"))?.len() == 1, "a copy went into the moved folder");
        ensure!(gateway.instance.document_blobs()?.is_empty(), "a copy went into the new folder");
        // Decisions need no files.
        gateway.decide(body("sandbox/decider")).await?;
        if replaced {
            std::fs::remove_dir_all(&blobs)?;
        }
        std::fs::rename(&away, &blobs)?;
        gateway.server.send(&ready).await?.ok()?;
    }
    promote().await?.ok()?;
    ensure!(gateway.instance.document_blobs()?.len() == 2);
    wait_for_lines(&gateway, "blobs folder is back", 2).await?;
    wait_for_lines(&gateway, "blobs folder was moved or replaced", 2).await.context("one line a change")?;
    gateway.server.ensure_healthy().await
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for file in tollgate_tests::files_below(from)? {
        let target = to.join(file.strip_prefix(from)?);
        std::fs::create_dir_all(target.parent().context("a file lies in a folder")?)?;
        std::fs::copy(&file, target)?;
    }
    Ok(())
}

#[tokio::test]
async fn requests_are_unavailable_while_database_file_is_removed_or_replaced() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let gateway = TestGateway::start(&format!("[keys]\nmax_stale_ms = 0\n{providers}")).await?;
    let id = gateway.instance.put("sess_a", "a", b"content").await?;
    let decide = tollgate_tests::decisions(&gateway.inference.secret, body("acme/alone"));
    let promote = tollgate_tests::promotion(&gateway.inference.secret, "sess_a", &id);
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    let ready = Call::get("/health/ready");
    gateway.server.send(&decide).await?.ok()?;
    let (file, away) = (gateway.instance.database(), gateway.instance.path().join("away.db"));
    for replaced in [false, true] {
        std::fs::rename(&file, &away)?;
        if replaced {
            std::fs::copy(&away, &file)?;
        }
        // Cached keys are accepted for up to a second.
        for call in [&decide, &count] {
            wait_for_status(&gateway, call, 503, NOTICED).await?;
        }
        alpha.take_requests();
        for call in [&decide, &promote, &count, &decide] {
            unavailable(&gateway.server.send(call).await?)?;
        }
        ensure!(alpha.take_requests().is_empty(), "a provider was called although nothing can be charged");
        let envelope = gateway.server.send(&ready).await?.envelope(503)?;
        ensure!(envelope["error"]["metadata"]["unavailable"] == serde_json::json!(["database"]), "{envelope}");
        ensure!(gateway.server.send(&Call::get("/health/live")).await?.status == 200);
        std::fs::rename(&away, &file)?;
        for call in [&decide, &promote, &count, &ready] {
            wait_for_status(&gateway, call, 200, RECOVERED).await?;
        }
    }
    wait_for_lines(&gateway, "database file is back", 2).await?;
    wait_for_lines(&gateway, "database file was removed or replaced", 2).await.context("one line a change")?;
    ensure!(gateway.instance.document_blobs()?.len() == 2);
    gateway.server.stop().await
}

#[tokio::test]
async fn idle_server_reports_removed_database_file_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    std::fs::remove_file(gateway.instance.database())?;
    let since = Instant::now();
    while lines_with(&gateway, "database file was removed or replaced") == 0 {
        ensure!(since.elapsed() < NOTICED, "nothing was logged: {}", gateway.server.output());
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

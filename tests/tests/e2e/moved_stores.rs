//! Stores whose files are moved or replaced under a running server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Upstream};

use crate::stores::unavailable;
use crate::world::{ANSWER, World, body, providers_toml};

/// How long a change of the files may go unnoticed, and as much for a busy machine.
const NOTICED: Duration = Duration::from_secs(2);
/// How long a recovery may take.
const RECOVERED: Duration = Duration::from_secs(10);

/// Repeats a call until it has this status.
async fn wait_for_status(world: &World, call: &Call, status: u16, within: Duration) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = world.server.send(call).await?;
        if reply.status == status {
            return Ok(());
        }
        ensure!(since.elapsed() < within, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

fn lines_with(world: &World, text: &str) -> usize {
    world.server.output().lines().filter(|line| line.contains(text)).count()
}

/// Waits until so many lines of the log, which is written beside requests, have this text.
async fn wait_for_lines(world: &World, text: &str, count: usize) -> Result<()> {
    let since = Instant::now();
    while lines_with(world, text) != count {
        ensure!(since.elapsed() < RECOVERED, "not {count} lines with {text}: {}", world.server.output());
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn promotions_are_unavailable_while_blobs_folder_is_moved_or_replaced() -> Result<()> {
    let world = World::start("").await?;
    let id = world.instance.put("sess_a", "a", b"content").await?;
    let promote = async || world.server.promote(&world.inference.secret, "sess_a", &id).await;
    let ready = Call::get("/health/ready");
    promote().await?.ok()?;
    let (blobs, away) = (world.instance.blobs(), world.instance.path().join("away"));
    for replaced in [false, true] {
        std::fs::rename(&blobs, &away)?;
        if replaced {
            copy_folder(&away.join("containers"), &blobs.join("containers"))?;
        }
        for _ in 0..3 {
            unavailable(&promote().await?)?;
        }
        let envelope = world.server.send(&ready).await?.envelope(503)?;
        ensure!(envelope["error"]["metadata"]["unavailable"] == serde_json::json!(["blobs"]), "{envelope}");
        ensure!(tollgate_tests::files_below(&away.join("documents"))?.len() == 1, "a copy went into the moved folder");
        ensure!(world.instance.document_blobs()?.is_empty(), "a copy went into the new folder");
        // Decisions need no files.
        world.decide(body("sandbox/decider")).await?;
        if replaced {
            std::fs::remove_dir_all(&blobs)?;
        }
        std::fs::rename(&away, &blobs)?;
        world.server.send(&ready).await?.ok()?;
    }
    promote().await?.ok()?;
    ensure!(world.instance.document_blobs()?.len() == 2);
    wait_for_lines(&world, "blobs folder is back", 2).await?;
    wait_for_lines(&world, "blobs folder was moved or replaced", 2).await.context("one line a change")?;
    world.server.ensure_healthy().await
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
    let world = World::start(&format!("[keys]\nmax_stale_ms = 0\n{providers}")).await?;
    let id = world.instance.put("sess_a", "a", b"content").await?;
    let decide = tollgate_tests::decisions(&world.inference.secret, body("acme/alone"));
    let promote = tollgate_tests::promotion(&world.inference.secret, "sess_a", &id);
    let count = Call::get("/api/v1/models/count").key(&world.inference.secret);
    let ready = Call::get("/health/ready");
    world.server.send(&decide).await?.ok()?;
    let (file, away) = (world.instance.database(), world.instance.path().join("away.db"));
    for replaced in [false, true] {
        std::fs::rename(&file, &away)?;
        if replaced {
            std::fs::copy(&away, &file)?;
        }
        // Keys in memory are believed for up to a second.
        for call in [&decide, &count] {
            wait_for_status(&world, call, 503, NOTICED).await?;
        }
        alpha.take_requests();
        for call in [&decide, &promote, &count, &decide] {
            unavailable(&world.server.send(call).await?)?;
        }
        ensure!(alpha.take_requests().is_empty(), "a provider was called although nothing can be charged");
        let envelope = world.server.send(&ready).await?.envelope(503)?;
        ensure!(envelope["error"]["metadata"]["unavailable"] == serde_json::json!(["database"]), "{envelope}");
        ensure!(world.server.send(&Call::get("/health/live")).await?.status == 200);
        std::fs::rename(&away, &file)?;
        for call in [&decide, &promote, &count, &ready] {
            wait_for_status(&world, call, 200, RECOVERED).await?;
        }
    }
    wait_for_lines(&world, "database file is back", 2).await?;
    wait_for_lines(&world, "database file was removed or replaced", 2).await.context("one line a change")?;
    ensure!(world.instance.document_blobs()?.len() == 2);
    world.server.stop().await
}

#[tokio::test]
async fn idle_server_reports_removed_database_file_within_a_second() -> Result<()> {
    let world = World::start("").await?;
    std::fs::remove_file(world.instance.database())?;
    let since = Instant::now();
    while lines_with(&world, "database file was removed or replaced") == 0 {
        ensure!(since.elapsed() < NOTICED, "nothing was logged: {}", world.server.output());
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

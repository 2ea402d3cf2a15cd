//! Backup and restore of a PostgreSQL database with its own tools.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use tollgate_tests::{Instance, SecondHand};

use crate::gateway::{TestGateway, body};
use crate::limits::ensure_audit_passes;

/// The folders of Debian's packages, one per version.
const PACKAGES: &str = "/usr/lib/postgresql";
/// The time within which charges must be in the database.
const FOLDED: Duration = Duration::from_secs(20);

/// Runs a program of the newest version.
async fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let versions = std::fs::read_dir(PACKAGES)?.flatten();
    let programs: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(program)).collect();
    let newest = programs.into_iter().filter(|path| path.is_file()).max();
    let newest = newest.with_context(|| format!("no {program} below {PACKAGES}: `apt-get install postgresql`"))?;
    let output = Command::new(newest).args(arguments).output().await?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn records(instance: &Instance) -> Result<usize> {
    let list = instance.json(&["usage", "list"]).await?;
    Ok(list["data"].as_array().context("no list")?.len())
}

async fn wait_for_records(instance: &Instance, expected: usize) -> Result<()> {
    let counted = async {
        while records(instance).await? < expected {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(FOLDED, counted).await.with_context(|| format!("fewer than {expected} records"))??;
    ensure!(records(instance).await? == expected, "more than {expected} records");
    Ok(())
}

#[tokio::test]
async fn restored_dump_gets_later_charges_back_from_the_journal() -> Result<()> {
    let (instance, _relay) = Instance::behind_relay("").await?;
    let mut gateway = TestGateway::of(instance).await?;
    for _ in 0..3 {
        gateway.decide(body("sandbox/decider")).await?;
    }
    wait_for_records(&gateway.instance, 3).await?;
    let url = gateway.instance.postgres().context("the database is a file")?.to_owned();
    let dump = gateway.instance.path().join("tollgate.dump").display().to_string();
    run("pg_dump", &["--format=custom", "--file", &dump, &url]).await?;
    for _ in 0..4 {
        gateway.decide(body("sandbox/decider")).await?;
    }
    gateway.server.stop().await?;

    // As into an empty database: no row of the later state stays.
    let hand = SecondHand::of(&gateway.instance).await?;
    for statement in ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"] {
        hand.execute(statement).await?;
    }
    hand.close().await?;
    run("pg_restore", &["--exit-on-error", "--no-owner", "--dbname", &url, &dump]).await?;
    gateway.server = gateway.instance.serve().await?;
    wait_for_records(&gateway.instance, 7).await?;
    gateway.decide(body("sandbox/decider")).await?;
    wait_for_records(&gateway.instance, 8).await?;
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.stop().await
}

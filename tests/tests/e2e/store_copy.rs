//! `tollgate store copy`: the move of an instance to PostgreSQL and back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Instance, Key, Server, Upstream};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};

const CONTENT: &[u8] = b"loss,epoch\n0.5,1\n";
/// The charged requests before the move.
const REQUESTS: usize = 120;

/// An instance with spend, a limited key and a document, on a file.
struct Site {
    instance: Instance,
    limited: Key,
    document: String,
    _upstream: Upstream,
}

impl Site {
    /// Starts the instance and fills it; the server runs.
    async fn start() -> Result<(Self, Server)> {
        let upstream = Upstream::start(Behaviour::Late(Duration::ZERO, CHEAP.to_owned())).await?;
        let mut instance = Instance::on_file(&providers_toml(&upstream.base_url(), &upstream.base_url(), 5_000))?;
        instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
        let TestGateway { instance, server, .. } = TestGateway::of(instance).await?;
        let limited = instance.key(&["--name", "limited", "--limit-usd", "5", "--limit-reset", "monthly"]).await?;
        for _ in 0..REQUESTS {
            server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
        }
        let file = instance.put("sess_a", "loss.csv", CONTENT).await?;
        let document = server.promote(&limited.secret, "sess_a", &file).await?.ok()?;
        let document = document["id"].as_str().context("no id")?.to_owned();
        Ok((Self { instance, limited, document, _upstream: upstream }, server))
    }

    async fn spend(&self) -> Result<Value> {
        self.instance.json(&["usage", "sum", "--by", "key"]).await
    }

    /// Checks that the configured store serves the same keys, spend and documents.
    async fn ensure_serves(&self, spend: &Value) -> Result<()> {
        ensure!(self.spend().await? == *spend, "{} after {spend}", self.spend().await?);
        let server = self.instance.serve().await?;
        server.decide(&self.limited.secret, body("acme/alone")).await?.ok()?;
        let got = self.instance.run(&["document", "get", &self.document]).await?;
        ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
        server.stop().await?;
        ensure_audit_passes(&self.instance).await?;
        let verified = self.instance.json(&["audit", "verify"]).await?;
        ensure!(verified["verified"] == true, "{verified}");
        let entries = self.instance.json(&["audit", "list"]).await?.to_string();
        ensure!(entries.contains("instance.copy") && entries.contains(r#""from":""#), "{entries}");
        Ok(())
    }
}

#[tokio::test]
async fn server_and_commands_wait_for_a_command_that_has_the_database_alone() -> Result<()> {
    let instance = Instance::new("")?;
    std::fs::create_dir_all(instance.database().parent().context("no folder")?)?;
    let mut lock = instance.database().into_os_string();
    lock.push(".serving");
    let lock = std::fs::File::options().create(true).truncate(true).write(true).open(lock)?;
    lock.lock()?;
    let refused = async |command: &[&str]| {
        let said = instance.refused(command).await?;
        ensure!(said.contains("another process uses the database alone"), "{command:?}: {said}");
        Ok(())
    };
    refused(&["serve"]).await?;
    ensure!(!instance.database().exists(), "a start that fails wrote to the database");
    lock.unlock()?;
    instance.json(&["workspace", "list"]).await?;
    lock.lock()?;
    refused(&["workspace", "list"]).await?;
    refused(&["serve"]).await?;
    lock.unlock()?;
    instance.serve().await?.stop().await
}

#[tokio::test]
async fn instance_moves_to_postgres_and_back() -> Result<()> {
    let (mut site, server) = Site::start().await?;
    let file = format!("sqlite://{}", site.instance.database().display());
    let target = Instance::create_postgres_database()?;
    let with_password = target.replacen("://tollgate@", "://tollgate:pass-w0rd@", 1);
    let to_postgres = ["store", "copy", "--from", &file, "--to", &with_password];
    let said = site.instance.refused(&to_postgres).await?;
    ensure!(said.contains("a server runs on") && !said.contains("pass-w0rd"), "{said}");
    // The journal of the killed server is folded before the copy.
    server.kill().await?;
    let spend = site.spend().await?;

    let copied = site.instance.run(&to_postgres).await?;
    let (said, lines) = (String::from_utf8(copied.stdout)?, String::from_utf8(copied.stderr)?);
    ensure!(copied.status.success() && said.contains("Do not serve"), "{said}{lines}");
    ensure!(lines.contains("copied usage_records: 120 of 120 rows"), "{lines}");
    ensure!(!said.contains("pass-w0rd") && !lines.contains("pass-w0rd"), "{said}{lines}");
    let again = site.instance.refused(&to_postgres).await?;
    ensure!(again.contains("already holds the instance"), "{again}");

    site.instance.move_to_postgres(&target);
    site.ensure_serves(&spend).await?;

    let spend = site.spend().await?;
    let back = site.instance.path().join("data/back.db");
    let url = format!("sqlite://{}", back.display());
    let report = site.instance.json(&["store", "copy", "--from", &target, "--to", &url]).await?;
    ensure!(report["verified"] == true && report["records"].as_u64() == Some(121), "{report}");
    ensure!(!report.to_string().contains("tollgate@"), "{report}");
    site.instance.move_to_file(&back);
    site.ensure_serves(&spend).await
}

#[tokio::test]
async fn killed_copy_is_not_served_and_continues() -> Result<()> {
    let (mut site, server) = Site::start().await?;
    server.stop().await?;
    let spend = site.spend().await?;
    let file = format!("sqlite://{}", site.instance.database().display());
    let target = Instance::create_postgres_database()?;
    let copy = ["store", "copy", "--from", &file, "--to", &target];
    let mut unfinished = 0;
    for step in 1_u64.. {
        let mut child = site.instance.spawn(&copy)?;
        let delay = sleep(Duration::from_millis(step * 12));
        let ended = tokio::select! {
            ended = child.wait() => Some(ended?),
            () = delay => None,
        };
        if let Some(status) = ended {
            // A copy that was killed after its last commit is complete.
            let is_complete = !status.success() && unfinished > 0;
            ensure!(status.success() || is_complete, "the copy ended with {status}");
            break;
        }
        child.kill().await?;
        site.instance.move_to_postgres(&target);
        let status = site.instance.run(&["doctor"]).await?;
        if String::from_utf8_lossy(&status.stdout).contains("`tollgate store copy` continues it") {
            unfinished += 1;
            if unfinished == 1 {
                let said = site.instance.refused_serving().await?;
                ensure!(said.contains("is an unfinished copy of another database"), "{said}");
                let said = site.instance.refused(&["key", "list"]).await?;
                ensure!(said.contains("is an unfinished copy of another database"), "{said}");
            }
        }
        let original = site.instance.database();
        site.instance.move_to_file(&original);
    }
    ensure!(unfinished > 0, "no copy was killed half-way");
    site.instance.move_to_postgres(&target);
    site.ensure_serves(&spend).await
}

#[tokio::test]
async fn copy_rejects_wrong_databases() -> Result<()> {
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    server.stop().await?;
    let file = format!("sqlite://{}", instance.database().display());
    let missing = instance.path().join("missing.db");
    let missing_url = format!("sqlite://{}", missing.display());
    for (from, to, expected) in [
        (missing_url.as_str(), "sqlite://other.db", "--from: no database at"),
        (&file, &file, "--from and --to name the same database"),
        (&file, "mysql://u:hidden@h/d", "--to must have the form"),
        (&file, "postgres://u:hidden@h", "--to must have the form"),
    ] {
        let said = instance.refused(&["store", "copy", "--from", from, "--to", to]).await?;
        ensure!(said.contains(expected) && !said.contains("hidden"), "{said}");
    }
    ensure!(!missing.exists(), "a copy creates no source");
    let other = Instance::on_file("")?;
    other.serve().await?.stop().await?;
    let occupied = format!("sqlite://{}", other.database().display());
    let said = instance.refused(&["store", "copy", "--from", &file, "--to", &occupied]).await?;
    ensure!(said.contains("holds an instance already"), "{said}");
    // A database that `migrate up` prepared is empty.
    let prepared = Instance::on_file("")?;
    ensure!(prepared.run(&["migrate", "up"]).await?.status.success());
    let url = format!("sqlite://{}", prepared.database().display());
    instance.json(&["store", "copy", "--from", &file, "--to", &url]).await?;
    prepared.serve().await?.stop().await
}

#[tokio::test]
async fn copy_in_the_folder_of_a_server_on_another_database_names_no_wrong_one() -> Result<()> {
    let source = Instance::on_file("")?;
    source.serve().await?.stop().await?;
    let file = format!("sqlite://{}", source.database().display());
    let beside = Instance::on_postgres("")?;
    let server = beside.serve().await?;
    let own = beside.postgres().context("no database")?;
    let said = beside.refused(&["store", "copy", "--from", &file, "--to", own]).await?;
    let name = own.replacen("tollgate@", "", 1);
    ensure!(said.contains(&format!("a server runs on {name}: stop it")), "{said}");
    let target = Instance::create_postgres_database()?;
    let report = beside.json(&["store", "copy", "--from", &file, "--to", &target]).await?;
    ensure!(report["verified"] == true, "{report}");
    server.stop().await
}

//! Full disks. The tests mount small disks, so they run as root on Linux and are skipped elsewhere.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use test_servers::FaultyPostgres;
use tollgate_tests::{Behaviour, Call, Instance, Key, Reply, Upstream, files_below, free_address, wait_for};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body, providers_toml};

/// A small disk; unmounted when it is dropped.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Mounts a disk of some mebibytes. Returns `None` if this user may not mount one.
    pub fn mount(at: &Path, mebibytes: u32) -> Result<Option<Self>> {
        std::fs::create_dir_all(at)?;
        // PostgreSQL runs as another user.
        let size = format!("size={mebibytes}m,mode=1777");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        Ok(mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(at.to_owned())))
    }

    /// Writes until the disk is full.
    pub fn fill(&self) -> Result<()> {
        for block in [1 << 20, 4_096] {
            let mut file = File::options().append(true).create(true).open(self.0.join("ballast"))?;
            while file.write_all(&vec![1; block]).is_ok() {}
        }
        Ok(())
    }

    pub fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.0.join("ballast"))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount works while the server still runs.
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

struct Fixture {
    // Dropped first: a folder with a mounted disk cannot be removed.
    disk: SmallDisk,
    gateway: TestGateway,
    alpha: Upstream,
    metrics: SocketAddr,
}

impl Fixture {
    /// Starts a gateway with one store on a small disk.
    async fn start(variable: &str, url: fn(&Path) -> String, mebibytes: u32) -> Result<Option<Self>> {
        Self::start_with(variable, url, mebibytes, &[]).await
    }

    async fn start_with(
        variable: &str,
        url: fn(&Path) -> String,
        mebibytes: u32,
        variables: &[(&str, &str)],
    ) -> Result<Option<Self>> {
        let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
        let base_url = alpha.base_url();
        let toml = providers_toml(&base_url, &base_url, 5_000);
        let mut instance = Instance::new(&toml)?;
        let Some(disk) = SmallDisk::mount(&instance.path().join("small"), mebibytes)? else { return Ok(None) };
        let metrics = free_address()?;
        let journal = instance.path().join("journal").display().to_string();
        for (name, value) in [
            ("ALPHA_API_KEY", "alpha-secret-0001".to_owned()),
            ("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string()),
            ("TOLLGATE__JOURNAL__PATH", journal),
            (variable, url(&disk.0)),
        ] {
            instance.set_env(name, value);
        }
        for (name, value) in variables {
            instance.set_env(name, *value);
        }
        let server = instance.serve().await?;
        let (inference, management) =
            (create_key(&instance, &[]).await?, create_key(&instance, &["--management"]).await?);
        let gateway = TestGateway { instance, server, inference, management };
        Ok(Some(Self { disk, gateway, alpha, metrics }))
    }

    async fn create_key(&self, options: &[&str]) -> Result<Key> {
        create_key(&self.gateway.instance, options).await
    }

    /// Sends a request whose record takes about 60 KiB.
    async fn decide(&self) -> Result<Reply> {
        let trace = format!(r#"{{"padding":"{}"}}"#, "x".repeat(60_000));
        let body = format!(r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"s","trace":{trace}}}"#);
        self.gateway.server.decide(&self.gateway.inference.secret, body).await
    }

    async fn ready(&self) -> Result<Reply> {
        self.gateway.server.send(&Call::get("/health/ready")).await
    }

    /// Fails unless readiness, `doctor` and the metric report the store.
    async fn ensure_reported(&self, store: &str, status: u16) -> Result<()> {
        let reply = self.ready().await?;
        ensure!(reply.status == status && reply.text().contains(&format!("\"{store}\"")), "{}", reply.text());
        let doctor = self.gateway.instance.run(&["doctor", "--json"]).await?;
        let report: serde_json::Value = serde_json::from_slice(&doctor.stdout)?;
        let checks = report["checks"].as_array().context("no checks")?;
        let check = checks.iter().find(|check| check["name"] == store).with_context(|| report.to_string())?;
        let detail = check["detail"].to_string();
        ensure!(
            check["status"] == "broken" && (detail.contains("full") || detail.contains("No space left")),
            "{report}"
        );
        let metrics = Call::get("/metrics").send(self.metrics).await?.text();
        let series = format!("tollgate_disk_free_bytes{{store=\"{store}\"}} ");
        let free = metrics.lines().find_map(|line| line.strip_prefix(&series)).context(metrics.clone())?;
        ensure!(free.parse::<f64>()? < 1e6, "{free}");
        ensure!(metrics.matches("tollgate_disk_free_bytes{").count() == 3, "{metrics}");
        Ok(())
    }

    fn lines(&self, message: &str) -> usize {
        self.gateway.server.output().lines().filter(|line| line.contains(message)).count()
    }

    async fn ensure_recovers(&self) -> Result<()> {
        self.disk.free()?;
        for _ in 0..500 {
            let reply = self.ready().await?;
            if reply.status == 200 && !reply.text().contains("degraded") {
                return self.decide().await?.ok().map(drop);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        anyhow::bail!("it does not recover: {}", self.ready().await?.text())
    }
}

/// Creates a key. The database may be on the small disk, where the harness does not look for it.
async fn create_key(instance: &Instance, options: &[&str]) -> Result<Key> {
    let output =
        instance.run(&[&["key", "create", "--name", "k", "--allow-duplicate", "--json"], options].concat()).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = tollgate_tests::record(serde_json::from_slice(&output.stdout)?);
    let text = |name: &str| made[name].as_str().map(str::to_owned).context("no key");
    Ok(Key { secret: text("key")?, hash: text("hash")?, id: text("id")? })
}

#[tokio::test]
async fn full_journal_disk_rejects_requests_before_a_provider_is_called() -> Result<()> {
    let path = |folder: &Path| folder.join("journal").display().to_string();
    let Some(fixture) = Fixture::start("TOLLGATE__JOURNAL__PATH", path, 48).await? else { return Ok(()) };
    fixture.decide().await?.ok()?;
    fixture.disk.fill()?;
    let mut answered = 1;
    loop {
        let reply = fixture.decide().await?;
        if reply.status == 503 {
            break;
        }
        reply.ok()?;
        answered += 1;
        ensure!(answered < 2_000, "the disk is never full");
    }
    for _ in 0..20 {
        fixture.decide().await?.envelope(503)?;
        fixture.ready().await?.envelope(503)?;
    }
    ensure!(fixture.alpha.take_requests().len() == answered, "a rejected request reached the provider");
    fixture.ensure_reported("journal", 503).await?;
    // A rejected request and a failed readiness check are different causes.
    for (message, lines) in [("request failed", 2), ("store unavailable", 1), ("journal segment not allocated", 1)] {
        ensure!(fixture.lines(message) == lines, "{message}: {}", fixture.gateway.server.output());
    }
    fixture.ensure_recovers().await
}

#[tokio::test]
async fn full_database_disk_is_reported_and_charges_wait_in_the_journal() -> Result<()> {
    let url = |folder: &Path| format!("sqlite://{}", folder.join("t.db").display());
    let Some(fixture) = Fixture::start("TOLLGATE__STORAGE__URL", url, 12).await? else { return Ok(()) };
    fixture.disk.fill()?;
    let path = Call::post("/api/v1/guardrails").key(&fixture.gateway.management.secret);
    let (mut rejected, mut sent) = (0, 0);
    while rejected < 20 {
        let body = format!(r#"{{"name":"g{sent}","description":"{}"}}"#, "x".repeat(900));
        let reply = fixture.gateway.server.send(&path.clone().json(body)).await?;
        rejected = if reply.status == 503 { rejected + 1 } else { 0 };
        sent += 1;
        ensure!(sent < 5_000, "the disk is never full");
    }
    fixture.ensure_reported("database", 200).await?;
    fixture.decide().await?.ok()?;
    wait_for("an attempt to fold", || fixture.lines("journal not folded") > 0).await?;
    ensure!(fixture.lines("request failed") <= 2, "{}", fixture.gateway.server.output());
    ensure!(fixture.lines("journal not folded") == 1, "{}", fixture.gateway.server.output());
    let backup = fixture.gateway.instance.path().join("backup").display().to_string();
    let made = fixture.gateway.instance.run(&["backup", &backup]).await?;
    let said = String::from_utf8(made.stderr)?;
    ensure!(made.status.code() == Some(1) && said.contains("they waited in its journal"), "{said}");
    let elsewhere = Instance::on_file("")?;
    let restored = elsewhere.run(&["restore", &backup]).await?;
    let said = String::from_utf8(restored.stderr)?;
    ensure!(restored.status.code() == Some(1) && said.contains("they waited in its journal"), "{said}");
    let accepted = elsewhere.run(&["restore", &backup, "--accept-problems"]).await?;
    ensure!(accepted.status.success(), "{}", String::from_utf8(accepted.stderr)?);
    fixture.ensure_recovers().await?;
    let listed = fixture.gateway.instance.run(&["usage", "list", "--json"]).await?;
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout)?;
    ensure!(crate::costs::rows(&listed)?.len() == 2, "both answers are charged: {listed}");
    Ok(())
}

/// A full disk ends transactions of both writing connections. Everything works again without a restart, and what was
/// acknowledged survives `kill -9`.
#[tokio::test]
async fn full_database_disk_is_over_once_it_is_free() -> Result<()> {
    for synchronous in ["normal", "full"] {
        let url = |folder: &Path| format!("sqlite://{}", folder.join("t.db").display());
        let Some(mut fixture) = Fixture::start_with(
            "TOLLGATE__STORAGE__URL",
            url,
            64,
            &[("TOLLGATE__STORAGE__SYNCHRONOUS", synchronous), ("TOLLGATE__STORAGE__BUSY_TIMEOUT_MS", "1000")],
        )
        .await?
        else {
            return Ok(());
        };
        let gateway = &fixture.gateway;
        let limited = fixture.create_key(&["--limit-usd", "1000"]).await?;
        std::fs::write(gateway.instance.path().join("local"), vec![7; 10_000])?;
        let put = gateway.instance.run(&["container", "put", "sess_a", "f", "local", "--json"]).await?;
        let file: serde_json::Value = serde_json::from_slice(&put.stdout)?;
        let file = file["id"].as_str().context("no id")?.to_owned();
        gateway.server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
        fixture.disk.fill()?;
        let management = &gateway.management.secret;
        for number in 0..60 {
            let key = if number % 2 == 0 { &gateway.inference } else { &limited };
            // The record, the draw, a change and a promotion, until each has met the full disk.
            gateway.server.decide(&key.secret, padded_body()).await?;
            if number % 6 == 0 {
                gateway.server.send(&guardrail_call(management, number)).await?;
                gateway.server.promote(&limited.secret, "sess_a", &file).await?;
            }
        }
        wait_for("a write that fails", || fixture.lines("journal not folded") > 0).await?;
        let status = gateway.instance.run(&["status", "--json"]).await?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout)?;
        ensure!(status.to_string().contains("degraded") && status.to_string().contains("full"), "{status}");
        let metrics = Call::get("/metrics").send(fixture.metrics).await?.text();
        ensure!(metrics.contains("tollgate_database_writable 0"), "{metrics}");
        fixture.ensure_recovers().await?;
        let gateway = &fixture.gateway;
        // Every kind of writer works again, in the process and beside it.
        wait_for_ok("a limited key", || gateway.server.decide(&limited.secret, body("acme/alone"))).await?;
        let change = guardrail_call(&gateway.management.secret, 1_000);
        wait_for_ok("a change", || gateway.server.send(&change)).await?;
        let promoted = wait_for_ok("a promotion", || gateway.server.promote(&limited.secret, "sess_a", &file)).await;
        let promoted = promoted.with_context(|| gateway.server.output())?;
        fixture.create_key(&[]).await?;
        gateway.server.signal("KILL").await?;
        fixture.gateway.server = fixture.gateway.instance.serve().await?;
        let gateway = &fixture.gateway;
        let id = promoted["id"].as_str().context("no id")?;
        let found = gateway.instance.run(&["document", "list", "--json"]).await?;
        ensure!(String::from_utf8(found.stdout)?.contains(id), "{synchronous}: an acknowledged promotion is lost");
        crate::limits::ensure_audit_passes(&gateway.instance).await?;
        gateway.server.ensure_healthy().await?;
    }
    Ok(())
}

fn padded_body() -> String {
    let trace = format!(r#"{{"padding":"{}"}}"#, "x".repeat(60_000));
    format!(r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"s","trace":{trace}}}"#)
}

fn guardrail_call(secret: &str, number: usize) -> Call {
    let body = format!(r#"{{"name":"g{number}","description":"{}"}}"#, "x".repeat(900));
    Call::post("/api/v1/guardrails").key(secret).json(body)
}

/// Repeats a call until it succeeds.
async fn wait_for_ok<F: Future<Output = Result<Reply>>>(what: &str, call: impl Fn() -> F) -> Result<serde_json::Value> {
    let since = tokio::time::Instant::now();
    loop {
        let reply = call().await?;
        if reply.status < 300 {
            return reply.json();
        }
        ensure!(since.elapsed() < std::time::Duration::from_secs(20), "{what}: {} {}", reply.status, reply.text());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn doctor_reports_a_full_disk_although_the_database_is_locked() -> Result<()> {
    let mut instance = Instance::on_file("[storage]\nbusy_timeout_ms = 100\n")?;
    // The folder of the database.
    let Some(disk) = SmallDisk::mount(&instance.path().join("data"), 12)? else { return Ok(()) };
    let journal = instance.path().join("journal").display().to_string();
    instance.set_env("TOLLGATE__JOURNAL__PATH", journal);
    instance.json(&["workspace", "list"]).await?;
    let hand = tollgate_tests::SecondHand::of(&instance).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    disk.fill()?;
    let doctor = instance.run(&["doctor"]).await?;
    let report = String::from_utf8_lossy(&doctor.stdout).into_owned();
    ensure!(!doctor.status.success() && report.contains("the disk is full"), "{report}");
    ensure!(!report.contains("locked"), "{report}");
    hand.close().await
}

#[tokio::test]
async fn full_disk_of_postgres_lets_charges_wait_in_the_journal() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let Some(disk) = SmallDisk::mount(&folder.path().join("small"), 256)? else { return Ok(()) };
    let mut database = FaultyPostgres::start_below(&disk.0)?;
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let toml = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let mut instance = Instance::on_database(&toml, database.url_at(&database.address()))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("acme/alone")).await?;
    disk.fill()?;
    let path = Call::post("/api/v1/guardrails").key(&gateway.management.secret);
    let mut sent = 0;
    // The server may end, because it cannot write its log.
    loop {
        let body = format!(r#"{{"name":"g{sent}","description":"{}"}}"#, "x".repeat(900));
        if gateway.server.send(&path.clone().json(body)).await?.status == 503 {
            break;
        }
        sent += 1;
        ensure!(sent < 20_000, "the disk is never full");
    }
    for _ in 0..5 {
        gateway.decide(body("acme/alone")).await?;
    }
    disk.free()?;
    database.revive()?;
    let listed = async || {
        let listed = gateway.instance.run(&["usage", "list", "--json"]).await?;
        anyhow::Ok(serde_json::from_slice::<serde_json::Value>(&listed.stdout).unwrap_or_default())
    };
    for _ in 0..500 {
        if crate::costs::rows(&listed().await?).is_ok_and(|rows| rows.len() == 6) {
            return gateway.server.ensure_healthy().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("not every answer is charged: {}", listed().await?)
}

#[tokio::test]
async fn full_blob_disk_is_reported_and_promotions_leave_nothing() -> Result<()> {
    let url = |folder: &Path| format!("file:{}", folder.join("blobs").display());
    let Some(fixture) = Fixture::start("TOLLGATE__BLOBS__URL", url, 4).await? else { return Ok(()) };
    let gateway = &fixture.gateway;
    std::fs::write(gateway.instance.path().join("local"), vec![7; 1_000_000])?;
    let put = gateway.instance.run(&["container", "put", "sess_a", "f", "local", "--json"]).await?;
    let put: serde_json::Value = serde_json::from_slice(&put.stdout)?;
    let id = put["id"].as_str().context("no id")?;
    fixture.disk.fill()?;
    let refused = gateway.instance.run(&["container", "put", "sess_b", "folder/f", "local"]).await?;
    let said = String::from_utf8(refused.stderr)?;
    ensure!(!refused.status.success() && said.contains("temporarily unavailable"), "{said}");
    let files = files_below(&fixture.disk.0)?;
    // The ballast and the first upload.
    ensure!(files.len() == 2, "{files:?}");
    let promotion = gateway.server.promote(&gateway.inference.secret, "sess_a", id).await?;
    promotion.envelope(503)?;
    fixture.ensure_reported("blobs", 503).await?;
    fixture.ensure_recovers().await?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", id).await?.ok()?;
    Ok(())
}

//! A rollout: this binary is the previous release, and the migrations of the next one are applied while it serves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Call, Instance, Key, SecondHand, Server, Upstream, decisions};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};

/// The duration of the load before and after the migrations.
const AROUND: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Clients that send Decisions requests until they are stopped.
struct Load {
    stopped: Arc<AtomicBool>,
    clients: JoinSet<Result<usize>>,
}

impl Load {
    fn start(addresses: [SocketAddr; 2], keys: [&Key; 2]) -> Self {
        let (stopped, mut clients) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for (address, key) in addresses.into_iter().flat_map(|address| keys.map(|key| (address, key))) {
            let (call, stopped) = (decisions(&key.secret, body("acme/alone")), Arc::clone(&stopped));
            clients.spawn(async move {
                let mut answers = 0;
                while !stopped.load(Ordering::Relaxed) {
                    call.send(address).await?.ok()?;
                    answers += 1;
                    sleep(PAUSE).await;
                }
                Ok(answers)
            });
        }
        Self { stopped, clients }
    }

    /// Returns the number of answers. Fails if a client received another response.
    async fn stop(mut self) -> Result<usize> {
        self.stopped.store(true, Ordering::Relaxed);
        let mut answers = 0;
        while let Some(count) = self.clients.join_next().await {
            answers += count??;
        }
        Ok(answers)
    }
}

/// Applies what the migrations of the next release may do: new columns and an index for each table, and a new table.
async fn apply_later_migrations(instance: &Instance) -> Result<()> {
    let hand = SecondHand::of(instance).await?;
    let names = if instance.postgres().is_some() {
        // A partition follows its table.
        "SELECT relname::text FROM pg_class \
         WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace"
    } else {
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    };
    for table in hand.texts(names).await? {
        for change in [
            format!("ALTER TABLE \"{table}\" ADD COLUMN later_text text"),
            format!("ALTER TABLE \"{table}\" ADD COLUMN later_number bigint NOT NULL DEFAULT 7"),
            format!("CREATE INDEX \"later_{table}\" ON \"{table}\" (later_number)"),
        ] {
            hand.execute(&change).await?;
        }
    }
    hand.execute("CREATE TABLE later (id text PRIMARY KEY)").await?;
    hand.execute("INSERT INTO seaql_migrations (version, applied_at) VALUES ('m20990101_000001_later', 0)").await?;
    hand.close().await
}

/// Uses every part that reads or writes the database.
async fn ensure_everything_works(gateway: &TestGateway, server: &Server) -> Result<()> {
    let TestGateway { instance, inference, management, .. } = gateway;
    let key = instance.key(&["--name", "later", "--limit-usd", "0.01", "--rpm", "1000"]).await?;
    server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    server.send(&Call::get("/api/v1/models/count").key(&inference.secret)).await?.ok()?;
    server.send(&Call::get("/api/v1/guardrails").key(&management.secret)).await?.ok()?;
    let guardrail = r#"{"name": "later", "limit_usd": 0.01, "reset_interval": "daily"}"#;
    std::fs::write(instance.path().join("guardrail.json"), guardrail)?;
    let made = instance.json(&["guardrail", "create", "--from", "guardrail.json"]).await?;
    let guardrail = made["id"].as_str().with_context(|| format!("no id in {made}"))?;
    instance.json(&["guardrail", "assign", guardrail, &key.hash]).await?;
    server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    let file = instance.put("sess_a", "a.csv", b"a,b\n1,2\n").await?;
    server.promote(&inference.secret, "sess_a", &file).await?.ok()?;
    instance.json(&["workspace", "create", "--name", "later", "--allow-duplicate"]).await?;
    instance.json(&["key", "delete", &key.hash]).await?;
    for arguments in [&["usage", "list"][..], &["audit", "list"], &["migrate", "status"], &["migrate", "up"]] {
        let output = instance.run(arguments).await?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let listed = instance.json(&["migrate", "status"]).await?;
    let unknown = serde_json::json!({"name": "m20990101_000001_later", "applied": true, "known": false});
    ensure!(listed["data"].as_array().is_some_and(|steps| steps.last() == Some(&unknown)), "{listed}");
    Ok(())
}

async fn ensure_rollout_and_rollback_work(instance: Instance) -> Result<()> {
    let gateway = TestGateway::of(instance).await?;
    let beside = gateway.instance.serve_beside().await?;
    let limited = gateway.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let load = Load::start([gateway.server.address(), beside.address()], [&gateway.inference, &limited]);
    sleep(AROUND).await;
    apply_later_migrations(&gateway.instance).await?;
    sleep(AROUND).await;
    let answers = load.stop().await?;
    ensure_everything_works(&gateway, &gateway.server).await?;

    // The way back: the old binary starts on the new schema alone, over the journal of a killed process.
    beside.stop().await?;
    let TestGateway { instance, server, inference, management } = gateway;
    server.kill().await?;
    let gateway = TestGateway { server: instance.serve_without_migrating().await?, instance, inference, management };
    ensure_everything_works(&gateway, &gateway.server).await?;
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await?;

    let hand = SecondHand::of(&gateway.instance).await?;
    // Two requests of a key in each of two rounds.
    let expected = i64::try_from(answers)? + 4;
    let records = hand.number("SELECT count(*) FROM usage_records WHERE later_number = 7").await?;
    ensure!(records == expected, "{records} records of {expected} answers");
    hand.close().await
}

async fn toml() -> Result<(String, Upstream)> {
    let alpha = Upstream::start(Behaviour::Late(Duration::ZERO, CHEAP.to_owned())).await?;
    Ok((providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000), alpha))
}

#[tokio::test]
async fn binary_serves_during_and_after_migrations_of_the_next_release() -> Result<()> {
    let (toml, _alpha) = toml().await?;
    let mut instance = Instance::on_file(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    ensure_rollout_and_rollback_work(instance).await
}

#[tokio::test]
async fn binary_serves_during_and_after_migrations_of_the_next_release_on_postgres() -> Result<()> {
    let (toml, _alpha) = toml().await?;
    let mut instance = Instance::on_postgres(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    ensure_rollout_and_rollback_work(instance).await
}

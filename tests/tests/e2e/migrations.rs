//! Migrations as a job of their own: `migrate up`, then `serve --no-migrate`.

use anyhow::{Result, ensure};
use tollgate_tests::{Instance, SecondHand};

use crate::gateway::body;

/// The last migration of an older release's schema is missing.
async fn ensure_old_schema_is_refused(instance: &Instance) -> Result<()> {
    let hand = SecondHand::of(instance).await?;
    hand.execute("DELETE FROM seaql_migrations WHERE version = (SELECT max(version) FROM seaql_migrations)").await?;
    hand.close().await?;
    let error = instance.refused(&["serve", "--no-migrate"]).await?;
    ensure!(error.contains("lacks 1 migrations, the first is m2"), "{error}");
    ensure!(error.contains("run `tollgate migrate up` of this version"), "{error}");
    Ok(())
}

async fn ensure_migrated_schema_is_served(instance: &Instance) -> Result<()> {
    ensure!(instance.run(&["migrate", "up"]).await?.status.success());
    let server = instance.serve_without_migrating().await?;
    let key = instance.inference_key().await?;
    server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    server.stop().await
}

#[tokio::test]
async fn serve_without_migrating_needs_current_schema() -> Result<()> {
    let instance = Instance::new("")?;
    let error = instance.refused(&["serve", "--no-migrate"]).await?;
    ensure!(error.contains("`tollgate migrate up`"), "{error}");
    ensure_migrated_schema_is_served(&instance).await?;
    ensure_old_schema_is_refused(&instance).await
}

#[tokio::test]
async fn serve_without_migrating_needs_current_schema_on_postgres() -> Result<()> {
    let instance = Instance::on_postgres("")?;
    let error = instance.refused(&["serve", "--no-migrate"]).await?;
    ensure!(error.contains("run `tollgate migrate up` of this version"), "{error}");
    ensure_migrated_schema_is_served(&instance).await?;
    ensure_old_schema_is_refused(&instance).await
}

#[tokio::test]
async fn concurrent_migrations_on_postgres_apply_each_step_once() -> Result<()> {
    let instance = Instance::on_postgres("")?;
    let up = || instance.run(&["migrate", "up"]);
    let (one, two, three) = tokio::join!(up(), up(), up());
    for output in [one?, two?, three?] {
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let hand = SecondHand::of(&instance).await?;
    let twice = "SELECT count(*) - count(DISTINCT version) FROM seaql_migrations";
    ensure!(hand.number(twice).await? == 0);
    hand.close().await
}

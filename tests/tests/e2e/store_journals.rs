//! Journals in the database: replicas without a disk that die or pause.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, SecondHand, Server, Upstream};

use crate::crashes::{Answered, call_until_failure, count, ensure_recorded_once};
use crate::gateway::{body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};

const SETTINGS: &str = "[limits]\nrequest_timeout_ms = 4000\n[journal]\nsync = \"store\"\n";
/// The time for an adoption on a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(90);

fn instance(alpha: &Upstream) -> Result<Instance> {
    let mut instance =
        Instance::new(&format!("{SETTINGS}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 3_500)))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok(instance)
}

async fn upstream() -> Result<Upstream> {
    Upstream::start(Behaviour::Late(Duration::from_millis(2), CHEAP.to_owned())).await
}

/// Waits until a query returns this number.
async fn wait_for(hand: &SecondHand, sql: &str, number: i64) -> Result<()> {
    let since = Instant::now();
    loop {
        let found = hand.number(sql).await?;
        if found == number {
            return Ok(());
        }
        ensure!(since.elapsed() < MAX_WAIT, "{sql} is {found}, not {number}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a request succeeds.
async fn wait_for_answer(server: &Server, secret: &str) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = server.decide(secret, body("acme/alone")).await?;
        if reply.status == 200 {
            return Ok(());
        }
        ensure!(reply.status == 503, "{}: {}", reply.status, reply.text());
        ensure!(since.elapsed() < MAX_WAIT, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn killed_replica_loses_no_answer_and_another_one_adopts_its_journal() -> Result<()> {
    let alpha = upstream().await?;
    let instance = instance(&alpha)?;
    let key = instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
    let survivor = instance.serve().await?;
    let answered: Answered = Arc::new(Mutex::new(BTreeSet::new()));
    let hand = SecondHand::of(&instance).await?;
    for trial in 0..3 {
        let victim = instance.serve_beside().await?;
        let before = count(&answered)?;
        let mut callers = call_until_failure(&victim, (&key, body("acme/alone")), &answered);
        for _ in 0..1_000 {
            if count(&answered)? > before + 20 {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(trial * 17)).await;
        victim.kill().await?;
        while callers.join_next().await.is_some() {}
        ensure!(count(&answered)? > before, "no response before crash {trial}");
        wait_for(&hand, "SELECT COUNT(*) FROM budget_processes WHERE state <> 'ended'", 1).await?;
    }
    ensure!(survivor.output().contains("silent process adopted"), "{}", survivor.output());
    survivor.decide(&key.secret, body("acme/alone")).await?.ok()?;
    let answered = answered.lock().map_err(|_| anyhow!("a caller panicked"))?.clone();
    ensure_recorded_once(&instance, &answered).await?;
    ensure_audit_passes(&instance).await?;
    survivor.stop().await?;
    ensure!(hand.number("SELECT COUNT(*) FROM allowances").await? == 0, "a dead process still holds money");
    ensure!(hand.number("SELECT COUNT(*) FROM journal_entries").await? == 0, "entries of ended processes remain");
    hand.close().await?;
    ensure!(!instance.path().join("data/tollgate-journal").exists(), "no journal is on the disk");
    Ok(())
}

#[tokio::test]
async fn paused_replica_is_adopted_and_continues_under_a_new_id() -> Result<()> {
    let alpha = upstream().await?;
    let instance = instance(&alpha)?;
    let key = instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
    let (paused, other) = (instance.serve().await?, instance.serve_beside().await?);
    wait_for_answer(&paused, &key.secret).await?;
    // A process that is paused during a write would keep the lock of the database, which is another case.
    sleep(Duration::from_millis(500)).await;
    paused.signal("STOP").await?;
    let hand = SecondHand::of(&instance).await?;
    wait_for(&hand, "SELECT COUNT(*) FROM budget_processes WHERE state = 'ended'", 1).await?;
    wait_for_answer(&other, &key.secret).await?;
    paused.signal("CONT").await?;
    wait_for_answer(&paused, &key.secret).await?;
    let since = Instant::now();
    while !paused.output().contains("process no longer accepted by the store") {
        ensure!(since.elapsed() < MAX_WAIT, "{}", paused.output());
        wait_for_answer(&paused, &key.secret).await?;
        sleep(Duration::from_millis(100)).await;
    }
    wait_for_answer(&paused, &key.secret).await?;
    paused.send(&Call::get("/health/ready")).await?.ok()?;
    ensure_audit_passes(&instance).await?;
    hand.close().await?;
    paused.stop().await?;
    other.stop().await?;
    ensure_audit_passes(&instance).await?;
    Ok(())
}

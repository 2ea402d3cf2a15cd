//! Requests that wait for allowances of an unresponsive process.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Instance, Key, Reply, SecondHand, Server};

use crate::gateway::{QUESTIONS, body};
use crate::limits::{ensure_audit_passes, gateway};
use crate::stores::unavailable;

const MAX_WAIT: Duration = Duration::from_secs(15);

/// Repeats a request while it succeeds; returns the first other reply.
async fn use_up(server: &Server, key: &Key) -> Result<Reply> {
    for _ in 0..1_000 {
        let reply = server.decide(&key.secret, body("acme/alone")).await?;
        if reply.status != 200 {
            return Ok(reply);
        }
    }
    anyhow::bail!("the limit has no end")
}

/// Repeats a request until it has this status; it must be 503 before.
async fn until(server: &Server, key: &Key, status: u16) -> Result<Reply> {
    let since = Instant::now();
    loop {
        let reply = server.decide(&key.secret, body("acme/alone")).await?;
        if reply.status == status {
            return Ok(reply);
        }
        ensure!(reply.status == 503, "{}: {}", reply.status, reply.text());
        ensure!(since.elapsed() < MAX_WAIT, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(50)).await;
    }
}

fn usd(envelope: &Value, name: &str) -> Result<f64> {
    envelope["error"]["metadata"][name].as_f64().with_context(|| format!("no {name} in {envelope}"))
}

#[tokio::test]
async fn request_is_unavailable_while_paused_process_has_allowance() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(1), "").await?;
    let beside = gateway.instance.serve_beside().await?;
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.0005"]).await?;
    for _ in 0..4 {
        gateway.server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    }
    // A process that is paused during a write would keep the database's lock, which is another case.
    sleep(Duration::from_millis(500)).await;
    gateway.server.signal("STOP").await?;
    unavailable(&use_up(&beside, &key).await?)?;
    for _ in 0..20 {
        unavailable(&beside.decide(&key.secret, body("acme/alone")).await?)?;
    }
    // Too large for the returned allowances.
    let state = "It smokes. ".repeat(2_000);
    let large = format!(r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"{state}"}}"#);
    let since = Instant::now();
    beside.decide(&key.secret, large).await?.envelope(402)?;
    ensure!(since.elapsed() < Duration::from_secs(2), "refused after {:?}", since.elapsed());
    gateway.server.signal("CONT").await?;
    until(&beside, &key, 200).await?;
    let refused = match use_up(&beside, &key).await? {
        reply if reply.status == 503 => until(&beside, &key, 402).await?,
        reply => reply,
    };
    let refused = refused.envelope(402)?;
    let bound = 0.000_000_042 * f64::from(u32::try_from(body("acme/alone").len() + 512)?);
    let left = usd(&refused, "limit_usd")? - usd(&refused, "spent_usd")?;
    ensure!(left < bound, "{left} USD were left over: {refused}");
    ensure_audit_passes(&gateway.instance).await?;
    beside.stop().await?;
    gateway.server.stop().await
}

/// Returns the ids of the processes with allowances, in the order of their starts.
async fn processes(instance: &Instance) -> Result<Vec<String>> {
    let listed = instance.json(&["journal", "list"]).await?;
    let rows = listed["data"].as_array().with_context(|| format!("no data in {listed}"))?;
    Ok(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
}

async fn wait_for_number(hand: &SecondHand, sql: &str, number: i64, longest: Duration) -> Result<()> {
    let since = Instant::now();
    while hand.number(sql).await? != number {
        ensure!(since.elapsed() < longest, "{sql} is not {number}");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn missing_journal_is_declared_lost_and_folded_when_found() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(1), "").await?;
    let beside = gateway.instance.serve_beside().await?;
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.0005"]).await?;
    for _ in 0..4 {
        gateway.server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    }
    let ids = processes(&gateway.instance).await?;
    let [gone, lives] = &ids[..] else { anyhow::bail!("not two processes: {ids:?}") };
    // The journal is removed before another process can recover it.
    sleep(Duration::from_millis(500)).await;
    gateway.server.signal("STOP").await?;
    let folder = gateway.instance.path().join("data/tollgate-journal").join(gone);
    let away = gateway.instance.path().join("away");
    std::fs::rename(&folder, &away)?;
    gateway.server.kill().await?;
    let refused = gateway.instance.refused(&["journal", "forget", gone]).await?;
    ensure!(refused.contains("lives"), "{refused}");
    let refused = gateway.instance.refused(&["journal", "forget", lives]).await?;
    ensure!(refused.contains("on this machine"), "{refused}");
    unavailable(&use_up(&beside, &key).await?)?;

    let hand = SecondHand::of(&gateway.instance).await?;
    // A process without a journal counts as lost after an hour, the last minute of which is watched.
    hand.execute(&format!("UPDATE budget_processes SET seen_at = seen_at - 3700000 WHERE id = '{gone}'")).await?;
    wait_for_number(&hand, "SELECT COUNT(*) FROM budget_processes WHERE state = 'lost'", 1, Duration::from_mins(3))
        .await?;
    until(&beside, &key, 402).await?;
    ensure!(beside.output().contains("process lost with its journal"), "{}", beside.output());
    let adjusted = hand.number("SELECT COUNT(*) FROM adjustments").await?;
    ensure!(adjusted > 0, "the allowances of the lost process are not accounted for");
    ensure_audit_passes(&gateway.instance).await?;
    let refused = gateway.instance.refused(&["journal", "forget", gone]).await?;
    ensure!(refused.contains("lost"), "{refused}");

    std::fs::rename(&away, &folder)?;
    wait_for_number(&hand, "SELECT COUNT(*) FROM adjustments", 0, MAX_WAIT).await?;
    ensure_audit_passes(&gateway.instance).await?;
    beside.decide(&key.secret, body("acme/alone")).await?.ok()?;
    hand.close().await?;
    beside.stop().await
}

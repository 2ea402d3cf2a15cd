//! Failing stores: always a 503, never a wrong rejection, and no partial writes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Reply, Report, SecondHand};

use crate::costs::rows;
use crate::gateway::{TestGateway, body};
use crate::promote::{file_id, sparse, used_bytes};

/// Returns the calls that write, each with its name.
async fn writes(gateway: &TestGateway) -> Result<Vec<(&'static str, Call)>> {
    let file = gateway.instance.put("sess_a", "a", b"x").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&gateway.management.secret)
        .json(json!({"key_hashes": [gateway.inference.hash]}).to_string());
    Ok(vec![
        ("decisions", tollgate_tests::decisions(&gateway.inference.secret, body("sandbox/decider"))),
        ("promote", tollgate_tests::promotion(&gateway.inference.secret, "sess_a", &file)),
        ("assign", assign),
    ])
}

pub fn unavailable(reply: &Reply) -> Result<()> {
    reply.error(503, "Service temporarily unavailable")?;
    ensure!(reply.header("retry-after").parse::<u64>().is_ok(), "no Retry-After");
    Ok(())
}

/// Counts the rows of usage and the blobs of documents, which failures must not leave behind.
async fn traces(gateway: &TestGateway) -> Result<(usize, usize)> {
    let listed = gateway.instance.json(&["usage", "list", "--limit", "1000"]).await?;
    Ok((rows(&listed)?.len(), gateway.instance.document_blobs()?.len()))
}

#[tokio::test]
async fn locked_database_returns_503_for_writes() -> Result<()> {
    let gateway = TestGateway::start("[storage]\nbusy_timeout_ms = 300\n").await?;
    let calls = writes(&gateway).await?;
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    gateway.server.send(&count).await?.ok()?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("BEGIN EXCLUSIVE").await?;
    let mut report = Report::default();
    for (name, call) in &calls {
        let since = Instant::now();
        let reply = gateway.server.send(call).await?;
        // The charge of a decision waits in the journal.
        report.case(name, if *name == "decisions" { reply.ok().map(drop) } else { unavailable(&reply) });
        ensure!(since.elapsed() < Duration::from_secs(10), "{name} waited for {:?}", since.elapsed());
    }
    report.case("count", gateway.server.send(&count).await?.ok());
    hand.execute("ROLLBACK").await?;
    hand.close().await?;
    // The provider's answer is charged after the outage; the other calls leave nothing behind.
    let since = Instant::now();
    while traces(&gateway).await? != (1, 0) {
        ensure!(since.elapsed() < Duration::from_secs(20), "{:?} were left behind", traces(&gateway).await?);
        sleep(Duration::from_millis(50)).await;
    }
    for (name, call) in &calls {
        report.case(&format!("{name}, afterwards"), gateway.server.send(call).await?.ok());
    }
    ensure!(traces(&gateway).await? == (2, 1), "the calls afterwards count once");
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn briefly_locked_database_delays_requests() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let calls = writes(&gateway).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    for (name, call) in &calls {
        hand.execute("BEGIN IMMEDIATE").await?;
        let (reply, released) = tokio::join!(gateway.server.send(call), async {
            sleep(Duration::from_millis(400)).await;
            hand.execute("COMMIT").await
        });
        released?;
        reply?.ok().with_context(|| (*name).to_owned())?;
    }
    hand.close().await
}

#[tokio::test]
async fn read_only_database_returns_503_for_writes() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let calls = writes(&gateway).await?;
    let TestGateway { mut instance, server, inference, management } = gateway;
    server.stop().await?;
    let url = format!("sqlite://{}", instance.database().display());
    instance.set_env("TOLLGATE__STORAGE__URL", format!("{url}?mode=ro"));
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    let mut report = Report::default();
    for (name, call) in &calls {
        report.case(name, unavailable(&gateway.server.send(call).await?));
    }
    let count = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    report.case("count", gateway.server.send(&count).await?.ok());
    let model = Call::get("/api/v1/model/sandbox/decider").key(&gateway.management.secret);
    report.case("model", gateway.server.send(&model).await?.ok());
    report.case("an unknown key", {
        let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
        gateway.server.send(&stranger).await?.envelope(401)
    });
    report.case("a command", gateway.instance.refused(&["key", "create", "--name", "x"]).await);
    ensure!(traces(&gateway).await? == (0, 0), "something was left behind");
    let TestGateway { mut instance, server, inference, management } = gateway;
    server.stop().await?;
    instance.set_env("TOLLGATE__STORAGE__URL", url);
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    for (name, call) in &calls {
        report.case(&format!("{name}, afterwards"), gateway.server.send(call).await?.ok());
    }
    report.finish()
}

/// More decisions than a full database can record.
const DECISIONS: usize = 400;

/// Checks that every decision is answered: its charge waits in the journal.
async fn decide_often(gateway: &TestGateway) -> Result<()> {
    let padding = format!(r#""trace":{{"padding":"{}"}}"#, "x".repeat(2_000));
    for _ in 0..DECISIONS {
        gateway.server.decide(&gateway.inference.secret, crate::gateway::body_with(&padding)).await?.ok()?;
    }
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn database_at_file_size_limit_returns_503_for_writes() -> Result<()> {
    let TestGateway { instance, server, inference, management } = TestGateway::start("").await?;
    server.stop().await?;
    // The unit is 512 or 1,024 bytes, depending on the shell; the write-ahead log is a separate file.
    let gateway = TestGateway { server: instance.serve_under("ulimit -f 400").await?, instance, inference, management };
    decide_often(&gateway).await?;
    let said = gateway.instance.refused(&["usage", "list"]).await?;
    ensure!(said.contains("temporarily unavailable"), "records that wait in the journal are missing: {said}");
    // Reads still work.
    gateway.server.send(&Call::get("/api/v1/models/count").key(&gateway.inference.secret)).await?.ok()?;
    let TestGateway { instance, server, inference, management } = gateway;
    drop(server);
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    ensure!(traces(&gateway).await?.0 == DECISIONS, "answers and records differ");
    gateway.decide(body("sandbox/decider")).await?;
    ensure!(traces(&gateway).await?.0 == DECISIONS + 1);
    gateway.server.ensure_healthy().await
}

#[cfg(unix)]
#[tokio::test]
async fn promotion_at_file_size_limit_returns_503() -> Result<()> {
    let toml = "[limits]\nworkspace_quota_bytes = 80000000\n";
    let TestGateway { instance, server, inference, management } = TestGateway::start(toml).await?;
    server.stop().await?;
    let gateway =
        TestGateway { server: instance.serve_under("ulimit -f 20000").await?, instance, inference, management };
    // More than the limit in either unit, less than the quota.
    sparse(&gateway, "sess_a", "large", 60_000_000).await?;
    for _ in 0..2 {
        unavailable(&gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("large")).await?)?;
    }
    let left: Vec<_> = tollgate_tests::files_below(&gateway.instance.blobs())?
        .into_iter()
        .filter(|file| !file.starts_with(gateway.instance.blobs().join("containers")))
        .filter(|file| file.metadata().is_ok_and(|metadata| metadata.len() > 0))
        .collect();
    ensure!(left.is_empty(), "{left:?} were left behind");
    ensure!(used_bytes(&gateway).await? == 0, "quota was not released");
    let small = gateway.instance.put("sess_a", "small", b"x").await?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &small).await?.ok()?;
    gateway.server.ensure_healthy().await
}

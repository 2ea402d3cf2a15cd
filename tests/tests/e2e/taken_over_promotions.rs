//! Promotions whose process ends, pauses or loses its database: quota and idempotency key are free again at once.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Instance, Reply, SecondHand, promotion};

use crate::gateway::TestGateway;
use crate::promote::file_id;
use crate::stores::unavailable;

/// A busy machine takes its time.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// The least amount that a document counts.
const SMALL: u64 = 1_024;
/// A promotion waits this long in its copy, with its quota reserved: a file that has just changed may still be written.
const SLOW: &str = "[storage]\nbusy_timeout_ms = 500\n[blobs]\nquiet_period_ms = ";
const PENDING: &str = "SELECT COUNT(*) FROM documents WHERE state = 'pending'";

fn slow(quiet_ms: u64) -> String {
    format!("{SLOW}{quiet_ms}\n")
}

/// Writes the file again, so that its quiet period starts.
async fn touch(gateway: &TestGateway) -> Result<()> {
    let workspace = gateway.instance.default_workspace().await?;
    File::create(gateway.instance.container_file(&workspace, "sess_a", "file")?)?.set_len(SMALL)?;
    Ok(())
}

fn keyed(gateway: &TestGateway, key: &str) -> Call {
    promotion(&gateway.inference.secret, "sess_a", &file_id("file")).header("idempotency-key", key)
}

fn send(calls: &mut JoinSet<Result<Reply>>, call: Call, to: SocketAddr) {
    calls.spawn(async move { call.send(to).await });
}

async fn wait_for(hand: &SecondHand, sql: &str, number: i64) -> Result<()> {
    let since = Instant::now();
    loop {
        let found = hand.number(sql).await?;
        if found == number {
            return Ok(());
        }
        ensure!(since.elapsed() < MAX_WAIT, "{sql} is {found}, not {number}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Checks that there are so many documents, each with its bytes, and that the quota counts nothing else.
async fn ensure_exact(gateway: &TestGateway, hand: &SecondHand, documents: u64) -> Result<()> {
    wait_for(hand, PENDING, 0).await?;
    wait_for(hand, "SELECT COUNT(*) FROM documents", documents.try_into()?).await?;
    let workspace = &gateway.instance.json(&["workspace", "list"]).await?["data"][0];
    ensure!(workspace["storage_used_bytes"] == documents * SMALL, "{workspace}");
    let since = Instant::now();
    loop {
        let bytes = gateway.instance.document_blobs()?;
        if bytes.len() as u64 == documents {
            return Ok(());
        }
        ensure!(since.elapsed() < MAX_WAIT, "{bytes:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn id_of(reply: &Reply) -> Result<String> {
    let document = reply.ok()?;
    Ok(document["id"].as_str().with_context(|| format!("no id in {document}"))?.to_owned())
}

/// Returns an installation on either database.
fn instances(toml: &str) -> Result<[Instance; 2]> {
    Ok([Instance::on_file(toml)?, Instance::on_postgres(toml)?])
}

#[tokio::test]
async fn other_replica_takes_over_promotion_of_a_killed_process_once() -> Result<()> {
    for instance in instances(&slow(8_000))? {
        let gateway = TestGateway::of(instance).await?;
        let beside = gateway.instance.serve_beside().await?;
        let hand = SecondHand::of(&gateway.instance).await?;
        touch(&gateway).await?;
        let mut calls = JoinSet::new();
        send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
        wait_for(&hand, PENDING, 1).await?;
        let TestGateway { instance, server, inference, management } = gateway;
        server.kill().await?;
        ensure!(calls.join_next().await.context("the call is gone")??.is_err(), "a dead process answered");
        let gateway = TestGateway { server: beside, instance, inference, management };
        touch(&gateway).await?;
        for _ in 0..2 {
            send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
        }
        let mut ids = BTreeSet::new();
        while let Some(reply) = calls.join_next().await {
            ids.insert(id_of(&reply??)?);
        }
        ensure!(ids.len() == 1, "{ids:?}");
        ensure_exact(&gateway, &hand, 1).await?;
        hand.close().await?;
        gateway.server.stop().await?;
    }
    Ok(())
}

/// The step at which the process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Reserved,
    Copied,
}

#[tokio::test]
async fn restart_after_a_kill_at_any_step_leaves_nothing_reserved() -> Result<()> {
    for step in [Step::Reserved, Step::Copied] {
        let quiet_ms = if step == Step::Reserved { 8_000 } else { 3_000 };
        let gateway = TestGateway::of(Instance::on_file(&slow(quiet_ms))?).await?;
        let hand = SecondHand::of(&gateway.instance).await?;
        touch(&gateway).await?;
        let mut calls = JoinSet::new();
        send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
        wait_for(&hand, PENDING, 1).await?;
        if step == Step::Copied {
            // The document cannot become ready while another process writes.
            hand.execute("BEGIN IMMEDIATE").await?;
            let since = Instant::now();
            while gateway.instance.document_blobs()?.is_empty() {
                ensure!(since.elapsed() < MAX_WAIT, "nothing was copied");
                sleep(Duration::from_millis(5)).await;
            }
        }
        let TestGateway { instance, server, inference, management } = gateway;
        server.kill().await?;
        if step == Step::Copied {
            hand.execute("ROLLBACK").await?;
        }
        let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
        let held = hand.number("SELECT storage_used_bytes FROM workspaces").await?;
        ensure!(held == 0, "{step:?}: {held} bytes are reserved");
        touch(&gateway).await?;
        gateway.server.send(&keyed(&gateway, "k")).await?.ok()?;
        ensure_exact(&gateway, &hand, 1).await?;
        hand.close().await?;
        gateway.server.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn promotion_without_database_gives_its_reservation_back_after_the_outage() -> Result<()> {
    let gateway = TestGateway::of(Instance::on_file(&slow(1_500))?).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    touch(&gateway).await?;
    let mut calls = JoinSet::new();
    for key in ["k", "other"] {
        send(&mut calls, keyed(&gateway, key), gateway.server.address());
    }
    wait_for(&hand, PENDING, 2).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    while let Some(reply) = calls.join_next().await {
        unavailable(&reply??)?;
    }
    ensure!(hand.number(PENDING).await? == 2, "the rows could be removed in the outage: nothing is proved");
    hand.execute("ROLLBACK").await?;
    ensure_exact(&gateway, &hand, 0).await?;
    touch(&gateway).await?;
    gateway.server.send(&keyed(&gateway, "k")).await?.ok()?;
    ensure_exact(&gateway, &hand, 1).await?;
    hand.close().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn paused_process_returns_the_document_of_the_one_that_took_over() -> Result<()> {
    // A process without a disk of its own is adopted after a silence of 15 seconds.
    let toml = format!("{}[journal]\nsync = \"store\"\n", slow(4_000));
    let gateway = TestGateway::of(Instance::on_file(&toml)?).await?;
    let beside = gateway.instance.serve_beside().await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    touch(&gateway).await?;
    let mut calls = JoinSet::new();
    send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
    wait_for(&hand, PENDING, 1).await?;
    gateway.server.signal("STOP").await?;
    wait_for(&hand, PENDING, 0).await?;
    touch(&gateway).await?;
    let taken = id_of(&beside.send(&keyed(&gateway, "k")).await?)?;
    gateway.server.signal("CONT").await?;
    let reply = calls.join_next().await.context("the call is gone")???;
    // A process that has just come back may not have its database at once.
    if reply.status == 503 {
        unavailable(&reply)?;
    } else {
        ensure!(id_of(&reply)? == taken, "two documents: {}", reply.text());
    }
    ensure_exact(&gateway, &hand, 1).await?;
    ensure!(id_of(&beside.send(&keyed(&gateway, "k")).await?)? == taken);
    hand.close().await?;
    beside.stop().await?;
    gateway.server.stop().await
}

/// Makes a key's document look like one that another process is promoting now.
async fn hold(gateway: &TestGateway, hand: &SecondHand, key: &str) -> Result<()> {
    touch(gateway).await?;
    gateway.server.send(&keyed(gateway, key)).await?.ok()?;
    let process = "01990000-0000-7000-8000-0000000000aa";
    hand.execute(&format!("UPDATE documents SET state = 'pending', process = '{process}'")).await
}

#[tokio::test]
async fn stop_ends_waits_for_promotions_of_other_processes() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hold(&gateway, &hand, "k").await?;
    let mut calls = JoinSet::new();
    send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
    wait_until_served(&gateway, 1).await?;
    // The client of another wait has disconnected.
    let repeated = keyed(&gateway, "k");
    let gone = tokio::time::timeout(Duration::from_millis(500), repeated.send(gateway.server.address()));
    ensure!(gone.await.is_err(), "it did not wait");
    gateway.server.terminate().await?;
    let reply = calls.join_next().await.context("the call is gone")???;
    unavailable(&reply)?;
    let reason = reply.envelope(503)?["error"]["metadata"]["reason"].clone();
    ensure!(reason.as_str().is_some_and(|reason| reason.contains("still in progress")), "{reason}");
    let output = gateway.instance.path().join(format!("output-{}.log", gateway.server.address().port()));
    let status = gateway.server.ended().await?;
    let output = std::fs::read_to_string(output)?;
    ensure!(status.code() == Some(0), "{status}: {output}");
    for unwanted in ["panicked", "did not end in time", "shutdown timeout passed"] {
        ensure!(!output.contains(unwanted), "{output}");
    }
    hand.close().await
}

#[tokio::test]
async fn stop_abandons_promotion_of_a_disconnected_client() -> Result<()> {
    let gateway = TestGateway::of(Instance::on_file(&slow(60_000))?).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    touch(&gateway).await?;
    let mut calls = JoinSet::new();
    send(&mut calls, keyed(&gateway, "k"), gateway.server.address());
    wait_for(&hand, PENDING, 1).await?;
    calls.shutdown().await;
    gateway.server.terminate().await?;
    let output = gateway.instance.path().join(format!("output-{}.log", gateway.server.address().port()));
    let status = gateway.server.ended().await?;
    let output = std::fs::read_to_string(output)?;
    ensure!(status.code() == Some(0), "{status}: {output}");
    for unwanted in ["panicked", "did not end in time", "shutdown timeout passed"] {
        ensure!(!output.contains(unwanted), "{output}");
    }
    let left = hand.number("SELECT COUNT(*) FROM documents").await?;
    ensure!(left == 0, "the stop left a reservation: {output}");
    hand.close().await
}

/// Waits until so many requests are in progress.
async fn wait_until_served(gateway: &TestGateway, requests: u64) -> Result<()> {
    let since = Instant::now();
    loop {
        let status = gateway.instance.json(&["status"]).await?;
        if status["servers"][0]["connections_in_request"].as_u64() >= Some(requests) {
            return Ok(());
        }
        ensure!(since.elapsed() < MAX_WAIT, "{status}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn journal_segment_that_is_no_file_is_named_and_the_rest_recovered() -> Result<()> {
    let gateway = TestGateway::of(Instance::on_file("")?).await?;
    gateway.decide(crate::gateway::body("sandbox/decider")).await?;
    let TestGateway { instance, server, .. } = gateway;
    server.kill().await?;
    let journals = instance.path().join("data/tollgate-journal");
    let folders = std::fs::read_dir(&journals)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let folder = folders.iter().find(|path| path.is_dir()).context("no journal")?;
    let (pipe, large) = (folder.join("0000000000000090.segment"), folder.join("0000000000000091.segment"));
    ensure!(tokio::process::Command::new("mkfifo").arg(&pipe).status().await?.success());
    File::create(&large)?.set_len(1 << 40)?;
    let server = instance.serve().await?;
    for (path, reason) in [(&pipe, "a pipe instead of a segment"), (&large, "more than a segment can have")] {
        let output = server.output();
        ensure!(output.contains(reason) && output.contains(&path.display().to_string()), "{output}");
    }
    let listed = instance.json(&["usage", "list"]).await?;
    ensure!(listed["data"].as_array().is_some_and(|data| data.len() == 1), "{listed}");
    for command in [["journal", "list"].as_slice(), &["doctor"]] {
        ensure!(!instance.run(command).await?.stdout.is_empty(), "{command:?} returned nothing");
    }
    ensure!(instance.json(&["document", "list"]).await?["data"] == json!([]));
    server.stop().await
}

//! Requests while the database accepts no writes.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tollgate_tests::{Behaviour, Call, Instance, Network, SecondHand, Upstream, decisions, wait_for};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};

/// Starts a gateway with a short busy timeout and a provider that takes a second.
async fn gateway() -> Result<(TestGateway, Upstream)> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_secs(1), CHEAP.to_owned())).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let mut instance = Instance::new(&format!("[storage]\nbusy_timeout_ms = 300\n{providers}"))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok((TestGateway::of(instance).await?, alpha))
}

/// Waits until a query returns this number.
async fn until(hand: &SecondHand, sql: &str, number: i64) -> Result<()> {
    let since = Instant::now();
    loop {
        let found = hand.number(sql).await?;
        if found == number {
            return Ok(());
        }
        ensure!(since.elapsed() < Duration::from_secs(20), "{sql}: {found} instead of {number}");
        sleep(Duration::from_millis(50)).await;
    }
}

const RECORDS: &str = "SELECT COUNT(*) FROM usage_records";

#[tokio::test]
async fn requests_are_answered_while_the_database_is_locked_and_recorded_afterwards() -> Result<()> {
    let (gateway, alpha) = gateway().await?;
    let limited = gateway.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let address = gateway.server.address();
    // An unlimited request, a limited one, and one whose client disconnects.
    let mut asked = JoinSet::new();
    for (secret, stays) in
        [(&gateway.inference.secret, true), (&limited.secret, true), (&gateway.inference.secret, false)]
    {
        let call = decisions(secret, body("acme/alone"));
        let stays = Duration::from_millis(if stays { 10_000 } else { 700 });
        asked.spawn(async move { timeout(stays, call.send(address)).await });
    }
    alpha.wait_for_requests(3).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    let mut left = 0;
    while let Some(ended) = asked.join_next().await {
        match ended? {
            Ok(reply) => drop(reply?.ok()?),
            Err(_) => left += 1,
        }
    }
    ensure!(left == 1, "{left} left before they were answered");
    ensure!(hand.number(RECORDS).await? == 0, "something was written all the same");
    hand.execute("ROLLBACK").await?;
    until(&hand, RECORDS, 3).await?;
    ensure!(alpha.take_requests().len() == 3, "a provider was called again");
    ensure_audit_passes(&gateway.instance).await?;
    gateway.decide(body("acme/alone")).await?;
    hand.close().await?;
    gateway.server.ensure_healthy().await
}

/// Starts a gateway with a request timeout of two seconds and a far longer busy timeout.
async fn gateway_with_short_timeout(alpha: &Upstream) -> Result<TestGateway> {
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000);
    let limits = "[limits]\nrequest_timeout_ms = 2000\n[storage]\nbusy_timeout_ms = 30000\n";
    let mut instance = Instance::new(&format!("{limits}{providers}"))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    TestGateway::of(instance).await
}

#[tokio::test]
async fn request_ends_at_its_deadline_while_the_database_is_locked() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let gateway = gateway_with_short_timeout(&alpha).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let (call, address) = (decisions(&gateway.inference.secret, body("acme/alone")), gateway.server.address());
    let since = Instant::now();
    let (reply, locked) = tokio::join!(call.send(address), async {
        alpha.wait_for_request().await?;
        hand.execute("BEGIN IMMEDIATE").await
    });
    locked?;
    let took = since.elapsed();
    let reply = reply?;
    reply.error(524, "Request timed out")?;
    ensure!(took >= Duration::from_millis(1_900) && took < Duration::from_secs(15), "it took {took:?}");
    hand.execute("ROLLBACK").await?;
    until(&hand, &format!("{RECORDS} WHERE outcome = 'failed'"), 1).await?;
    until(&hand, RECORDS, 1).await?;
    hand.close().await?;
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn request_ends_at_its_deadline_when_money_cannot_be_held() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(CHEAP)).await?;
    let gateway = gateway_with_short_timeout(&alpha).await?;
    let limited = gateway.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    let since = Instant::now();
    let reply = gateway.server.decide(&limited.secret, body("acme/alone")).await?;
    let took = since.elapsed();
    reply.error(503, "did not answer in time")?;
    ensure!(took < Duration::from_secs(15), "it took {took:?}");
    hand.execute("ROLLBACK").await?;
    gateway.server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
    ensure!(alpha.take_requests().len() == 1, "a request without money for it was sent");
    until(&hand, RECORDS, 1).await?;
    hand.close().await?;
    ensure_audit_passes(&gateway.instance).await.map(drop)
}

/// Returns everything that the servers of an installation have printed.
fn output(instance: &Instance) -> Result<String> {
    let files = tollgate_tests::files_below(instance.path())?;
    let logs = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "log"));
    Ok(logs.filter_map(|log| std::fs::read_to_string(log).ok()).collect())
}

#[tokio::test]
async fn start_waits_for_a_locked_database() -> Result<()> {
    let instance = Instance::on_file("[storage]\nbusy_timeout_ms = 200\n")?;
    instance.serve().await?.stop().await?;
    let hand = SecondHand::of(&instance).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    let began = Instant::now();
    let refused = instance.refused_serving().await?;
    ensure!(refused.contains("database is locked"), "{refused}");
    ensure!(began.elapsed() >= Duration::from_mins(1), "the start waited for {:?} only", began.elapsed());
    let (started, released) = tokio::join!(instance.serve(), async {
        wait_for("a start that waits", || output(&instance).is_ok_and(|log| log.contains("the start waits"))).await?;
        // Several attempts later it still waits, and has not said so again.
        sleep(Duration::from_secs(2)).await;
        let lines = output(&instance)?.matches("the start waits").count();
        ensure!(lines == 1, "{lines} lines");
        hand.execute("ROLLBACK").await
    });
    released?;
    hand.close().await?;
    let server = started?;
    server.ensure_healthy().await?;
    server.stop().await
}

#[tokio::test]
async fn start_waits_for_a_silent_server_of_the_database() -> Result<()> {
    let (instance, relay) = Instance::behind_relay("[storage]\nbusy_timeout_ms = 500\n").await?;
    instance.serve().await?.stop().await?;
    relay.set(Network::Frozen);
    let (served, waited) = tokio::join!(instance.serve(), async {
        let log = || output(&instance).is_ok_and(|log| log.contains("the start waits"));
        let waited = wait_for("a start that waits", log).await;
        relay.set(Network::Up);
        waited
    });
    waited?;
    served?.stop().await
}

/// A stop that waits for the database logs each kind of failure once.
#[tokio::test]
async fn failures_of_an_outage_are_logged_once_a_minute() -> Result<()> {
    let (gateway, alpha) = gateway().await?;
    alpha.behave(Behaviour::json(CHEAP));
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    let since = Instant::now();
    gateway.decide(body("acme/alone")).await?;
    let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
    gateway.server.send(&stranger).await?;
    let degraded = async || {
        let ready = gateway.server.send(&Call::get("/health/ready")).await?;
        anyhow::Ok(ready.status == 200 && ready.text().contains("degraded") && ready.text().contains("database"))
    };
    while !degraded().await? {
        ensure!(since.elapsed() < Duration::from_secs(20), "not degraded");
        sleep(Duration::from_millis(100)).await;
    }
    let status = gateway.instance.run(&["status", "--json"]).await?;
    let status = String::from_utf8(status.stdout)?;
    ensure!(status.contains("takes no writes") && status.contains("database is locked"), "{status}");
    gateway.server.terminate().await?;
    let TestGateway { instance, server, .. } = gateway;
    server.ended().await?;
    let most = 1 + usize::try_from(since.elapsed().as_secs() / 60)?;
    let log = output(&instance)?;
    for message in
        ["journal not folded", "write of rejection counts failed", "store unavailable store=", "not recovered"]
    {
        let lines = log.matches(message).count();
        ensure!(lines <= most, "{lines} lines: {message}\n{log}");
    }
    ensure!(log.contains("journal not folded"), "{log}");
    hand.execute("ROLLBACK").await?;
    hand.close().await
}

//! Charges that the database does not take while they are made: written when it does, exactly and once.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tollgate_tests::{Behaviour, Instance, SecondHand, Upstream, decisions, free_address};

use crate::limits::{CHEAP, COST_PICO, ensure_it_adds_up};
use crate::metrics::Scrape;
use crate::stores::unavailable;
use crate::world::{World, body, providers_toml};

/// A gateway with measures whose writes have little patience, before a provider that takes a second.
async fn world() -> Result<(World, Upstream, SocketAddr)> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_secs(1), CHEAP.to_owned())).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let mut instance = Instance::new(&format!("[storage]\nbusy_timeout_ms = 300\n{providers}"))?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok((World::of(instance).await?, alpha, metrics))
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
async fn what_providers_bill_while_the_database_is_locked_is_charged_afterwards() -> Result<()> {
    let (world, alpha, metrics) = world().await?;
    let limited = world.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    let address = world.server.address();
    // One that nothing limits, one that is limited, and one that leaves.
    let mut asked = JoinSet::new();
    for (secret, stays) in [(&world.inference.secret, true), (&limited.secret, true), (&world.inference.secret, false)]
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
            Ok(reply) => unavailable(&reply?)?,
            Err(_) => left += 1,
        }
    }
    ensure!(left == 1, "{left} left before they were answered");
    let since = Instant::now();
    while Scrape::take(metrics).await?.value("tollgate_settlements_waiting") != 3 {
        ensure!(since.elapsed() < Duration::from_secs(5), "what was not written does not wait");
        sleep(Duration::from_millis(20)).await;
    }
    ensure!(hand.number(RECORDS).await? == 0, "something was written all the same");
    hand.execute("ROLLBACK").await?;

    until(&hand, RECORDS, 3).await?;
    let exact = format!("{RECORDS} WHERE outcome = 'completed' AND cost_pico = {COST_PICO}");
    ensure!(hand.number(&exact).await? == 2, "what was answered is not charged exactly");
    ensure!(hand.number(&format!("{RECORDS} WHERE outcome = 'cancelled'")).await? == 1);
    ensure!(hand.number("SELECT COUNT(*) FROM reservations").await? == 0, "something is still reserved");
    let scrape = Scrape::take(metrics).await?;
    let counted = ["waiting", "written_late_total", "lost_total"]
        .map(|measure| scrape.value(&format!("tollgate_settlements_{measure}")));
    ensure!(counted == [0, 3, 0], "{counted:?}");
    ensure!(alpha.take_requests().len() == 3, "nobody was asked again");
    ensure_it_adds_up(&world.instance).await?;
    world.decide(body("acme/alone")).await?;
    ensure!(hand.number(RECORDS).await? == 4);
    hand.close().await?;
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn a_stop_waits_for_the_database() -> Result<()> {
    let (world, alpha, _) = world().await?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    let (call, address) = (decisions(&world.inference.secret, body("acme/alone")), world.server.address());
    let (reply, locked) = tokio::join!(call.send(address), async {
        alpha.wait_for_request().await?;
        hand.execute("BEGIN IMMEDIATE").await
    });
    locked?;
    unavailable(&reply?)?;
    let (stopped, freed) = tokio::join!(world.server.stop(), async {
        sleep(Duration::from_secs(2)).await;
        hand.execute("ROLLBACK").await
    });
    stopped?;
    freed?;
    ensure!(hand.number(&format!("{RECORDS} WHERE cost_pico = {COST_PICO}")).await? == 1);
    hand.close().await?;
    ensure_it_adds_up(&world.instance).await.map(drop)
}

/// A gateway whose requests have two seconds and whose writes wait for much longer.
async fn hurried_world(alpha: &Upstream) -> Result<World> {
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000);
    let limits = "[limits]\nrequest_timeout_ms = 2000\nbudget_wait_ms = 30000\n[storage]\nbusy_timeout_ms = 30000\n";
    let mut instance = Instance::new(&format!("{limits}{providers}"))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    World::of(instance).await
}

#[tokio::test]
async fn request_ends_at_its_deadline_when_database_is_locked_after_the_call() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let world = hurried_world(&alpha).await?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    let (call, address) = (decisions(&world.inference.secret, body("acme/alone")), world.server.address());
    let since = Instant::now();
    let (reply, locked) = tokio::join!(call.send(address), async {
        alpha.wait_for_request().await?;
        hand.execute("BEGIN IMMEDIATE").await
    });
    locked?;
    let took = since.elapsed();
    let reply = reply?;
    reply.error(503, "did not answer in time")?;
    ensure!(!reply.header("retry-after").is_empty());
    ensure!(took >= Duration::from_millis(1_900) && took < Duration::from_secs(15), "it took {took:?}");
    hand.execute("ROLLBACK").await?;
    until(&hand, &format!("{RECORDS} WHERE outcome = 'failed'"), 1).await?;
    until(&hand, RECORDS, 1).await?;
    hand.close().await?;
    ensure_it_adds_up(&world.instance).await?;
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn request_ends_at_its_deadline_when_money_cannot_be_held() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(CHEAP)).await?;
    let world = hurried_world(&alpha).await?;
    let limited = world.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    // The key is known before the database is locked.
    world.server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    hand.execute("BEGIN IMMEDIATE").await?;
    let since = Instant::now();
    let reply = world.server.decide(&limited.secret, body("acme/alone")).await?;
    let took = since.elapsed();
    reply.error(503, "did not answer in time")?;
    ensure!(took < Duration::from_secs(15), "it took {took:?}");
    hand.execute("ROLLBACK").await?;
    world.server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
    ensure!(alpha.take_requests().len() == 2, "a request without money for it was sent");
    until(&hand, "SELECT COUNT(*) FROM reservations", 0).await?;
    ensure!(hand.number(RECORDS).await? == 2, "what was not sent is recorded");
    hand.close().await?;
    ensure_it_adds_up(&world.instance).await.map(drop)
}

//! Load during a database outage: writes fail, or reads fail as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, Key, Network, Relay, SecondHand, Server, Upstream, decisions};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};
use crate::stores::unavailable;

/// Concurrent clients per key.
const CALLERS: usize = 6;
/// The pause of a client between requests.
const PAUSE: Duration = Duration::from_millis(10);
/// The duration of the load before and after an outage.
const AROUND: Duration = Duration::from_millis(1_500);
/// The time in which the last requests of paused callers end.
const PAUSED: Duration = Duration::from_secs(1);
/// The time within which background work gives a paused key an allowance.
const ALLOTTED: Duration = Duration::from_secs(30);
/// The time within which a limited key must recover after an outage.
const RECOVERED: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_mins(1);

/// The kind of outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outage {
    /// Another process holds the write lock.
    NoWrites,
    /// The file is missing at its path, as after the loss of a volume.
    NoReads,
    /// The network to a PostgreSQL server ends every connection.
    Cut,
    /// The network to a PostgreSQL server, or the server, is silent.
    Frozen,
}

/// An outage in progress.
enum ActiveOutage<'a> {
    Locked(SecondHand),
    Moved { file: PathBuf, away: PathBuf },
    Unreachable(&'a Relay),
}

impl Outage {
    async fn begin(self, Site { gateway, relay, .. }: &Site) -> Result<ActiveOutage<'_>> {
        let instance = &gateway.instance;
        match self {
            Self::Cut | Self::Frozen => {
                let relay = relay.as_ref().context("the database is a file")?;
                relay.set(if self == Self::Cut { Network::Cut } else { Network::Frozen });
                Ok(ActiveOutage::Unreachable(relay))
            }
            Self::NoWrites => {
                let hand = SecondHand::of(instance).await?;
                hand.execute("BEGIN IMMEDIATE").await?;
                Ok(ActiveOutage::Locked(hand))
            }
            Self::NoReads => {
                let (file, away) = (instance.database(), instance.path().join("away.db"));
                std::fs::rename(&file, &away)?;
                Ok(ActiveOutage::Moved { file, away })
            }
        }
    }
}

impl ActiveOutage<'_> {
    async fn end(self) -> Result<()> {
        match self {
            Self::Unreachable(relay) => {
                relay.set(Network::Up);
                Ok(())
            }
            Self::Locked(hand) => {
                hand.execute("ROLLBACK").await?;
                hand.close().await
            }
            Self::Moved { file, away } => Ok(std::fs::rename(away, file)?),
        }
    }
}

/// The result of a call.
struct TimedReply {
    limited: bool,
    sent: Instant,
    took: Duration,
    status: u16,
    has_retry_after: bool,
    id: Option<String>,
}

/// Clients that send requests until they are stopped or the server is gone.
struct Load {
    stopped: Arc<AtomicBool>,
    /// True while the callers of the limited key pause.
    paused: Arc<AtomicBool>,
    callers: JoinSet<Result<Vec<TimedReply>>>,
}

impl Load {
    fn start(server: &Server, unlimited: &Key, limited: &Key) -> Self {
        let (stopped, paused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut callers = JoinSet::new();
        for number in 0..2 * CALLERS {
            let limited_caller = number % 2 == 1;
            let key = if limited_caller { limited } else { unlimited };
            let (call, address) = (decisions(&key.secret, body("acme/alone")), server.address());
            let (stopped, paused) = (Arc::clone(&stopped), Arc::clone(&paused));
            callers.spawn(async move {
                let mut answers = Vec::new();
                while !stopped.load(Ordering::Relaxed) {
                    if limited_caller && paused.load(Ordering::Relaxed) {
                        sleep(PAUSE).await;
                        continue;
                    }
                    let sent = Instant::now();
                    // A killed server sends no response.
                    let Ok(reply) = call.send(address).await else { break };
                    let id = reply.ok().ok().and_then(|answer| answer["id"].as_str().map(str::to_owned));
                    answers.push(TimedReply {
                        limited: limited_caller,
                        sent,
                        took: sent.elapsed(),
                        status: reply.status,
                        has_retry_after: reply.header("retry-after").parse::<u64>().is_ok(),
                        id,
                    });
                    sleep(PAUSE).await;
                }
                Ok(answers)
            });
        }
        Self { stopped, paused, callers }
    }

    /// Begins an outage once the limited key has an allowance: on a busy machine it would begin while the callers wait
    /// for one.
    async fn lose_database<'a>(&self, outage: Outage, site: &'a Site) -> Result<ActiveOutage<'a>> {
        sleep(AROUND).await;
        self.paused.store(true, Ordering::Relaxed);
        sleep(PAUSED).await;
        // Commands wait until running servers have folded their charges.
        site.gateway.instance.run(&["usage", "list", "--csv"]).await?;
        let hand = SecondHand::of(&site.gateway.instance).await?;
        let since = Instant::now();
        while hand.number("SELECT COALESCE(SUM(amount_pico), 0) FROM allowances").await? == 0 {
            ensure!(since.elapsed() < ALLOTTED, "the limited key has no allowance");
            sleep(PAUSE).await;
        }
        hand.close().await?;
        let away = outage.begin(site).await?;
        self.paused.store(false, Ordering::Relaxed);
        Ok(away)
    }

    async fn stop(mut self) -> Result<Vec<TimedReply>> {
        self.stopped.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        while let Some(answers) = self.callers.join_next().await {
            all.extend(answers??);
        }
        Ok(all)
    }
}

/// A gateway with its provider and a limited key.
struct Site {
    gateway: TestGateway,
    alpha: Upstream,
    limited: Key,
    /// The network to the database, if that is on a server.
    relay: Option<Relay>,
}

impl Site {
    /// Starts a gateway that bridges an outage for two minutes.
    async fn start(outage: Outage) -> Result<Self> {
        let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(2), CHEAP.to_owned())).await?;
        let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
        let toml = format!("[keys]\nmax_stale_ms = 120000\n[storage]\nbusy_timeout_ms = 1000\n{providers}");
        let (mut instance, relay) = match outage {
            Outage::Cut | Outage::Frozen => {
                let (instance, relay) = Instance::behind_relay(&toml).await?;
                (instance, Some(relay))
            }
            Outage::NoWrites | Outage::NoReads => (Instance::new(&toml)?, None),
        };
        instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
        let gateway = TestGateway::of(instance).await?;
        let limited = gateway.instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
        Ok(Self { gateway, alpha, limited, relay })
    }
}

/// Counts the statuses.
fn statuses<'a>(answers: impl Iterator<Item = &'a TimedReply>) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.status).or_default() += 1;
    }
    counts
}

/// Checks the responses during an outage, and prints the figures.
#[expect(clippy::print_stderr, reason = "the figures of a run are worth reading")]
fn ensure_served(outage: Outage, answers: &[TimedReply], (began, ended): (Instant, Instant)) -> Result<()> {
    let during: Vec<&TimedReply> =
        answers.iter().filter(|one| one.sent >= began && one.sent + one.took <= ended).collect();
    let of = |limited: bool| during.iter().copied().filter(move |answer| answer.limited == limited);
    let (unlimited, limited) = (statuses(of(false)), statuses(of(true)));
    let mut took: Vec<Duration> = of(false).map(|answer| answer.took).collect();
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
    eprintln!(
        "{outage:?} for {:?}: unlimited {unlimited:?} (p99 {p99:?}), limited {limited:?}",
        ended.saturating_duration_since(began)
    );
    let (all, answered) = (took.len(), unlimited.get(&200).copied().unwrap_or_default());
    ensure!(all > 50, "{all} calls are no load");
    ensure!(answered * 100 >= all * 99, "{answered} of {all} calls of the unlimited key were answered");
    ensure!(unlimited.keys().all(|status| matches!(status, 200 | 503)), "{unlimited:?}");
    ensure!(limited.keys().all(|status| matches!(status, 200 | 503)), "{limited:?}");
    ensure!(limited.contains_key(&200), "the limited key had an allowance: {limited:?}");
    ensure!(limited.contains_key(&503), "the limited key's allowance never ended: {limited:?}");
    ensure!(during.iter().all(|answer| answer.status == 200 || answer.has_retry_after), "a 503 without Retry-After");
    Ok(())
}

/// Sends requests of the limited key until its allowance has ended: on a busy machine the load alone takes long for it.
async fn use_up(server: &Server, limited: &Key) -> Result<()> {
    let since = Instant::now();
    while server.decide(&limited.secret, body("acme/alone")).await?.status == 200 {
        ensure!(since.elapsed() < Duration::from_mins(1), "the limited key's allowance did not end");
    }
    Ok(())
}

/// Repeats a request until it succeeds.
async fn ensure_recovers(server: &Server, key: &Key) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = server.decide(&key.secret, body("acme/alone")).await?;
        if reply.status == 200 {
            return Ok(());
        }
        ensure!(reply.status == 503, "{}: {}", reply.status, reply.text());
        ensure!(since.elapsed() < RECOVERED, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

/// Checks that every response is recorded once and that the audit finds no difference.
async fn ensure_recorded(gateway: &TestGateway, alpha: &Upstream, answers: &[TimedReply]) -> Result<()> {
    let answered: BTreeSet<&str> = answers.iter().filter_map(|answer| answer.id.as_deref()).collect();
    ensure!(!answered.is_empty());
    // Commands wait until running servers have folded their charges.
    let listed = gateway.instance.run(&["usage", "list", "--csv"]).await?;
    let table = String::from_utf8(listed.stdout)?;
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().context("a table without a head")?.split(',').collect();
    let at = columns.iter().position(|column| *column == "id").context("no ids")?;
    let ids: Vec<&str> = lines.filter_map(|line| line.split(',').nth(at)).collect();
    let recorded: BTreeSet<&str> = ids.iter().copied().collect();
    ensure!(recorded.len() == ids.len(), "{} records of {} requests", ids.len(), recorded.len());
    let lost = answered.difference(&recorded).count();
    ensure!(lost == 0, "{lost} of {} answers are not on record", answered.len());
    let sent = alpha.take_requests().len();
    ensure!(sent <= recorded.len(), "{sent} calls of the provider, {} records", recorded.len());
    ensure_audit_passes(&gateway.instance).await.map(drop)
}

async fn serves_during(outage: Outage, length: Duration) -> Result<()> {
    let site = Site::start(outage).await?;
    let Site { gateway, alpha, limited, .. } = &site;
    let load = Load::start(&gateway.server, &gateway.inference, limited);
    let away = load.lose_database(outage, &site).await?;
    let began = Instant::now();
    sleep(length / 2).await;
    use_up(&gateway.server, limited).await?;
    if outage != Outage::NoWrites {
        let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
        unavailable(&gateway.server.send(&stranger).await?)?;
    }
    let ready = gateway.server.send(&Call::get("/health/ready")).await?.ok()?;
    ensure!(ready["status"] == "degraded", "{ready}");
    sleep(length / 2).await;
    let ended = Instant::now();
    away.end().await?;
    ensure_recovers(&gateway.server, limited).await?;
    sleep(AROUND).await;
    let answers = load.stop().await?;
    ensure_served(outage, &answers, (began, ended))?;
    ensure_recorded(gateway, alpha, &answers).await?;
    gateway.server.ensure_healthy().await?;
    site.gateway.server.stop().await
}

/// Kills the server during the outage; the next start finds the database as it was.
async fn crashes_during(outage: Outage, length: Duration) -> Result<()> {
    let site = Site::start(outage).await?;
    let load = Load::start(&site.gateway.server, &site.gateway.inference, &site.limited);
    let away = load.lose_database(outage, &site).await?;
    let began = Instant::now();
    use_up(&site.gateway.server, &site.limited).await?;
    sleep(length / 2).await;
    let ended = Instant::now();
    site.gateway.server.signal("KILL").await?;
    let answers = load.stop().await?;
    away.end().await?;
    ensure_served(outage, &answers, (began, ended))?;
    let Site { mut gateway, alpha, limited, relay } = site;
    gateway.server = gateway.instance.serve().await?;
    ensure_recovers(&gateway.server, &limited).await?;
    ensure_recorded(&gateway, &alpha, &answers).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let dead =
        "SELECT COUNT(*) FROM allowances WHERE process_id IN (SELECT id FROM budget_processes WHERE state <> 'live')";
    ensure!(hand.number(dead).await? == 0, "a dead process has allowances");
    hand.close().await?;
    drop(relay);
    gateway.server.stop().await
}

#[tokio::test]
async fn requests_are_answered_while_the_network_to_the_database_is_cut() -> Result<()> {
    serves_during(Outage::Cut, SHORT).await
}

#[tokio::test]
async fn requests_are_answered_while_the_server_of_the_database_is_silent() -> Result<()> {
    serves_during(Outage::Frozen, SHORT).await
}

#[tokio::test]
async fn crash_without_network_to_the_database_loses_no_answer() -> Result<()> {
    crashes_during(Outage::Cut, SHORT).await
}

#[tokio::test]
async fn requests_are_answered_while_the_database_takes_no_writes() -> Result<()> {
    serves_during(Outage::NoWrites, SHORT).await
}

#[tokio::test]
async fn requests_are_answered_while_the_database_cannot_be_read() -> Result<()> {
    serves_during(Outage::NoReads, SHORT).await
}

#[tokio::test]
async fn crash_without_writes_loses_no_answer() -> Result<()> {
    crashes_during(Outage::NoWrites, SHORT).await
}

#[tokio::test]
async fn crash_without_reads_loses_no_answer() -> Result<()> {
    crashes_during(Outage::NoReads, SHORT).await
}

#[tokio::test]
#[ignore = "takes eight minutes"]
async fn requests_are_answered_through_a_minute_without_database() -> Result<()> {
    for outage in [Outage::NoWrites, Outage::NoReads, Outage::Cut, Outage::Frozen] {
        serves_during(outage, LONG).await?;
        crashes_during(outage, LONG).await?;
    }
    Ok(())
}

#[tokio::test]
async fn known_keys_are_unavailable_once_max_stale_is_over() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(CHEAP)).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let gateway = TestGateway::start(&format!("[keys]\nmax_stale_ms = 3000\n{providers}")).await?;
    gateway.decide(body("acme/alone")).await?;
    let limited = gateway.inference.clone();
    let site = Site { gateway, alpha, limited, relay: None };
    let Site { gateway, alpha, .. } = &site;
    let away = Outage::NoReads.begin(&site).await?;
    let (began, mut last) = (Instant::now(), Duration::ZERO);
    loop {
        let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
        if reply.status != 200 {
            unavailable(&reply)?;
            break;
        }
        last = began.elapsed();
        ensure!(last < Duration::from_secs(10), "served for {last:?}");
        sleep(Duration::from_millis(20)).await;
    }
    ensure!(last > Duration::from_secs(2), "served for {last:?} alone");
    ensure!(gateway.server.send(&Call::get("/health/ready")).await?.status == 503);
    alpha.take_requests();
    unavailable(&gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?)?;
    ensure!(alpha.take_requests().is_empty(), "a provider was called");
    away.end().await?;
    ensure_recovers(&gateway.server, &gateway.inference).await?;
    ensure_audit_passes(&gateway.instance).await?;
    site.gateway.server.stop().await
}

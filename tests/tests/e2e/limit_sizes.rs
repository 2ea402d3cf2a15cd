//! Limits of one to ten thousand requests, with two processes and 64 clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Instance, Key, SecondHand, Server, decisions};

use crate::gateway::body;
use crate::limits::{COST_PICO, ensure_audit_passes, gateway};
use crate::stores::unavailable;

const CALLERS: usize = 64;
/// The number of consecutive rejections after which a client stops.
const MAX_REJECTIONS: usize = 3;
/// The time that a request may wait for other holds, doubled for busy machines.
const SLOW: Duration = Duration::from_secs(10);

/// The result of a call.
struct TimedReply {
    sent: Instant,
    done: Instant,
    status: u16,
}

/// Returns the maximum cost of a request in picodollars, from a rejection.
async fn bound_of_request(server: &Server, instance: &Instance) -> Result<i64> {
    let key = key_with_limit(instance, 1).await?;
    let refused = server.decide(&key.secret, body("acme/alone")).await?.envelope(402)?;
    let message = refused["error"]["message"].as_str().context("no message")?.to_owned();
    let (_, amount) = message.split_once("may come to ").with_context(|| message.clone())?;
    let usd = amount.split(' ').next().context("no amount")?;
    let (whole, decimals) = usd.split_once('.').unwrap_or((usd, ""));
    Ok(format!("{whole}{decimals:0<12}").parse()?)
}

async fn key_with_limit(instance: &Instance, pico: i64) -> Result<Key> {
    let usd = format!("{}.{:012}", pico / 1_000_000_000_000, pico % 1_000_000_000_000);
    instance.key(&["--name", "limited", "--limit-usd", &usd]).await
}

/// Runs clients until each was rejected several times, or until they are stopped.
async fn run_clients(servers: &[&Server], key: &Key, stopped: &Arc<AtomicBool>) -> Result<Vec<TimedReply>> {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let address = servers[number % servers.len()].address();
        let (call, stopped) = (decisions(&key.secret, body("acme/alone")), Arc::clone(stopped));
        callers.spawn(async move {
            let (mut replies, mut refused) = (Vec::new(), 0);
            while refused < MAX_REJECTIONS && !stopped.load(Ordering::Relaxed) {
                let sent = Instant::now();
                let reply = call.send(address).await?;
                replies.push(TimedReply { sent, done: Instant::now(), status: reply.status });
                match reply.status {
                    200 => refused = 0,
                    402 => refused += 1,
                    _ => unavailable(&reply)?,
                }
            }
            anyhow::Ok(replies)
        });
    }
    let mut all = Vec::new();
    while let Some(replies) = callers.join_next().await {
        all.extend(replies??);
    }
    Ok(all)
}

/// Runs clients while checking the database: spent and allotted never exceed the limit.
async fn run_watched_clients(
    servers: &[&Server],
    instance: &Instance,
    (key, limit): (&Key, i64),
    most: Duration,
) -> Result<Vec<TimedReply>> {
    let hand = SecondHand::of(instance).await?;
    let used = format!(
        "SELECT COALESCE(SUM(spent_pico + allotted_pico), 0) FROM spend_counters \
         WHERE scope = 'key' AND subject = '{}' AND \"interval\" = \'total\'",
        key.id
    );
    let (stopped, began, mut samples) = (Arc::new(AtomicBool::new(false)), Instant::now(), 0);
    let clients = run_clients(servers, key, &stopped);
    tokio::pin!(clients);
    let replies = loop {
        tokio::select! {
            replies = &mut clients => break replies?,
            () = sleep(Duration::from_millis(3)) => {
                let used = hand.number(&used).await?;
                ensure!(used <= limit, "{used} picodollars are spent and allotted of {limit}");
                samples += 1;
                stopped.store(began.elapsed() > most, Ordering::Relaxed);
            }
        }
    };
    ensure!(samples > 2, "the amounts were looked at {samples} times");
    hand.close().await?;
    Ok(replies)
}

/// Checks that no request was rejected while the limit had room for it beside all other requests.
fn ensure_no_needless_refusal(replies: &[TimedReply], limit: i64, bound: i64) -> Result<()> {
    let mut answered: Vec<&TimedReply> = replies.iter().filter(|one| one.status != 402).collect();
    answered.sort_by_key(|one| one.done);
    for refused in replies.iter().filter(|one| one.status == 402) {
        let took = refused.done - refused.sent;
        ensure!(took < SLOW, "refused after {took:?}");
        let over = answered.partition_point(|one| one.done < refused.sent);
        let paid = answered[..over].iter().filter(|one| one.status == 200).count();
        let open = answered[over..].iter().filter(|one| one.sent <= refused.done).count();
        let most = i64::try_from(paid)? * COST_PICO + i64::try_from(open)? * bound;
        ensure!(
            most + bound > limit,
            "refused after {took:?} although {paid} answers and {open} open requests come to {most} of {limit}"
        );
    }
    Ok(())
}

fn count(replies: &[TimedReply], status: u16) -> usize {
    replies.iter().filter(|one| one.status == status).count()
}

/// Uses up limits of these sizes.
#[expect(clippy::print_stderr, reason = "the figures of a run are worth reading")]
async fn use_up(widths: &[i64]) -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(5), "").await?;
    let beside = gateway.instance.serve_beside().await?;
    let servers = [&gateway.server, &beside];
    let bound = bound_of_request(&gateway.server, &gateway.instance).await?;
    for width in widths {
        let limit = bound * width;
        let began = Instant::now();
        let key = key_with_limit(&gateway.instance, limit).await?;
        let replies = run_watched_clients(&servers, &gateway.instance, (&key, limit), Duration::from_mins(5)).await?;
        let (answered, refused, away) = (count(&replies, 200), count(&replies, 402), count(&replies, 503));
        eprintln!("{width} wide: {answered} answered, {refused} times 402, {away} times 503 in {:?}", began.elapsed());
        ensure_no_needless_refusal(&replies, limit, bound)?;
        // Each answer leaves room for the next until a bound does not fit.
        let all = usize::try_from((limit - bound) / COST_PICO + 1)?;
        ensure!(answered == all, "{answered} answers of {all} that fit into {width} bounds");
        for server in servers {
            server.decide(&key.secret, body("acme/alone")).await?.envelope(402)?;
        }
    }
    ensure_audit_passes(&gateway.instance).await?;
    beside.stop().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn limits_of_one_to_ten_thousand_requests_are_used_up_and_never_exceeded() -> Result<()> {
    // An answer costs about a third of its bound.
    use_up(&[1, 2, 10, 100, 3_700]).await
}

#[tokio::test]
async fn limit_with_room_rejects_no_request() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(5), "").await?;
    let beside = gateway.instance.serve_beside().await?;
    let bound = bound_of_request(&gateway.server, &gateway.instance).await?;
    for width in [1_000, 10_000] {
        let servers = [&gateway.server, &beside];
        let key = key_with_limit(&gateway.instance, bound * width).await?;
        let replies =
            run_watched_clients(&servers, &gateway.instance, (&key, bound * width), Duration::from_secs(2)).await?;
        ensure!(count(&replies, 200) > 100, "{} answers are no load", count(&replies, 200));
        ensure_no_needless_refusal(&replies, bound * width, bound)?;
        ensure!(count(&replies, 402) == 0, "{} of {} were refused", count(&replies, 402), replies.len());
    }
    ensure_audit_passes(&gateway.instance).await?;
    beside.stop().await?;
    gateway.server.stop().await
}

//! Limits that hold: over several processes on one database, to the last picodollar, and without refusing anybody who
//! fits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Instance, Key, Reply, SecondHand, Server, Upstream, decisions};

use crate::stores::unavailable;
use crate::world::{World, body, providers_toml};

/// What each answer costs: 100 tokens at 0.000000042 USD.
pub const COST_PICO: i64 = 4_200_000;

/// An answer that is billed far below its bound.
pub const CHEAP: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":100}}"#;

/// A gateway whose `acme/alone` answers after `latency`.
pub async fn world(latency: Duration, more: &str) -> Result<(World, Upstream)> {
    let alpha = Upstream::start(Behaviour::Late(latency, CHEAP.to_owned())).await?;
    let toml = format!("{more}\n{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000));
    Ok((World::start(&toml).await?, alpha))
}

/// Spent and allotted of an account for ever, read at one moment.
async fn books(hand: &SecondHand, scope: &str, subject: &str) -> Result<i64> {
    let sum = format!(
        "SELECT COALESCE(SUM(spent_pico + allotted_pico), 0) FROM spend_counters \
         WHERE scope = '{scope}' AND subject = '{subject}' AND interval = 'total'"
    );
    hand.number(&sum).await
}

async fn spent(hand: &SecondHand, scope: &str, subject: &str) -> Result<i64> {
    let spent = format!(
        "SELECT COALESCE(SUM(spent_pico), 0) FROM spend_counters \
         WHERE scope = '{scope}' AND subject = '{subject}' AND interval = 'total'"
    );
    hand.number(&spent).await
}

/// The books are in order: every counter is what the ledger comes to.
pub async fn ensure_it_adds_up(instance: &Instance) -> Result<Value> {
    instance.json(&["doctor", "--audit"]).await
}

/// `callers` ask by turns at the servers until each has been refused `patience` times in a row; returns how many
/// answers there were.
async fn rush(servers: &[&Server], key: &Key, callers: usize, patience: usize) -> Result<i64> {
    let mut calls = JoinSet::new();
    for number in 0..callers {
        let address = servers[number % servers.len()].address();
        let call = decisions(&key.secret, body("acme/alone"));
        calls.spawn(async move {
            let (mut answered, mut refused) = (0_i64, 0);
            while refused < patience {
                let reply = call.send(address).await?;
                if reply.status == 200 {
                    (answered, refused) = (answered + 1, 0);
                } else if reply.status == 503 {
                    // On a busy machine a process may be too slow to say what it has free.
                    unavailable(&reply)?;
                } else {
                    reply.envelope(402)?;
                    refused += 1;
                }
            }
            anyhow::Ok(answered)
        });
    }
    let mut all = 0;
    while let Some(answered) = calls.join_next().await {
        all += answered??;
    }
    Ok(all)
}

#[tokio::test]
async fn sixty_four_callers_at_three_processes_never_spend_more_than_the_limit_and_leave_no_room() -> Result<()> {
    let (world, _alpha) = world(Duration::from_millis(10), "").await?;
    let (second, third) = (world.instance.serve_beside().await?, world.instance.serve_beside().await?);
    let key = world.instance.key(&["--name", "limited", "--limit-usd", "0.0005"]).await?;
    let limit: i64 = 500_000_000;
    let hand = SecondHand::open(&world.instance.database()).await?;
    let servers = [&world.server, &second, &third];
    let rushing = rush(&servers, &key, 64, 3);
    tokio::pin!(rushing);
    let mut highest = 0;
    let answered = loop {
        tokio::select! {
            answered = &mut rushing => break answered?,
            () = tokio::time::sleep(Duration::from_millis(3)) => {
                highest = highest.max(books(&hand, "key", &key.id).await?);
            }
        }
    };
    ensure!(highest <= limit, "{highest} picodollars were spent and reserved of {limit}");
    ensure!(highest > limit / 2, "the limit was hardly used: {highest}");
    let spent = spent(&hand, "key", &key.id).await?;
    ensure!(spent == answered * COST_PICO, "{answered} answers cost {spent}");
    ensure!(books(&hand, "key", &key.id).await? == spent, "something is still reserved");
    // Whoever asks alone now is refused only because there really is no room for its bound.
    let refused = world.server.decide(&key.secret, body("acme/alone")).await?.envelope(402)?;
    let metadata = &refused["error"]["metadata"];
    ensure!(metadata["scope"] == "key", "{refused}");
    ensure!(metadata["reserved_usd"].as_f64() == Some(0.0), "{refused}");
    let bound = i64::try_from(body("acme/alone").len() + 512)? * 42_000;
    ensure!(limit - spent < bound, "{} picodollars were left over", limit - spent);
    ensure_it_adds_up(&world.instance).await?;
    hand.close().await
}

#[tokio::test]
async fn credit_holds_over_processes_and_more_of_it_lets_callers_go_on() -> Result<()> {
    let (world, _alpha) = world(Duration::from_millis(5), "").await?;
    let beside = world.instance.serve_beside().await?;
    let workspace = world.instance.default_workspace().await?;
    world.instance.json(&["workspace", "credit", "--add-usd", "0.0003"]).await?;
    // Known everywhere within a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let hand = SecondHand::open(&world.instance.database()).await?;
    let answered = rush(&[&world.server, &beside], &world.inference, 32, 2).await?;
    let used = spent(&hand, "workspace", &workspace).await?;
    ensure!(used == answered * COST_PICO && used <= 300_000_000, "{answered} answers cost {used}");
    let refused = world.server.decide(&world.inference.secret, body("acme/alone")).await?.envelope(402)?;
    ensure!(refused["error"]["metadata"]["scope"] == "workspace", "{refused}");
    ensure!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("credit")), "{refused}");
    world.instance.json(&["workspace", "credit", "--add-usd", "0.0001"]).await?;
    // In force within a second; a refusal is repeated for a moment.
    let began = Instant::now();
    while let Err(error) = world.server.decide(&world.inference.secret, body("acme/alone")).await?.ok() {
        ensure!(began.elapsed() < Duration::from_secs(1), "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ensure_it_adds_up(&world.instance).await?;
    hand.close().await
}

/// Asks until it is refused, alone, and returns the refusal's metadata.
async fn refusal(server: &Server, key: &Key) -> Result<Value> {
    for _ in 0..200 {
        let reply: Reply = server.decide(&key.secret, body("acme/alone")).await?;
        if reply.status != 200 {
            return Ok(reply.envelope(402)?["error"]["metadata"].clone());
        }
    }
    anyhow::bail!("it is never refused")
}

#[tokio::test]
async fn every_limit_refuses_by_its_own_name() -> Result<()> {
    let (world, _alpha) = world(Duration::ZERO, "").await?;
    let instance = &world.instance;
    let daily = instance.key(&["--name", "daily", "--limit-usd", "0.00005", "--limit-reset", "daily"]).await?;
    let metadata = refusal(&world.server, &daily).await?;
    ensure!(metadata["scope"] == "key" && metadata["limit_usd"].as_f64() == Some(0.00005), "{metadata}");
    ensure!(metadata["resets_at"].as_str().is_some_and(|at| at.contains("T00:00:00")), "{metadata}");

    let guardrail = instance.guardrail(&[]).await?;
    let patch = r#"{"limit_usd":0.00004,"reset_interval":"monthly"}"#;
    let at = format!("/api/v1/guardrails/{guardrail}");
    let call = tollgate_tests::Call::new(http::Method::PATCH, at).key(&world.management.secret).json(patch);
    world.server.send(&call).await?.ok()?;
    let (one, two) = (instance.inference_key().await?, instance.inference_key().await?);
    instance.json(&["guardrail", "assign", &guardrail, &one.hash, &two.hash]).await?;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    // Counted for each key on its own.
    for key in [&one, &two] {
        let metadata = refusal(&world.server, key).await?;
        ensure!(metadata["scope"] == "guardrail" && metadata["guardrail_id"] == guardrail.as_str(), "{metadata}");
        ensure!(metadata["spent_usd"].as_f64() > Some(0.0), "{metadata}");
    }
    instance.json(&["workspace", "budget", "--daily", "0.0002"]).await?;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let metadata = refusal(&world.server, &world.inference).await?;
    ensure!(metadata["scope"] == "workspace" && metadata["limit_usd"].as_f64() == Some(0.0002), "{metadata}");
    ensure_it_adds_up(instance).await?;
    Ok(())
}

#[tokio::test]
async fn who_is_kept_out_by_others_reservations_alone_waits_for_them() -> Result<()> {
    let (world, _alpha) = world(Duration::from_millis(120), "").await?;
    // Room for one bound and a little more: the second fits once the first has settled far below its bound.
    let bound = i64::try_from(body("acme/alone").len() + 512)? * 42_000;
    let limit = format!("0.{:012}", bound + 2 * COST_PICO);
    let key = world.instance.key(&["--name", "narrow", "--limit-usd", &limit]).await?;
    let call = decisions(&key.secret, body("acme/alone"));
    let (one, two) = tokio::join!(call.send(world.server.address()), call.send(world.server.address()));
    one?.ok()?;
    two?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_caller_that_leaves_and_a_provider_that_fails_are_charged_and_nothing_stays_reserved() -> Result<()> {
    let (world, alpha) = world(Duration::from_millis(400), "").await?;
    let key = world.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let call = decisions(&key.secret, body("acme/alone"));
    let leaving = tokio::time::timeout(Duration::from_millis(150), call.send(world.server.address())).await;
    ensure!(leaving.is_err(), "it was answered too soon");
    alpha.behave(Behaviour::Close);
    world.server.send(&call).await?.envelope(502)?;
    alpha.behave(Behaviour::status(500));
    world.server.send(&call).await?.envelope(502)?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    for _ in 0..100 {
        if hand.number("SELECT COUNT(*) FROM usage_records").await? == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let listed = world.instance.json(&["usage", "list", "--key", &key.hash]).await?;
    let outcomes: Vec<&str> = crate::costs::rows(&listed)?.iter().filter_map(|row| row["outcome"].as_str()).collect();
    ensure!(outcomes.len() == 3 && outcomes.contains(&"cancelled"), "{listed}");
    ensure!(spent(&hand, "key", &key.id).await? > 0, "what was sent is charged");
    ensure_it_adds_up(&world.instance).await?;
    world.server.stop().await?;
    let allotted = hand.number("SELECT COALESCE(SUM(allotted_pico), 0) FROM spend_counters").await?;
    ensure!(allotted == 0, "{allotted} picodollars stay reserved");
    hand.close().await
}

#[tokio::test]
async fn books_that_were_cooked_are_found() -> Result<()> {
    let (world, _alpha) = world(Duration::ZERO, "").await?;
    world.decide(body("acme/alone")).await?;
    ensure_it_adds_up(&world.instance).await?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    hand.execute("UPDATE spend_counters SET spent_pico = spent_pico - 1 WHERE interval = 'daily' AND scope = 'key'")
        .await?;
    let output = world.instance.run(&["doctor", "--audit"]).await?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(!output.status.success() && said.contains("daily"), "{said}");
    hand.execute("UPDATE spend_counters SET spent_pico = spent_pico + 1 WHERE interval = 'daily' AND scope = 'key'")
        .await?;
    hand.execute("UPDATE usage_records SET cost_pico = cost_pico + 1").await?;
    let output = world.instance.run(&["doctor", "--audit"]).await?;
    ensure!(!output.status.success(), "a record with another cost than its tokens come to");
    hand.close().await.context("the second hand does not close")
}

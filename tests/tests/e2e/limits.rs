//! Limits that hold exactly: with several processes on one database, to the last picodollar, and without rejecting
//! requests that fit.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Instance, Key, Reply, SecondHand, Server, Upstream, decisions};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::stores::unavailable;

/// The cost of each answer: 100 tokens at 0.000000042 USD.
pub const COST_PICO: i64 = 4_200_000;

/// An answer that costs far less than its bound.
pub const CHEAP: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":100}}"#;

/// Starts a gateway whose `acme/alone` answers after `latency`.
pub async fn gateway(latency: Duration, more: &str) -> Result<(TestGateway, Upstream)> {
    let alpha = Upstream::start(Behaviour::Late(latency, CHEAP.to_owned())).await?;
    let toml = format!("{more}\n{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000));
    Ok((TestGateway::start(&toml).await?, alpha))
}

/// Returns the sum of an account's spent and allotted amounts, from one read.
pub async fn counted(hand: &SecondHand, scope: &str, subject: &str) -> Result<i64> {
    let sum = format!(
        "SELECT COALESCE(SUM(spent_pico + allotted_pico), 0) FROM spend_counters \
         WHERE scope = '{scope}' AND subject = '{subject}' AND \"interval\" = \'total\'"
    );
    hand.number(&sum).await
}

pub async fn spent(hand: &SecondHand, scope: &str, subject: &str) -> Result<i64> {
    let spent = format!(
        "SELECT COALESCE(SUM(spent_pico), 0) FROM spend_counters \
         WHERE scope = '{scope}' AND subject = '{subject}' AND \"interval\" = \'total\'"
    );
    hand.number(&spent).await
}

/// Checks that the audit of the ledger finds no difference.
pub async fn ensure_audit_passes(instance: &Instance) -> Result<Value> {
    instance.json(&["doctor", "--audit"]).await
}

/// Lets `callers` clients send requests to the servers until each was rejected `max_rejections` times in a row;
/// returns the number of answers.
pub async fn send_until_rejected(
    servers: &[&Server],
    (key, text): (&Key, String),
    callers: usize,
    max_rejections: usize,
) -> Result<i64> {
    let mut calls = JoinSet::new();
    for number in 0..callers {
        let address = servers[number % servers.len()].address();
        let call = decisions(&key.secret, &text);
        calls.spawn(async move {
            let (mut answered, mut refused) = (0_i64, 0);
            while refused < max_rejections {
                let reply = call.send(address).await?;
                if reply.status == 200 {
                    (answered, refused) = (answered + 1, 0);
                } else if reply.status == 503 {
                    // On a busy machine a process may report its free allowance too late.
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
async fn concurrent_processes_never_exceed_limit_and_use_it_up() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(10), "").await?;
    let (second, third) = (gateway.instance.serve_beside().await?, gateway.instance.serve_beside().await?);
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.0005"]).await?;
    let limit: i64 = 500_000_000;
    let hand = SecondHand::of(&gateway.instance).await?;
    let servers = [&gateway.server, &second, &third];
    let sending = send_until_rejected(&servers, (&key, body("acme/alone")), 64, 3);
    tokio::pin!(sending);
    let mut highest = 0;
    let answered = loop {
        tokio::select! {
            answered = &mut sending => break answered?,
            () = tokio::time::sleep(Duration::from_millis(3)) => {
                highest = highest.max(counted(&hand, "key", &key.id).await?);
            }
        }
    };
    ensure!(highest <= limit, "{highest} picodollars were spent and reserved of {limit}");
    ensure!(highest > limit / 2, "the limit was hardly used: {highest}");
    let spent = spent(&hand, "key", &key.id).await?;
    ensure!(spent == answered * COST_PICO, "{answered} answers cost {spent}");
    ensure!(counted(&hand, "key", &key.id).await? == spent, "something is still reserved");
    // A single request is rejected now only because its bound exceeds the room.
    let refused = gateway.server.decide(&key.secret, body("acme/alone")).await?.envelope(402)?;
    let metadata = &refused["error"]["metadata"];
    ensure!(metadata["scope"] == "key", "{refused}");
    ensure!(metadata["reserved_usd"].as_f64() == Some(0.0), "{refused}");
    let bound = i64::try_from(body("acme/alone").len() + 512)? * 42_000;
    ensure!(limit - spent < bound, "{} picodollars were left over", limit - spent);
    ensure_audit_passes(&gateway.instance).await?;
    hand.close().await
}

#[tokio::test]
async fn credit_holds_across_processes_and_can_be_increased() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(5), "").await?;
    let beside = gateway.instance.serve_beside().await?;
    let workspace = gateway.instance.default_workspace().await?;
    gateway.instance.json(&["workspace", "credit", "--add-usd", "0.0003"]).await?;
    // All processes apply the change within a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let hand = SecondHand::of(&gateway.instance).await?;
    let asked = (&gateway.inference, body("acme/alone"));
    let answered = send_until_rejected(&[&gateway.server, &beside], asked, 32, 2).await?;
    let used = spent(&hand, "workspace", &workspace).await?;
    ensure!(used == answered * COST_PICO && used <= 300_000_000, "{answered} answers cost {used}");
    let refused = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(402)?;
    ensure!(refused["error"]["metadata"]["scope"] == "workspace", "{refused}");
    ensure!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("credit")), "{refused}");
    gateway.instance.json(&["workspace", "credit", "--add-usd", "0.0001"]).await?;
    // In force within a second, so rejections are repeated briefly.
    let began = Instant::now();
    while let Err(error) = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.ok() {
        ensure!(began.elapsed() < Duration::from_secs(1), "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ensure_audit_passes(&gateway.instance).await?;
    hand.close().await
}

/// Sends requests until one is rejected; returns the rejection's metadata.
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
async fn rejection_names_exceeded_limit() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    let instance = &gateway.instance;
    let daily = instance.key(&["--name", "daily", "--limit-usd", "0.00005", "--limit-reset", "daily"]).await?;
    let metadata = refusal(&gateway.server, &daily).await?;
    ensure!(metadata["scope"] == "key" && metadata["limit_usd"].as_f64() == Some(0.00005), "{metadata}");
    ensure!(metadata["resets_at"].as_str().is_some_and(|at| at.contains("T00:00:00")), "{metadata}");

    let guardrail = instance.guardrail(&[]).await?;
    let patch = r#"{"limit_usd":0.00004,"reset_interval":"monthly"}"#;
    let at = format!("/api/v1/guardrails/{guardrail}");
    let call = tollgate_tests::Call::new(http::Method::PATCH, at).key(&gateway.management.secret).json(patch);
    gateway.server.send(&call).await?.ok()?;
    let (one, two) = (instance.inference_key().await?, instance.inference_key().await?);
    instance.json(&["guardrail", "assign", &guardrail, &one.hash, &two.hash]).await?;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    // Each key has its own count.
    for key in [&one, &two] {
        let metadata = refusal(&gateway.server, key).await?;
        ensure!(metadata["scope"] == "guardrail" && metadata["guardrail_id"] == guardrail.as_str(), "{metadata}");
        ensure!(metadata["spent_usd"].as_f64() > Some(0.0), "{metadata}");
    }
    instance.json(&["workspace", "budget", "--daily", "0.0002"]).await?;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let metadata = refusal(&gateway.server, &gateway.inference).await?;
    ensure!(metadata["scope"] == "workspace" && metadata["limit_usd"].as_f64() == Some(0.0002), "{metadata}");
    ensure_audit_passes(instance).await?;
    Ok(())
}

#[tokio::test]
async fn request_waits_when_only_other_holds_exceed_limit() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::from_millis(120), "").await?;
    // Room for slightly more than one bound: the second request fits once the first has settled far below its bound.
    let bound = i64::try_from(body("acme/alone").len() + 512)? * 42_000;
    let limit = format!("0.{:012}", bound + 2 * COST_PICO);
    let key = gateway.instance.key(&["--name", "narrow", "--limit-usd", &limit]).await?;
    let call = decisions(&key.secret, body("acme/alone"));
    let (one, two) = tokio::join!(call.send(gateway.server.address()), call.send(gateway.server.address()));
    one?.ok()?;
    two?.ok()?;
    Ok(())
}

#[tokio::test]
async fn disconnects_and_provider_failures_are_charged_and_holds_are_released() -> Result<()> {
    let (gateway, alpha) = gateway(Duration::from_millis(400), "").await?;
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "1"]).await?;
    let call = decisions(&key.secret, body("acme/alone"));
    let leaving = tokio::time::timeout(Duration::from_millis(150), call.send(gateway.server.address())).await;
    ensure!(leaving.is_err(), "it was answered too soon");
    alpha.behave(Behaviour::Close);
    gateway.server.send(&call).await?.envelope(502)?;
    alpha.behave(Behaviour::status(500));
    gateway.server.send(&call).await?.envelope(502)?;
    let hand = SecondHand::of(&gateway.instance).await?;
    for _ in 0..100 {
        if hand.number("SELECT COUNT(*) FROM usage_records").await? == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let listed = gateway.instance.json(&["usage", "list", "--key", &key.hash]).await?;
    let outcomes: Vec<&str> = crate::costs::rows(&listed)?.iter().filter_map(|row| row["outcome"].as_str()).collect();
    ensure!(outcomes.len() == 3 && outcomes.contains(&"cancelled"), "{listed}");
    ensure!(spent(&hand, "key", &key.id).await? > 0, "what was sent is charged");
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.stop().await?;
    let allotted = hand.number("SELECT COALESCE(SUM(allotted_pico), 0) FROM spend_counters").await?;
    ensure!(allotted == 0, "{allotted} picodollars stay reserved");
    hand.close().await
}

#[tokio::test]
async fn audit_detects_manipulated_ledger() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    gateway.decide(body("acme/alone")).await?;
    ensure_audit_passes(&gateway.instance).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("UPDATE spend_counters SET spent_pico = spent_pico - 1 WHERE interval = 'daily' AND scope = 'key'")
        .await?;
    let output = gateway.instance.run(&["doctor", "--audit"]).await?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(!output.status.success() && said.contains("daily"), "{said}");
    hand.execute("UPDATE spend_counters SET spent_pico = spent_pico + 1 WHERE interval = 'daily' AND scope = 'key'")
        .await?;
    hand.execute("UPDATE usage_records SET cost_pico = cost_pico + 1").await?;
    let output = gateway.instance.run(&["doctor", "--audit"]).await?;
    ensure!(!output.status.success(), "a record with another cost than its tokens come to");
    hand.close().await.context("the second hand does not close")
}

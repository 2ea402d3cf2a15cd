//! A large request of one key beside small requests of others, on one serving thread.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Call, Upstream, decisions};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body, providers_toml};

/// Hexadecimal digits are the slowest input of the filters.
fn large_body() -> String {
    let digits = (0u64..8_192).map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let state = format!("from eve@example.com {}", digits.collect::<String>());
    format!(r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"{state}"}}"#)
}

#[tokio::test]
async fn small_requests_are_served_while_large_one_is_filtered() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let toml = format!(
        "[server]\nworkers = 1\n[sandbox]\nenabled = true\n{}",
        providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000)
    );
    let gateway = TestGateway::start(&toml).await?;
    let slugs = ["email", "phone", "ssn", "credit-card", "ip-address", "secrets", "regex-prompt-injection"];
    let builtins = slugs.map(|slug| json!({"slug": slug, "action": "redact"}));
    let record = json!({"name": "all", "content_filter_builtins": builtins}).to_string();
    let create = Call::post("/api/v1/guardrails").key(&gateway.management.secret).json(record);
    let reply = gateway.server.send(&create).await?;
    ensure!(reply.status == 201, "{}", reply.text());
    let created = reply.json()?;
    let guardrail = created["data"]["id"].as_str().context("no id")?.to_owned();
    let other = gateway.instance.inference_key().await?;
    gateway.instance.json(&["guardrail", "assign", &guardrail, &gateway.inference.hash]).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let (call, address) = (decisions(&gateway.inference.secret, large_body()), gateway.server.address());
    let mut large = JoinSet::new();
    large.spawn(async move {
        let began = Instant::now();
        let reply = call.send(address).await?;
        anyhow::Ok((reply, began.elapsed()))
    });
    let (mut longest, mut served) = (Duration::ZERO, 0);
    let (reply, took) = loop {
        if let Some(ended) = large.try_join_next() {
            break ended??;
        }
        for call in [Call::get("/health/live"), decisions(&other.secret, body("sandbox/decider"))] {
            let began = Instant::now();
            let reply = gateway.server.send(&call).await?;
            ensure!(reply.status == 200, "{}", reply.text());
            longest = longest.max(began.elapsed());
            served += 1;
        }
    };
    reply.ok()?;
    let sent = alpha.take_request()?.text();
    ensure!(sent.contains("from [EMAIL] ") && !sent.contains("eve@"), "it was not filtered");
    eprintln!("{served} others were served within {took:?}, none in more than {longest:?}");
    // On a thread shared with the filters, one of them would wait for nearly all of it.
    ensure!(served > 4 && longest < took / 2, "{served} others within {took:?}; one waited for {longest:?}");
    gateway.server.stop().await
}

/// Checks bodies above 512 KiB, which other threads parse.
#[tokio::test]
async fn body_parsed_by_other_thread_is_handled_like_any() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let state = "It smokes. ".repeat(100_000);
    let with = |questions: &str| format!(r#"{{"model":"sandbox/decider","questions":{questions},"state":"{state}"}}"#);
    gateway.decide(with(QUESTIONS)).await?;
    let (secret, bad) = (&gateway.inference.secret, r#"{"tone":{"type":"mood"}}"#);
    let refused = gateway.server.decide(secret, with(bad)).await?.envelope(400)?;
    let small = format!(r#"{{"model":"sandbox/decider","questions":{bad},"state":"s"}}"#);
    let as_small = gateway.server.decide(secret, small).await?.envelope(400)?;
    ensure!(refused["error"]["message"] == as_small["error"]["message"], "{refused} and {as_small}");
    let cut = with(QUESTIONS).trim_end_matches('}').to_owned();
    gateway.server.decide(secret, cut).await?.envelope(400)?;
    gateway.server.stop().await
}

//! Costs: exact, and recorded before the response is sent.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, free_address};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

/// Returns the output of `usage show`, also as text, to avoid a conversion to floats.
async fn usage(instance: &Instance, id: &str) -> Result<(String, Value)> {
    let output = instance.run(&["usage", "show", id, "--json"]).await?;
    let text = String::from_utf8(output.stdout)?;
    let json = serde_json::from_str(&text)
        .map(tollgate_tests::record)
        .with_context(|| format!("usage show {id} printed {text:?}"))?;
    Ok((text, json))
}

#[tokio::test]
async fn cost_is_exact_in_response_and_record() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let answer = reply.ok()?;
    ensure!(reply.text().contains("0.000018018"), "429 × 0.000000042: {}", reply.text());
    ensure!(answer["usage"]["input_tokens"] == 429 && answer["usage"]["output_tokens"] == 31, "{answer}");
    ensure!(answer["usage"]["cost"].is_number(), "{answer}");
    ensure!(answer["model"] == "acme/alone" && answer["provider"] == "Alpha AI", "{answer}");
    let id = answer["id"].as_str().context("no id")?;
    let (text, record) = usage(&gateway.instance, id).await?;
    ensure!(text.contains("0.000018018"), "{text}");
    ensure!(record["id"] == id && record["outcome"] == "completed", "{record}");
    ensure!(record["tokens_prompt"] == 429 && record["tokens_completion"] == 31, "{record}");
    ensure!(record["model"] == "acme/alone" && record["provider"] == "alpha", "{record}");
    Ok(())
}

#[tokio::test]
async fn record_survives_crash_directly_after_response() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(gateway.decide(body("sandbox/decider")).await?["id"].as_str().context("no id")?.to_owned());
    }
    let TestGateway { instance, server, .. } = gateway;
    server.kill().await?;
    for id in ids {
        let (_, record) = usage(&instance, &id).await?;
        ensure!(record["outcome"] == "completed", "{record}");
    }
    Ok(())
}

#[tokio::test]
async fn crash_under_load_records_each_response_once() -> Result<()> {
    let instance = Instance::new("")?;
    let mut answered = std::collections::BTreeSet::new();
    for trial in 0..5 {
        let server = instance.serve().await?;
        let key = instance.inference_key().await?;
        let ids = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let (call, address) = (decisions(&key.secret, body("sandbox/decider")), server.address());
            let ids = std::sync::Arc::clone(&ids);
            callers.spawn(async move {
                // At most as many requests as a list can show.
                for _ in 0..120 {
                    let Ok(Ok(answer)) = call.send(address).await.map(|reply| reply.ok()) else { return };
                    if let (Some(id), Ok(mut ids)) = (answer["id"].as_str(), ids.lock()) {
                        ids.push(id.to_owned());
                    }
                }
            });
        }
        tokio::time::sleep(std::time::Duration::from_millis(150 + 37 * trial)).await;
        server.kill().await?;
        while callers.join_next().await.is_some() {}
        let ids = ids.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?;
        ensure!(!ids.is_empty(), "no response before the crash");
        answered.extend(ids.iter().cloned());
    }
    let listed = instance.json(&["usage", "list", "--limit", "10000"]).await?;
    let mut recorded = std::collections::BTreeMap::<&str, usize>::new();
    for row in rows(&listed)? {
        *recorded.entry(row["id"].as_str().context("a row without an id")?).or_default() += 1;
    }
    ensure!(recorded.values().all(|times| *times == 1), "a record is duplicated");
    let lost: Vec<_> = answered.iter().filter(|id| !recorded.contains_key(id.as_str())).collect();
    ensure!(lost.is_empty(), "{} of {} answers are not on record", lost.len(), answered.len());
    Ok(())
}

#[tokio::test]
async fn concurrent_requests_are_each_recorded_once() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (call, address) = (decisions(&gateway.inference.secret, body("sandbox/decider")), gateway.server.address());
        calls.spawn(async move { call.send(address).await?.ok() });
    }
    let mut ids = std::collections::BTreeSet::new();
    while let Some(answer) = calls.join_next().await {
        ids.insert(answer??["id"].as_str().context("no id")?.to_owned());
    }
    ensure!(ids.len() == 64, "ids are not unique");
    let listed = gateway.instance.json(&["usage", "list", "--limit", "1000"]).await?.to_string();
    for id in &ids {
        ensure!(listed.matches(id.as_str()).count() == 1, "{id} is not listed once");
    }
    Ok(())
}

#[tokio::test]
async fn failed_request_is_charged_its_possible_cost() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let beta = Upstream::start(Behaviour::Close).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/pair")).await?.envelope(502)?;
    let listed = gateway.instance.json(&["usage", "list"]).await?;
    let rows = rows(&listed)?;
    ensure!(rows.len() == 1, "{listed}");
    // The error status of the first attempt is free; the usage of the second is unknown and is charged by its bound.
    let sent = beta.take_request()?.body.len() as u64;
    ensure!(rows[0]["outcome"] == "failed" && rows[0]["usage_source"] == "upper_bound", "{listed}");
    ensure!(rows[0]["tokens_prompt"] == sent + 128, "{sent} bytes: {listed}");

    let free =
        format!("[money]\nunreported_usage = \"free\"\n{}", providers_toml(&alpha.base_url(), &beta.base_url(), 5_000));
    let gateway = TestGateway::start(&free).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/pair")).await?.envelope(502)?;
    let listed = gateway.instance.json(&["usage", "list"]).await?;
    ensure!(self::rows(&listed)?[0]["tokens_prompt"] == 0, "{listed}");
    Ok(())
}

/// Returns the rows of a list that a command printed, with or without a wrapper.
pub fn rows(listed: &Value) -> Result<&Vec<Value>> {
    listed
        .as_array()
        .or_else(|| listed.as_object().and_then(|members| members.values().find_map(Value::as_array)))
        .with_context(|| format!("no list: {listed}"))
}

#[tokio::test]
async fn unreported_tokens_are_bounded_by_sent_bytes() -> Result<()> {
    let silent = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.5}}}"#;
    let alpha = Upstream::start(Behaviour::json(silent)).await?;
    let beta = Upstream::start(Behaviour::json(silent)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let answer = gateway.decide(body("acme/alone")).await?;
    let sent = alpha.take_request()?.body.len() as u64;
    let tokens = answer["usage"]["input_tokens"].as_u64().context("no input_tokens")?;
    ensure!(tokens == sent + 128, "{tokens} for {sent} bytes");
    Ok(())
}

#[tokio::test]
async fn timed_out_request_shows_its_upper_bound() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 300).await?;
    let call = decisions(&gateway.inference.secret, body("acme/alone")).header("x-tollgate-metadata", "enabled");
    let reply = gateway.server.send(&call).await?;
    let envelope = reply.envelope(524)?;
    let metadata = &envelope["error"]["metadata"];
    ensure!(metadata["usage_source"] == "upper_bound", "{envelope}");
    ensure!(metadata["attempts"][0]["outcome"] == "timed_out", "{envelope}");
    ensure!(metadata["attempts"][0]["usage_source"] == "upper_bound", "{envelope}");
    ensure!(envelope["service_metadata"]["usage_source"] == "upper_bound", "{envelope}");
    // One token per byte sent and the overhead of 128, for 0.042 USD per million.
    let nanodollars = (alpha.take_request()?.body.len() + 128) * 42;
    let charged = format!("\"charged_usd\":0.00{nanodollars:07}");
    ensure!(reply.text().contains(charged.trim_end_matches('0')), "not {charged}: {}", reply.text());

    let id = reply.header("x-generation-id").to_owned();
    let record = Call::get(format!("/api/v1/generation?id={id}")).key(&gateway.inference.secret);
    let record = gateway.server.send(&record).await?.ok()?;
    ensure!(record["data"]["usage_source"] == "upper_bound", "{record}");
    ensure!(record["data"]["total_cost"] == metadata["charged_usd"], "{record}");
    let shown = gateway.instance.json(&["usage", "show", &id]).await?;
    ensure!(shown["usage_source"] == "upper_bound" && shown["total_cost"] == metadata["charged_usd"], "{shown}");
    ensure!(shown["provider_responses"][0]["usage_source"] == "upper_bound", "{shown}");
    Ok(())
}

#[tokio::test]
async fn unsent_request_shows_no_charge() -> Result<()> {
    let dead = format!("http://{}", free_address()?);
    let gateway = TestGateway::start(&providers_toml(&dead, &dead, 5_000)).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let envelope = reply.envelope(502)?;
    let metadata = &envelope["error"]["metadata"];
    ensure!(metadata["usage_source"] == "none" && metadata["charged_usd"] == 0, "{envelope}");
    ensure!(metadata["attempts"][0]["usage_source"] == "none", "{envelope}");
    let listed = gateway.instance.json(&["usage", "list"]).await?;
    let rows = rows(&listed)?;
    ensure!(rows[0]["usage_source"] == "none" && rows[0]["total_cost"] == 0, "{listed}");
    Ok(())
}

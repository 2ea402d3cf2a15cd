//! Budget alerts reach the destinations of a workspace.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Upstream};

use super::{attribute, create, header, local_receivers, spans, webhook};
use crate::gateway::{TestGateway, body, providers_toml};

/// An answer that costs 0.0126 USD: 300,000 input tokens at 0.042 USD per million.
const EXPENSIVE: &str = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":300000,"output_tokens":31}}"#;

/// Collects alerts until there are `count`, which must be signed.
async fn collect(receiver: &Upstream, alerts: &mut Vec<Value>, count: usize) -> Result<()> {
    let since = Instant::now();
    while alerts.len() < count {
        ensure!(since.elapsed() < Duration::from_mins(1), "{} of {count} alerts: {alerts:?}", alerts.len());
        sleep(Duration::from_millis(50)).await;
        for request in receiver.take_requests() {
            ensure!(header(&request, "x-tollgate-signature").is_some(), "{}", request.head);
            alerts.extend(spans(&request)?.into_iter().filter(|span| span["name"] == "budget.threshold"));
        }
    }
    Ok(())
}

fn text<'a>(span: &'a Value, key: &str) -> &'a str {
    attribute(span, key).and_then(|value| value["stringValue"].as_str()).unwrap_or_default()
}

fn percent(span: &Value) -> &str {
    let threshold = attribute(span, "tollgate.budget.threshold_percent");
    threshold.and_then(|value| value["intValue"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn budget_alerts_are_delivered_once_over_two_processes_and_a_restart() -> Result<()> {
    let provider = Upstream::start(Behaviour::json(EXPENSIVE)).await?;
    let receiver = Upstream::start(Behaviour::json("{}")).await?;
    let toml = local_receivers(&providers_toml(&provider.base_url(), &provider.base_url(), 5_000));
    let gateway = TestGateway::start(&toml).await?;
    create(&gateway, &webhook(&receiver)).await?;
    let options = ["--name", "limited", "--limit-usd", "0.02", "--limit-reset", "monthly"];
    let limited = gateway.instance.key(&options).await?;
    let beside = gateway.instance.serve_beside().await?;
    let mut alerts = Vec::new();

    gateway.server.decide(&limited.secret, body("acme/alone")).await?.ok()?;
    collect(&receiver, &mut alerts, 1).await?;
    let first = &alerts[0];
    ensure!(percent(first) == "50", "{first}");
    for (key, expected) in [
        ("tollgate.event", "budget.threshold"),
        ("tollgate.workspace_id", &gateway.instance.default_workspace().await?),
        ("tollgate.api_key_id", &limited.id),
        ("tollgate.budget.scope", "key"),
        ("tollgate.budget.limit_usd", "0.02"),
        ("tollgate.budget.spent_usd", "0.0126"),
        ("tollgate.budget.period", "monthly"),
    ] {
        ensure!(text(first, key) == expected, "{key}: {first}");
    }
    ensure!(text(first, "tollgate.budget.resets_at").ends_with("-01T00:00:00Z"), "{first}");

    beside.decide(&limited.secret, body("acme/alone")).await?.ok()?;
    collect(&receiver, &mut alerts, 3).await?;
    let mut rest: Vec<(&str, &str)> =
        alerts[1..].iter().map(|alert| (percent(alert), text(alert, "tollgate.budget.spent_usd"))).collect();
    rest.sort_unstable();
    ensure!(rest == [("100", "0.0252"), ("80", "0.0252")], "{rest:?}");

    beside.stop().await?;
    gateway.server.stop().await?;
    let server = gateway.instance.serve().await?;
    server.decide(&limited.secret, body("acme/alone")).await?.envelope(402)?;
    server.decide(&gateway.inference.secret, body("acme/alone")).await?.ok()?;
    sleep(Duration::from_secs(3)).await;

    for request in receiver.take_requests() {
        ensure!(spans(&request)?.iter().all(|span| span["name"] != "budget.threshold"), "an alert was sent again");
    }
    server.stop().await
}

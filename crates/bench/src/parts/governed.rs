//! Decisions with every limit and policy enabled, compared with the same requests without any.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::bench::Bench;
use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Rounds, Target, column, side_by_side};
use crate::process::Helper;
use crate::report::{Bound, Figure};
use crate::statistics::difference;
use crate::wires::{INBOUND, OUTBOUND};

const ON: usize = 0;
const OFF: usize = 1;
const PROXY: usize = 2;
const DIRECT: usize = 3;

/// Measures at 64 connections for throughput and at one for latency.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let governed = governed_key(&bench.gateway, bench.upstream.address).await?;
    let proxy = Helper::start(&["proxy", "--upstream", &bench.upstream.address.to_string()]).await?;
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let target = |name, address, pid, key: &str, path: &str| Target {
        name,
        address,
        pid,
        requests: Requests::repeat(http::request("POST", path, key, Some(body.as_bytes()))),
    };
    let (gateway, plain) = (&bench.gateway, &bench.gateway.inference_key);
    let path = "/api/v1/api/alpha/decisions";
    let targets = [
        target("everything on", gateway.address, gateway.pid()?, &governed, path),
        target("everything off", gateway.address, gateway.pid()?, plain, path),
        target("bare proxy", proxy.address, proxy.pid()?, plain, "/v1/systemone"),
        target("direct", bench.upstream.address, bench.upstream.pid()?, plain, "/v1/systemone"),
    ];
    for target in &targets {
        call_once(target.address, target.requests.next()).await.context(target.name)?;
    }
    let crowded = side_by_side(&targets, 64, bench.rounds, bench.duration).await?;
    let alone = side_by_side(&targets, 1, bench.rounds, bench.duration).await?;
    Ok(figures(&targets, &crowded, &alone))
}

/// Creates a key with a limit and rates, in a workspace with credit, a budget and a trace destination, under a
/// guardrail with a budget, lists and every filter. Every limit is above the cost of the load.
pub async fn governed_key(gateway: &Gateway, upstream: SocketAddr) -> Result<String> {
    let text = |made: &Value, name: &str| {
        made[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {made}"))
    };
    let workspace =
        text(&gateway.command(&["workspace", "create", "--allow-duplicate", "--name", "governed"]).await?, "id")?;
    gateway.command(&["workspace", "credit", "--workspace", &workspace, "--add-usd", "1000000"]).await?;
    gateway.command(&["workspace", "budget", "--workspace", &workspace, "--monthly", "1000000"]).await?;
    let slugs = ["email", "phone", "ssn", "credit-card", "ip-address", "secrets", "regex-prompt-injection"];
    let builtins = slugs.map(|slug| json!({"slug": slug, "action": "redact"}));
    let models = OUTBOUND.map(|outbound| outbound.model);
    let providers = OUTBOUND.map(|outbound| format!("bench-{}", outbound.wire));
    let rules = json!({
        "limit_usd": 1_000_000, "reset_interval": "monthly",
        "allowed_models": models,
        "allowed_providers": providers,
        "content_filter_builtins": builtins,
        "content_filters": [
            {"pattern": r"\bPRJ-\d{4,8}\b", "action": "redact", "label": "PROJECT"},
            {"pattern": "(?i)internal use only", "action": "block"},
            {"pattern": r"(?i)\bcodename\s+\w+", "action": "flag"},
        ],
    });
    let file = gateway.folder().join("guardrail.json");
    fs::write(&file, rules.to_string())?;
    let file = file.display().to_string();
    let create = ["guardrail", "create", "--name", "governed", "--workspace", &workspace, "--from", &file];
    let guardrail = text(&gateway.command(&create).await?, "id")?;
    let create = [
        "key",
        "create",
        "--name",
        "governed",
        "--workspace",
        &workspace,
        "--limit-usd",
        "1000000",
        "--limit-reset",
        "monthly",
        "--rpm",
        "4000000000",
        "--tpm",
        "4000000000",
    ];
    let key = gateway.command(&create).await?;
    gateway.command(&["guardrail", "assign", &guardrail, &text(&key, "hash")?]).await?;
    let destination = json!({
        "name": "collector", "type": "otel-collector", "workspace_id": workspace, "sampling_rate": 0.01,
        "config": {"endpoint": format!("http://{upstream}/v1/systemone")},
    });
    let request = http::request(
        "POST",
        "/api/v1/observability/destinations",
        &gateway.management_key,
        Some(destination.to_string().as_bytes()),
    );
    let mut connection = http::Connection::open(gateway.address).await?;
    let status = connection.exchange(&request).await?;
    anyhow::ensure!(status == 201, "the destination was answered {status}");
    // Changes take effect within a second.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    text(&key, "key")
}

fn figures(targets: &[Target], crowded: &Rounds, alone: &Rounds) -> Vec<Figure> {
    let per_second = |index: usize| column(&crowded[index], |run| run.per_second);
    let cpu = |index: usize| column(&crowded[index], |run| run.cpu_us);
    let p50 = |index: usize| column(&alone[index], |run| run.p50_us);
    let p99 = |index: usize| column(&alone[index], |run| run.p99_us);
    let beside = |name: &str, unit, value: &dyn Fn(usize) -> Vec<f64>, other: usize| {
        Figure::compared(name, unit, &value(ON), (targets[other].name, &value(other)))
    };
    vec![
        beside("Everything on, c=64", "1/s", &per_second, OFF),
        beside("Everything on, c=64", "1/s", &per_second, PROXY).with_bound(Bound::RatioAtLeast(0.45)),
        beside("Everything on, c=64, processor time an answer", "us", &cpu, OFF),
        beside("Everything on, c=64, processor time an answer", "us", &cpu, PROXY).with_bound(Bound::RatioAtMost(3.2)),
        beside("Everything on, c=1, p50", "us", &p50, OFF),
        beside("Everything on, c=1, p99", "us", &p99, OFF),
        Figure::single("Everything on, c=1, p99 added to everything off", "us", difference(&p99(ON), &p99(OFF))),
        Figure::single("Everything on, c=1, p99 added to direct", "us", difference(&p99(ON), &p99(DIRECT)))
            .with_bound(Bound::AtMost(400.0)),
    ]
}

//! Decisions by 50,000 keys in rotation, compared with one key: without guardrails and with 10,000 of them.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::bench::{Bench, mib};
use crate::http::{self, Connection};
use crate::load::{Requests, Target, column, drive, side_by_side};
use crate::process::rss_kib;
use crate::report::{Bound, Figure};
use crate::wires::{INBOUND, OUTBOUND};

const KEYS: usize = 50_000;
const GUARDRAILS: usize = 10_000;

/// Measures at 64 connections, after each key was used once.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = beside_one_key(bench, "50,000 keys").await?;
    assign(bench).await?;
    figures.extend(beside_one_key(bench, "50,000 keys under 10,000 guardrails").await?);
    Ok(figures)
}

async fn beside_one_key(bench: &Bench, name: &'static str) -> Result<Vec<Figure>> {
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let request = |key: &str| http::request("POST", "/api/v1/api/alpha/decisions", key, Some(body.as_bytes()));
    let target = |name, requests| -> Result<Target> {
        Ok(Target {
            name,
            address: bench.gateway.address,
            pid: bench.gateway.pid()?,
            requests: Requests::new(requests),
        })
    };
    let many = target(name, bench.keys[..KEYS].iter().map(|key| request(&key.secret)).collect())?;
    let one = target("one key", vec![request(&bench.gateway.inference_key)])?;
    let before = rss_kib(bench.gateway.pid()?)?;
    while many.requests.sent() < KEYS {
        drive(&many, 64, bench.duration).await?;
    }
    let added = mib(rss_kib(bench.gateway.pid()?)?) - mib(before);
    let runs = side_by_side(&[many, one], 64, bench.rounds, bench.duration).await?;
    let per_second = |index: usize| column(&runs[index], |run| run.per_second);
    Ok(vec![
        Figure::compared(format!("Decisions, {name}, c=64"), "1/s", &per_second(0), ("one key", &per_second(1)))
            .with_bound(Bound::RatioAtLeast(0.9)),
        Figure::single(format!("Decisions, {name}, resident memory added"), "MiB", added),
    ])
}

/// Assigns five keys to each guardrail. Each guardrail has a budget, so each key has its own account under it.
async fn assign(bench: &Bench) -> Result<()> {
    let mut connection = Connection::open(bench.gateway.address).await?;
    let mut post = async |path: &str, body: Value| -> Result<Value> {
        let request = http::request("POST", path, &bench.gateway.management_key, Some(body.to_string().as_bytes()));
        let response = connection.call(&request).await?;
        serde_json::from_slice(&response.body).with_context(|| format!("the answer was {}", response.status))
    };
    for (number, keys) in bench.keys[..KEYS].chunks(KEYS / GUARDRAILS).enumerate() {
        let rules = json!({
            "name": format!("bench {number}"), "workspace_id": bench.gateway.workspace_id,
            "limit_usd": 1_000_000, "reset_interval": "monthly",
        });
        let made = post("/api/v1/guardrails", rules).await?;
        let id = made["data"]["id"].as_str().with_context(|| format!("no guardrail was made: {made}"))?;
        let hashes: Vec<&str> = keys.iter().map(|key| key.hash.as_str()).collect();
        let assigned =
            post(&format!("/api/v1/guardrails/{id}/assignments/keys"), json!({ "key_hashes": hashes })).await?;
        anyhow::ensure!(assigned["assigned_count"] == keys.len(), "not every key was assigned: {assigned}");
    }
    // Changes take effect within a second.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    Ok(())
}

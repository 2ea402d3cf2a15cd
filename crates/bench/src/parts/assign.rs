//! Bulk assignment: every key of the installation to one guardrail in one call over HTTP.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Bench, mib};
use crate::clock::now;
use crate::http::{self, call_once};
use crate::process::{peak_while, rss_kib};
use crate::report::{Bound, Figure};
use crate::statistics::median;

/// Assigns to two guardrails in turn, so that every call but the first replaces all assignments.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let guardrails = [guardrail(bench, "one").await?, guardrail(bench, "two").await?];
    let pid = bench.gateway.pid()?;
    let before = rss_kib(pid)?;
    let mut times = Vec::new();
    let mut peak = 0;
    for round in 0..bench.rounds {
        let (took, most) = peak_while(pid, assign(bench, &guardrails[round % 2])).await?;
        times.push(took);
        peak = peak.max(most);
    }
    let count = bench.keys.len();
    Ok(vec![
        Figure::alone(format!("bulk assign, {count} hashes, the first call"), "s", times[0])
            .bounded(Bound::AtMost(2.0)),
        Figure::alone(format!("bulk assign, {count} hashes, replacing"), "s", median(&times[1..]))
            .bounded(Bound::AtMost(2.0)),
        Figure::alone("bulk assign, resident memory added at most", "MiB", mib(peak) - mib(before)),
    ])
}

async fn guardrail(bench: &Bench, name: &str) -> Result<String> {
    let made = bench.gateway.command(&["guardrail", "create", "--name", name]).await?;
    made.get("id").and_then(Value::as_str).map(str::to_owned).context("guardrail create gave no id")
}

async fn assign(bench: &Bench, guardrail: &str) -> Result<f64> {
    let hashes: Vec<&str> = bench.keys.iter().map(|key| key.hash.as_str()).collect();
    let body = json!({ "key_hashes": hashes }).to_string();
    let path = format!("/api/v1/guardrails/{guardrail}/assignments/keys");
    let request = http::request("POST", &path, &bench.gateway.management_key, Some(body.as_bytes()));
    let began = now();
    let answer = call_once(bench.gateway.address, &request).await?;
    let took = began.elapsed().as_secs_f64();
    let answer: Value = serde_json::from_slice(&answer)?;
    if answer["assigned_count"] != bench.keys.len() {
        bail!("not every key was assigned: {answer}");
    }
    Ok(took)
}

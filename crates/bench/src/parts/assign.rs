//! Bulk assignment: all keys of the installation to one guardrail in one HTTP request.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::bench::{Bench, mib};
use super::management::read;
use crate::clock::now;
use crate::http::{self, call_once};
use crate::load::{Requests, Run, Target, column, drive};
use crate::process::{peak_while, rss_kib};
use crate::report::{Bound, Figure};
use crate::statistics::median;
use crate::wires::{INBOUND, OUTBOUND};

/// Connections of the concurrent load.
const CONNECTIONS: usize = 8;
/// Keys of the concurrent load; the assignments include them.
const LOADED_KEYS: usize = 64;

/// Assigns to two guardrails alternately, so that every call but the first replaces all assignments.
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
    let (alone, beside) = longest_answers(bench, &guardrails).await?;
    let count = bench.keys.len();
    let held = format!("/api/v1/guardrails/{}/assignments/keys?limit=100", guardrails[(bench.rounds - 1) % 2]);
    let last = format!("{held}&offset={}", count.saturating_sub(100));
    let (of, key) = ((bench, &bench.gateway), bench.gateway.management_key.as_str());
    Ok(vec![
        read(of, "the first page of a guardrail's assignments", &held, key, 20.0).await?,
        read(of, "the last page of a guardrail's assignments", &last, key, 20.0).await?,
        read(of, "the first page of all assignments", "/api/v1/guardrails/assignments/keys?limit=100", key, 20.0)
            .await?,
        Figure::single(format!("bulk assign, {count} hashes, the first call"), "s", times[0])
            .with_bound(Bound::AtMost(2.0)),
        Figure::single(format!("bulk assign, {count} hashes, replacing"), "s", median(&times[1..]))
            .with_bound(Bound::AtMost(2.0)),
        Figure::single("bulk assign, resident memory added at most", "MiB", mib(peak) - mib(before)),
        Figure::single(format!("Decisions, c={CONNECTIONS}, the longest answer"), "ms", median(&alone)),
        Figure::single(
            format!("Decisions, c={CONNECTIONS}, the longest answer beside a bulk assign"),
            "ms",
            median(&beside),
        )
        .with_bound(Bound::AtMost(50.0)),
    ])
}

/// Returns the maximum latency per round in milliseconds: of Decisions alone, and during an assignment of all keys.
async fn longest_answers(bench: &Bench, guardrails: &[String; 2]) -> Result<(Vec<f64>, Vec<f64>)> {
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let request = |key: &str| http::request("POST", "/api/v1/api/alpha/decisions", key, Some(body.as_bytes()));
    let target = Target {
        name: "beside a bulk assign",
        address: bench.gateway.address,
        pid: bench.gateway.pid()?,
        requests: Requests::new(bench.keys[..LOADED_KEYS].iter().map(|key| request(&key.secret)).collect()),
    };
    drive(&target, CONNECTIONS, bench.duration).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        alone.push(drive(&target, CONNECTIONS, bench.duration).await?);
        let assigned = assign(bench, &guardrails[round % 2]);
        let (run, assigned) = tokio::join!(drive(&target, CONNECTIONS, bench.duration), assigned);
        assigned?;
        beside.push(run?);
    }
    let millis = |runs: &[Run]| column(runs, |run| run.max_us / 1e3);
    Ok((millis(&alone), millis(&beside)))
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

//! The memory of many large requests at the same time, with the default limits.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use tollgate_tests::{Behaviour, Call, Instance, Key, Upstream, decisions};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body, providers_toml};
use crate::memory::{fill, key_under, measure};

const AT_ONCE: usize = 64;
const BODY_BYTES: usize = 8_000_000;
/// The most memory above idle: the default budget, and a reserve.
const MOST: usize = (256 + 64) << 20;

fn of_state(state: &str) -> String {
    format!(r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":{state}}}"#)
}

fn gzip(text: &str) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

/// Starts a gateway with the default limits on memory, and a provider that answers after a while.
async fn start(alpha: &Upstream, more: &str) -> Result<TestGateway> {
    let limits = "[limits]\nrequest_timeout_ms = 600000\nworkspace_record_bytes_per_day = 0\n";
    let mut instance =
        Instance::new(&format!("{limits}{more}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 600_000)))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let gateway = TestGateway::of(instance).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.ok()?;
    Ok(gateway)
}

/// Creates a key in another workspace, so that two workspaces can use all of the memory.
async fn key_of_another_workspace(gateway: &TestGateway) -> Result<Key> {
    let workspace = gateway.instance.workspace("other").await?;
    gateway.instance.key(&["--workspace", &workspace]).await
}

/// Sends the calls alternately, as many as [`AT_ONCE`], and checks the memory. Some of them must have this status, and
/// the others must be rejected because the memory is used up. Returns a line of a table.
async fn ensure_bounded(gateway: &TestGateway, name: &str, calls: &[Call], status: u16) -> Result<String> {
    let calls = calls.iter().cycle().take(AT_ONCE).cloned().collect();
    let (statuses, peak) = measure(gateway, calls).await?;
    let count = |status: u16| statuses.iter().filter(|other| **other == status).count();
    ensure!(count(status) > 0 && count(status) + count(429) + count(503) == AT_ONCE, "{name}: {statuses:?}");
    ensure!(peak <= MOST, "{name}: {} MiB", peak >> 20);
    Ok(format!("| {name} | {} | {} | {} MiB |", count(status), count(429) + count(503), peak >> 20))
}

#[tokio::test]
async fn memory_of_many_large_bodies_is_bounded_by_default() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(500), ANSWER.to_owned())).await?;
    let gateway = start(&alpha, "").await?;
    let email = json!([{"slug": "email", "action": "redact"}]);
    let guarded = key_under(&gateway, json!({"name": "e", "content_filter_builtins": email})).await?;
    gateway.server.decide(&guarded.secret, body("acme/alone")).await?.ok()?;
    let keys = [gateway.inference.clone(), key_of_another_workspace(&gateway).await?];
    let text = of_state(&format!("\"{}\"", fill("It smokes, and I want my money back. ", BODY_BYTES)));
    let strings = of_state(&format!("[{}\"a\"]", fill("\"a\",", BODY_BYTES)));
    let compressed = |text: &str, key: &Key| -> Result<Call> {
        Ok(decisions(&key.secret, gzip(text)?).header("content-encoding", "gzip"))
    };
    for (shape, text) in [("one text", &text), ("many short strings", &strings)] {
        let plain: Vec<Call> = keys.iter().map(|key| decisions(&key.secret, text)).collect();
        eprintln!("{}", ensure_bounded(&gateway, shape, &plain, 200).await?);
        let gzip: Vec<Call> = keys.iter().map(|key| compressed(text, key)).collect::<Result<_>>()?;
        eprintln!("{}", ensure_bounded(&gateway, &format!("{shape}, gzip"), &gzip, 200).await?);
    }
    eprintln!(
        "{}",
        ensure_bounded(&gateway, "one text, with a guardrail", &[decisions(&guarded.secret, &text)], 200).await?
    );
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn memory_of_many_traces_is_bounded_by_default() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(500), ANSWER.to_owned())).await?;
    let collector = Upstream::start(Behaviour::status(200)).await?;
    let gateway = start(&alpha, "[egress]\nallow_private_addresses = true\n").await?;
    let destination = json!({"name": "c", "type": "otel-collector", "privacy_mode": false,
        "config": {"url": format!("http://{}", collector.address())}});
    let create = Call::post("/api/v1/observability/destinations").key(&gateway.management.secret);
    let reply = gateway.server.send(&create.json(destination.to_string())).await?;
    ensure!(reply.status == 201, "{}", reply.text());
    // Each quote takes four bytes in a trace.
    let state = of_state(&format!("[{}\"a\"]", fill("\"a\",", BODY_BYTES / 16)));
    eprintln!("{}", ensure_bounded(&gateway, "traces", &[decisions(&gateway.inference.secret, state)], 200).await?);
    collector.wait_for_request().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn memory_of_many_management_requests_is_bounded_by_default() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = start(&alpha, "").await?;
    let other = gateway.instance.management_key().await?;
    let id = gateway.instance.guardrail(&[]).await?;
    let post = |path: &str, body: &str| {
        [&gateway.management, &other].map(|key| Call::post(format!("/api/v1{path}")).key(&key.secret).json(body))
    };
    let assign = format!("/guardrails/{id}/assignments/keys");
    let hashes: String = (0..BODY_BYTES / 67).map(|at| format!("\"{at:064x}\",")).collect::<Vec<_>>().concat();
    let body = format!("{{\"key_hashes\":[{hashes}\"x\"]}}");
    eprintln!("{}", ensure_bounded(&gateway, "assignments", &post(&assign, &body), 200).await?);
    let names = format!("{{\"key_hashes\":[{}\"a\"]}}", fill("\"a\",", BODY_BYTES));
    eprintln!("{}", ensure_bounded(&gateway, "short names", &post(&assign, &names), 200).await?);
    for (member, element) in [("content_filters", "{}"), ("allowed_models", "\"a\"")] {
        let body = format!("{{\"name\":\"g\",\"{member}\":[{}{element}]}}", fill(&format!("{element},"), BODY_BYTES));
        eprintln!(
            "{}",
            ensure_bounded(&gateway, &format!("guardrail with {member}"), &post("/guardrails", &body), 400).await?
        );
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// An answer to [`QUESTIONS`] with a long member.
fn long_answer(bytes: usize) -> String {
    ANSWER.replace("\"noul\":0.97", &format!("\"noul\":0.97,\"note\":\"{}\"", "n".repeat(bytes)))
}

#[tokio::test]
async fn memory_of_many_large_answers_is_bounded_by_default() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = start(&alpha, "").await?;
    let keys = [gateway.inference.clone(), key_of_another_workspace(&gateway).await?];
    alpha.behave(Behaviour::json(long_answer(BODY_BYTES)));
    let calls = keys.map(|key| decisions(&key.secret, body("acme/alone")));
    eprintln!("{}", ensure_bounded(&gateway, "answers", &calls, 200).await?);
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn answer_without_memory_is_503_charged_and_not_repeated() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(long_answer(3 << 20))).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let limits = "[limits]\nmax_json_bytes = 100000\nbody_memory_bytes = 16000000\n";
    let gateway =
        TestGateway::start(&format!("{limits}{}", providers_toml(&alpha.base_url(), &beta.base_url(), 60_000))).await?;
    let call = decisions(&gateway.inference.secret, body("acme/pair"));
    let reply = gateway.server.send(&call).await?;
    let metadata = reply.envelope(503)?["error"]["metadata"].take();
    ensure!(reply.header("retry-after") == "1", "{:?}", reply.headers);
    let attempts = &metadata["attempts"];
    ensure!(attempts.as_array().is_some_and(|attempts| attempts.len() == 1), "{attempts}");
    ensure!(attempts[0]["outcome"] == "memory_exhausted" && attempts[0]["upstream_status"] == 200, "{attempts}");
    // The provider has answered and bills the call, so its upper bound is charged.
    ensure!(metadata["usage_source"] == "upper_bound", "{metadata}");
    ensure!(metadata["charged_usd"].as_f64().is_some_and(|charged| charged > 0.0), "{metadata}");
    ensure!(beta.take_requests().is_empty(), "another answer would find no memory either");
    // The endpoint is not throttled, and the memory is free again.
    for _ in 0..8 {
        alpha.behave(Behaviour::json(ANSWER));
        gateway.server.send(&call).await?.ok()?;
        alpha.behave(Behaviour::json(long_answer(3 << 20)));
        ensure!(gateway.server.send(&call).await?.status == 503, "the answer takes 12 of 8 MB");
    }
    ensure!(alpha.take_requests().len() == 17 && beta.take_requests().is_empty());
    gateway.server.stop().await
}

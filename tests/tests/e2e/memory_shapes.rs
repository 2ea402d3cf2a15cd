//! The memory that requests of unusual shapes take.
//!
//! `cargo test --test e2e memory_shapes -- --nocapture` prints a table. `SHAPE_BYTES` sets the size of the bodies.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Call, Upstream, decisions};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway, body, providers_toml};
use crate::memory::{fill, key_under, measure};

/// The default size of a body. The filters of a development build take seconds for a mebibyte.
const BYTES: usize = 1 << 20;
/// The memory of a request, in sizes of its body: four for the scan, and four for the body as received, parsed, sent
/// and answered.
const MOST_COPIES: usize = 8;
/// The memory of the process that does not depend on the body.
const OVERHEAD: usize = 24 << 20;

#[expect(clippy::disallowed_methods, reason = "a test has no configuration")]
fn shape_bytes() -> usize {
    std::env::var("SHAPE_BYTES").ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES)
}

fn decision(members: &str) -> String {
    format!(r#"{{"model":"acme/alone",{members}}}"#)
}

fn of_state(state: &str) -> String {
    decision(&format!(r#""questions":{QUESTIONS},"state":{state}"#))
}

/// Returns a body of each shape.
fn shapes(bytes: usize) -> Vec<(&'static str, String)> {
    let list = |part: &str| format!("[{}1]", fill(&format!("{part},"), bytes));
    let text = |part: &str| format!("\"{}\"", fill(part, bytes));
    let numbered = |count: usize, write: fn(usize) -> String| (0..count).map(write).collect::<Vec<_>>().join(",");
    let deep = format!("{}\"a\"{}", "[\"a\",".repeat(120), "]".repeat(120));
    let options = format!("{{{}}}", numbered(250, |at| format!(r#""o{at}":null"#)));
    let choices = (0..bytes / options.len()).map(|at| format!(r#""q{at}":{{"type":"choice","criteria":{options}}}"#));
    vec![
        ("one text", of_state(&text("It smokes, and I want my money back. "))),
        ("many short strings", of_state(&list("\"a\""))),
        ("many matches", of_state(&text("ax"))),
        ("many strings with a match", of_state(&list("\"axa\""))),
        ("many escapes", of_state(&text("\\n\\u00e9"))),
        ("many disguised letters", of_state(&text("ｅb"))),
        ("many numbers", of_state(&list("1"))),
        ("many groups of digits", of_state(&text("12 "))),
        ("many spaced letters", of_state(&text("e f "))),
        ("many names", of_state(&format!("{{{}}}", numbered(bytes / 11, |at| format!(r#""k{at:06}":1"#))))),
        (
            "many names with a match",
            of_state(&format!("{{{}}}", numbered(bytes / 11, |at| format!(r#""a{at:06}":1"#)))),
        ),
        ("deep nesting", of_state(&list(&deep))),
        (
            "many questions",
            decision(&format!(
                r#""state":"s","questions":{{{}}}"#,
                numbered(bytes / 25, |at| format!(r#""{at:06}":{{"type":"box"}}"#))
            )),
        ),
        (
            "many options",
            decision(&format!(r#""state":"s","questions":{{{}}}"#, choices.collect::<Vec<_>>().join(","))),
        ),
        ("many values as questions", decision(&format!(r#""state":"s","questions":{}"#, list("1")))),
        ("many models", decision(&format!(r#""state":"s","questions":{QUESTIONS},"models":{}"#, list("\"m\"")))),
        (
            "many assets",
            decision(&format!(
                r#""state":"s","questions":{QUESTIONS},"assets":{{{}}}"#,
                numbered(bytes / 12, |at| format!(r#""{at:06}":{{}}"#))
            )),
        ),
        ("many images", decision(&format!(r#""state":"s","questions":{QUESTIONS},"images":{}"#, list("1")))),
        (
            "one asset",
            decision(&format!(
                r#""state":"s","questions":{QUESTIONS},"assets":{{"a":{{"media_type":"text/plain","data":"{}"}}}}"#,
                base64::engine::general_purpose::STANDARD.encode(fill("ax", bytes * 3 / 4))
            )),
        ),
    ]
}

/// Returns the memory that a body of a shape counts for its parsed questions or assets.
fn structure_bytes(shape: &str, bytes: usize) -> usize {
    match shape {
        "many questions" => bytes / 25 * 256,
        "many assets" => bytes / 12 * 1024,
        _ => 0,
    }
}

#[tokio::test]
async fn memory_of_a_request_is_bounded_for_any_shape() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let limits = "[limits]\nrequest_timeout_ms = 600000\nworkspace_record_bytes_per_day = 0\n";
    let toml = format!("{limits}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 600_000));
    let gateway = TestGateway::start(&toml).await?;
    let builtins = ["email", "phone", "regex-prompt-injection"].map(|slug| json!({"slug": slug, "action": "redact"}));
    let redact = |label: &str| json!([{"pattern": "a", "label": label, "action": "redact"}]);
    let keys = [
        ("none", gateway.inference.clone()),
        ("built-in", key_under(&gateway, json!({"name": "b", "content_filter_builtins": builtins})).await?),
        ("a short label", key_under(&gateway, json!({"name": "s", "content_filters": redact("X")})).await?),
        ("a long label", key_under(&gateway, json!({"name": "l", "content_filters": redact(&"L".repeat(64))})).await?),
    ];
    for (_, key) in &keys {
        // Until the guardrail is known; and every part of the process has been used once.
        gateway.server.decide(&key.secret, body("acme/alone")).await?;
    }
    let bytes = shape_bytes();
    let mut excessive = Vec::new();
    for (shape, body) in shapes(bytes) {
        for (guardrail, key) in &keys {
            let (statuses, peak) = measure(&gateway, vec![decisions(&key.secret, &body)]).await?;
            let copies = peak / bytes;
            eprintln!("| {shape} | {guardrail} | {} | {} MiB | {copies} |", statuses[0], peak >> 20);
            // The provider answers another question.
            ensure!(![500, 503, 524].contains(&statuses[0]), "{shape}, {guardrail}: {statuses:?}");
            let most = (MOST_COPIES * bytes).max(bytes + structure_bytes(shape, bytes));
            if peak > most + OVERHEAD {
                excessive.push(format!("{shape}, {guardrail}: {} MiB", peak >> 20));
            }
        }
    }
    ensure!(excessive.is_empty(), "{excessive:#?}");
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// Returns a body of each shape in the formats of other providers.
fn shapes_of_other_formats(bytes: usize) -> Vec<(&'static str, &'static str, String)> {
    const QUESTION: &str = r#"{"type":"predicate","instructions":"?"}"#;
    let list = |part: &str| format!("[{}{part}]", fill(&format!("{part},"), bytes));
    let of =
        |input: &str, more: &str| format!(r#"{{"model":"acme/alone","input":{input},"questions":[{QUESTION}]{more}}}"#);
    let members = fill(r#""a":1,"#, bytes);
    let questions = |list: &str| format!(r#"{{"model":"acme/alone","input":"s","questions":{list}}}"#);
    let any = "/v1/decisions";
    vec![
        ("items of numbers", any, of(&list("1"), "")),
        ("items", any, of(&list(r#"{"role":"user","content":"a"}"#), "")),
        ("one item of many members", any, of(&format!(r#"[{{{members}"role":"user","content":"a"}}]"#), "")),
        (
            "many parts",
            any,
            of(&format!(r#"[{{"role":"user","content":{}}}]"#, list(r#"{"type":"input_text","text":"a"}"#)), ""),
        ),
        ("preferences of many members", any, of("\"s\"", &format!(r#","provider":{{{members}"sort":"price"}}"#))),
        ("a long order of providers", any, of("\"s\"", &format!(r#","provider":{{"order":{}}}"#, list("\"a\"")))),
        (
            "questions in an array",
            any,
            questions(&format!("[{}{QUESTION}]", fill(&format!("{QUESTION},"), bytes / 16))),
        ),
        (
            "questions with many members",
            any,
            questions(&format!(r#"[{{{members}"type":"predicate","instructions":"?"}}]"#)),
        ),
        ("questions of numbers", any, questions(&list("1"))),
        ("parts", "/v1beta/decisions", questions("{}").replace("\"s\"", &list(r#"{"type":"text","text":"a"}"#))),
    ]
}

#[tokio::test]
async fn memory_of_a_request_in_another_format_is_bounded() -> Result<()> {
    const FEW: usize = 4 << 20;
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let limits = "[limits]\nrequest_timeout_ms = 600000\n";
    let gateway =
        TestGateway::start(&format!("{limits}{}", providers_toml(&alpha.base_url(), &alpha.base_url(), 600_000)))
            .await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let mut excessive = Vec::new();
    for (shape, path, body) in shapes_of_other_formats(FEW) {
        let call = Call::post(path).key(&gateway.inference.secret).json(&body);
        let (statuses, peak) = measure(&gateway, vec![call]).await?;
        eprintln!("| {shape} | {} | {} MiB |", statuses[0], peak >> 20);
        ensure!(![500, 503, 524].contains(&statuses[0]), "{shape}: {statuses:?}");
        // As the body budget counts it: 256 bytes for each comma in the questions.
        let counted = if shape.starts_with("questions") { FEW + body.matches(',').count() * 256 } else { 0 };
        if peak > (MOST_COPIES * FEW).max(counted) + OVERHEAD {
            excessive.push(format!("{shape}: {} MiB", peak >> 20));
        }
    }
    ensure!(excessive.is_empty(), "{excessive:#?}");
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn memory_of_many_requests_is_bounded_by_the_body_budget() -> Result<()> {
    const BUDGET: usize = 64 << 20;
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let toml = format!(
        "[limits]\nrequest_timeout_ms = 600000\nmax_json_bytes = 8000000\nbody_memory_bytes = {}\n{}",
        // A workspace gets half.
        2 * BUDGET,
        providers_toml(&alpha.base_url(), &alpha.base_url(), 600_000)
    );
    let gateway = TestGateway::start(&toml).await?;
    let email = json!([{"slug": "email", "action": "redact"}]);
    let key = key_under(&gateway, json!({"name": "e", "content_filter_builtins": email})).await?;
    gateway.server.decide(&key.secret, body("acme/alone")).await?;
    let state = format!("[{}\"a\"]", fill("\"a\",", BYTES));
    let calls = (0..64).map(|_| decisions(&key.secret, of_state(&state))).collect();
    let (statuses, peak) = measure(&gateway, calls).await?;
    let count = |status: u16| statuses.iter().filter(|other| **other == status).count();
    eprintln!("64 at once: {} answered, {} rejected, {} MiB", count(200), count(429) + count(503), peak >> 20);
    ensure!(count(200) > 0 && count(200) + count(429) + count(503) == 64, "{statuses:?}");
    ensure!(peak <= BUDGET + 2 * OVERHEAD, "{} MiB", peak >> 20);
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// Sends requests, a few at a time, and fails unless all are answered.
async fn send_all(gateway: &TestGateway, calls: Vec<Call>) -> Result<Vec<serde_json::Value>> {
    let (address, mut answers) = (gateway.server.address(), Vec::new());
    for some in calls.chunks(8) {
        let mut running = JoinSet::new();
        for call in some {
            let call = call.clone();
            running.spawn(async move { call.send_within(address, Duration::from_mins(1)).await?.ok() });
        }
        while let Some(answer) = running.join_next().await {
            answers.push(answer??);
        }
    }
    Ok(answers)
}

/// Creates a preset, asks it some times, and returns the ids of the answers.
async fn ask_preset(gateway: &TestGateway, slug: &str, questions: &str, count: usize) -> Result<Vec<String>> {
    let preset = format!(r#"{{"model":"sandbox/decider","questions":{questions}}}"#);
    ensure!(preset.len() <= 64 << 10, "{}", preset.len());
    std::fs::write(gateway.instance.path().join("preset.json"), preset)?;
    gateway.instance.json(&["preset", "create", slug, "--from", "preset.json"]).await?;
    let body = json!({"model": format!("@preset/{slug}"), "questions": {}, "state": "It smokes."}).to_string();
    let ask = || Call::post("/api/v1/systemone").json(&body).key(&gateway.inference.secret);
    let answers = send_all(gateway, (0..count).map(|_| ask()).collect()).await?;
    answers.iter().map(|answer| Ok(answer["id"].as_str().context("no id")?.to_owned())).collect()
}

#[tokio::test]
async fn memory_of_evidence_and_labels_of_large_presets_is_bounded() -> Result<()> {
    const MOST: usize = 16 << 20;
    let limits = "[limits]\nrequest_timeout_ms = 600000\nworkspace_record_bytes_per_day = 0\n";
    let gateway = TestGateway::start(limits).await?;
    let many = (0..1_300).map(|at| format!(r#""{at}":{{"type":"noul","instructions":"smokes?"}}"#));
    let many = format!("{{{}}}", many.collect::<Vec<_>>().join(","));
    let options = (0..8).map(|at| format!(r#""{at}{}":null"#, "o".repeat(7_900))).collect::<Vec<_>>().join(",");
    let long = format!(r#"{{"q":{{"type":"choice","instructions":"?","criteria":{{{options}}}}}}}"#);
    let ids = ask_preset(&gateway, "many", &many, 100).await?;
    ask_preset(&gateway, "long", &long, 400).await?;
    let row = |id: &String| json!({"generation_id": id, "question": "7", "label": true, "source": "human"});
    let labels = json!({"labels": ids.iter().map(row).collect::<Vec<_>>()}).to_string();
    let key = &gateway.inference.secret;
    let get = |path: &str| Call::get(format!("/api/v1/evidence?preset=long{path}")).key(key);
    let label = Call::post("/api/v1/labels").key(&gateway.management.secret).json(labels);
    for (name, call) in [("labels", label), ("a page", get("&limit=1000")), ("an export", get("&format=csv"))] {
        // Every part of the process has been used once.
        for round in 0..2 {
            let (statuses, peak) = measure(&gateway, vec![call.clone()]).await?;
            eprintln!("| {name} | {} | {} MiB |", statuses[0], peak >> 20);
            ensure!(statuses == [200] && (round == 0 || peak <= MOST), "{name}: {statuses:?}, {} MiB", peak >> 20);
        }
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// Creates a guardrail of the largest patterns with so many versions, and returns its id.
async fn create_large_guardrail(gateway: &TestGateway, versions: usize) -> Result<String> {
    let key = &gateway.management.secret;
    let pattern = "x".repeat((64 << 10) / 64);
    let filters: Vec<_> = (0..64).map(|_| json!({"pattern": pattern, "label": "x", "action": "flag"})).collect();
    let create =
        Call::post("/api/v1/guardrails").key(key).json(json!({"name": "g", "content_filters": filters}).to_string());
    let created = gateway.server.send(&create).await?.json()?;
    let id = created["data"]["id"].as_str().context("no id")?.to_owned();
    let path = format!("/api/v1/guardrails/{id}");
    for number in 1..versions {
        let change = Call::new(Method::PATCH, &path).key(key).json(json!({"name": format!("g{number}")}).to_string());
        gateway.server.send(&change).await?.ok()?;
    }
    Ok(id)
}

#[tokio::test]
async fn memory_of_versions_of_large_guardrails_is_bounded() -> Result<()> {
    const SHARE: usize = 32 << 20;
    let limits = format!("[limits]\nbody_memory_bytes = {}\n", 2 * SHARE);
    let gateway = TestGateway::start(&limits).await?;
    let key = &gateway.management.secret;
    let path = format!("/api/v1/guardrails/{}", create_large_guardrail(&gateway, 100).await?);
    for limit in [10, 100] {
        let call = Call::get(format!("{path}/versions?limit={limit}")).key(key);
        let (statuses, peak) = measure(&gateway, vec![call]).await?;
        eprintln!("| {limit} versions | {} | {} MiB |", statuses[0], peak >> 20);
        ensure!(statuses == [200] && peak <= SHARE, "{limit}: {statuses:?}, {} MiB", peak >> 20);
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

/// A page of versions of each shape is bounded by what it holds: four times the text, and 256 bytes for each question or
/// option.
#[tokio::test]
async fn memory_of_versions_of_large_presets_is_bounded() -> Result<()> {
    const VERSIONS: usize = 100;
    let gateway = TestGateway::start("").await?;
    let key = &gateway.management.secret;
    let many = (0..1_300).map(|at| format!(r#""{at}":{{"type":"noul","instructions":"smokes?"}}"#)).collect::<Vec<_>>();
    let options = (0..250).map(|at| format!(r#""{at}":null"#)).collect::<Vec<_>>().join(",");
    let choice = |at| format!(r#""{at}":{{"type":"choice","instructions":"?","criteria":{{{options}}}}}"#);
    let choices = (0..23).map(choice).collect::<Vec<_>>();
    for (slug, questions, parts, limit) in [("many", many, 1_300, 100), ("choices", choices, 23 * 251, 50)] {
        let config = format!(r#"{{"model":"sandbox/decider","questions":{{{}}}}}"#, questions.join(","));
        ensure!((50 << 10..=64 << 10).contains(&config.len()), "{slug}: {} bytes", config.len());
        let path = format!("/api/v1/presets/{slug}");
        for _ in 0..VERSIONS {
            let add = Call::post(format!("{path}/decisions")).key(key).json(&config);
            gateway.server.send(&add).await?.ok()?;
        }
        let call = Call::get(format!("{path}/versions?limit={limit}")).key(key);
        let held = limit * (4 * (config.len() + 1_024) + parts * 256);
        let (statuses, peak) = measure(&gateway, vec![call]).await?;
        eprintln!("| {limit} versions of {slug} | {} | {} of {} MiB |", statuses[0], peak >> 20, held >> 20);
        ensure!(statuses == [200] && peak <= held, "{slug}: {statuses:?}, {} of {} MiB", peak >> 20, held >> 20);
    }
    gateway.server.stop().await
}

#[tokio::test]
async fn command_reads_lists_whose_pages_exceed_the_memory_of_bodies() -> Result<()> {
    const VERSIONS: usize = 20;
    let limits = "[limits]\nmax_json_bytes = 262144\nbody_memory_bytes = 4194304\n";
    let gateway = TestGateway::start(limits).await?;
    let id = create_large_guardrail(&gateway, VERSIONS).await?;
    let path = format!("/api/v1/guardrails/{id}/versions?limit=100");
    let page = gateway.server.send(&Call::get(path).key(&gateway.management.secret)).await?;
    ensure!(page.status == 413, "{}: {}", page.status, page.text());
    let list = gateway.instance.json(&["guardrail", "versions", &id]).await?;
    let versions = list["data"].as_array().context("no data")?;
    let numbers: Vec<u64> = versions.iter().filter_map(|version| version["version"].as_u64()).collect();
    ensure!(numbers == (1..=VERSIONS as u64).rev().collect::<Vec<_>>(), "{numbers:?}");
    ensure!(list["total_count"] == VERSIONS, "{}", list["total_count"]);
    gateway.server.stop().await
}

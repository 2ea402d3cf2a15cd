//! Bulk assignments to guardrails.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use tollgate_tests::{Call, Reply, Report};

use crate::gateway::TestGateway;

async fn assign(gateway: &TestGateway, guardrail: &str, hashes: &[&str]) -> Result<Reply> {
    let call = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&gateway.management.secret)
        .json(json!({ "key_hashes": hashes }).to_string());
    gateway.server.send(&call).await
}

async fn assigned(gateway: &TestGateway, guardrail: &str, hashes: &[&str]) -> Result<u64> {
    let body = assign(gateway, guardrail, hashes).await?.ok()?;
    ensure!(body.as_object().is_some_and(|members| members.len() == 1), "{body}");
    body["assigned_count"].as_u64().with_context(|| format!("no count: {body}"))
}

/// Returns the number of live keys with a guardrail, from the command line.
async fn holders(gateway: &TestGateway, guardrail: &str) -> Result<u64> {
    let keys = gateway.instance.json(&["key", "list", "--guardrail", guardrail]).await?;
    keys["total_count"].as_u64().with_context(|| format!("no number of keys: {keys}"))
}

#[tokio::test]
async fn assignment_counts_distinct_live_inference_keys_of_workspace() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let guardrail = instance.guardrail(&[]).await?;
    let other_workspace = instance.workspace("other").await?;
    let foreign = instance.key(&["--name", "foreign", "--workspace", &other_workspace]).await?.hash;
    let (one, disabled, deleted) = (
        instance.inference_key().await?.hash,
        instance.inference_key().await?.hash,
        instance.inference_key().await?.hash,
    );
    instance.json(&["key", "disable", &disabled]).await?;
    instance.json(&["key", "delete", &deleted]).await?;
    let unknown = "0".repeat(64);
    let upper = one.to_uppercase();
    let management = gateway.management.hash.clone();

    ensure!(assigned(&gateway, &guardrail, &[&unknown]).await? == 0, "an unknown hash counts");
    ensure!(assigned(&gateway, &guardrail, &[&foreign]).await? == 0, "another workspace's key counts");
    ensure!(assigned(&gateway, &guardrail, &[&deleted]).await? == 0, "a deleted key counts");
    ensure!(assigned(&gateway, &guardrail, &[&management]).await? == 0, "a management key counts");
    ensure!(assigned(&gateway, &guardrail, &[&upper, "x", "'; DROP TABLE api_keys; --", "\u{0}"]).await? == 0);
    ensure!(holders(&gateway, &guardrail).await? == 0);
    ensure!(assigned(&gateway, &guardrail, &[&disabled]).await? == 1, "a disabled key counts");
    let mixed = [&one, &one, &disabled, &unknown, &foreign, &deleted, &management, &one].map(String::as_str);
    ensure!(assigned(&gateway, &guardrail, &mixed).await? == 2, "duplicates count once, one that holds it counts");
    ensure!(holders(&gateway, &guardrail).await? == 2);

    let second = instance.guardrail(&[]).await?;
    ensure!(assigned(&gateway, &second, &[&one]).await? == 1);
    ensure!(holders(&gateway, &second).await? == 1 && holders(&gateway, &guardrail).await? == 1, "it is not replaced");

    let theirs = instance.guardrail(&["--workspace", &other_workspace]).await?;
    ensure!(assigned(&gateway, &theirs, &[&one, &foreign]).await? == 1);
    ensure!(holders(&gateway, &second).await? == 1, "a key of another workspace was taken");
    Ok(())
}

#[tokio::test]
async fn unknown_guardrail_returns_404() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let gone = gateway.instance.guardrail(&[]).await?;
    gateway.instance.json(&["guardrail", "delete", &gone]).await?;
    let long = "a".repeat(3_000);
    let bare = gone.replace('-', "");
    let mut report = Report::default();
    for id in [&gone, "nonsense", "..", "%2e%2e", "%00", "a%2Fb", "'%20OR%201=1", "%ff", &long, &bare] {
        report.case(id, assign(&gateway, id, &[&gateway.inference.hash]).await?.error(404, ""));
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn invalid_assignment_body_is_rejected_without_changes() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let hash = &gateway.inference.hash;
    let twice = format!(r#"{{"key_hashes":["{hash}"],"key_hashes":["{hash}"]}}"#);
    let empty_element = format!(r#"{{"key_hashes":["{hash}",""]}}"#);
    let mut report = Report::default();
    for body in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        r#"{"key_hashes":null}"#,
        r#"{"key_hashes":[]}"#,
        r#"{"key_hashes":[""]}"#,
        &empty_element,
        r#"{"key_hashes":"a"}"#,
        r#"{"key_hashes":{"0":"a"}}"#,
        r#"{"key_hashes":[1]}"#,
        r#"{"key_hashes":[null]}"#,
        r#"{"key_hashes":[["a"]]}"#,
        r#"{"key_hashes":["\ud800"]}"#,
        r#"{"Key_Hashes":["a"]}"#,
        &twice,
        &format!(r#"{{"key_hashes":{}"a"{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
    ] {
        let call = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
            .key(&gateway.management.secret)
            .json(body);
        report.case(&format!("{body:.60}"), gateway.server.send(&call).await?.envelope(400));
    }
    ensure!(holders(&gateway, &guardrail).await? == 0, "something was assigned");
    // Unknown members are ignored.
    let call = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&gateway.management.secret)
        .json(format!(r#"{{"odd":[1],"key_hashes":["{hash}"]}}"#));
    ensure!(gateway.server.send(&call).await?.ok()?["assigned_count"] == 1);
    report.finish()
}

#[tokio::test]
async fn hundred_thousand_hashes_are_assigned_in_one_call() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let mut hashes: Vec<String> = (0..99_998).map(|i| format!("{i:064x}")).collect();
    hashes.push(gateway.inference.hash.clone());
    hashes.push(gateway.inference.hash.clone());
    let hashes: Vec<&str> = hashes.iter().map(String::as_str).collect();
    let since = Instant::now();
    ensure!(assigned(&gateway, &guardrail, &hashes).await? == 1);
    // The benchmark checks the real bound; this build is not optimised.
    ensure!(since.elapsed() < Duration::from_secs(20), "it took {:?}", since.elapsed());
    Ok(())
}

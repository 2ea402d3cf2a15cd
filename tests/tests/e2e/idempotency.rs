//! Repeated promotions with an idempotency key.

use anyhow::{Result, ensure};
use tollgate_tests::{Call, Report, promotion};

use crate::gateway::TestGateway;
use crate::promote::{file_id, sparse};

fn keyed(gateway: &TestGateway, file: &str, key: &str) -> Call {
    promotion(&gateway.inference.secret, "sess_a", file).header("idempotency-key", key)
}

#[tokio::test]
async fn retry_returns_first_document_in_requested_format() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let one = gateway.instance.put("sess_a", "one", b"1").await?;
    let two = gateway.instance.put("sess_a", "two", b"2").await?;
    let first = gateway.server.send(&keyed(&gateway, &one, "key-1")).await?.ok()?;
    let again = gateway.server.send(&keyed(&gateway, &one, "key-1")).await?.ok()?;
    ensure!(first == again, "{first} and {again}");
    let shaped =
        gateway.server.send(&keyed(&gateway, &one, "key-1").header("user-agent", "OpenAI/Python 3")).await?.ok()?;
    ensure!(shaped["id"] == first["id"] && shaped["_shape"] == "openai", "{shaped}");
    ensure!(gateway.server.send(&keyed(&gateway, &one, "key-2")).await?.ok()?["id"] != first["id"]);

    gateway.server.send(&keyed(&gateway, &two, "key-1")).await?.envelope(400)?;
    let elsewhere = promotion(&gateway.inference.secret, "sess_b", &one).header("idempotency-key", "key-1");
    gateway.server.send(&elsewhere).await?.envelope(400)?;
    // Idempotency keys are scoped to an API key.
    let other = gateway.instance.inference_key().await?;
    let theirs = promotion(&other.secret, "sess_a", &two).header("idempotency-key", "key-1");
    ensure!(gateway.server.send(&theirs).await?.ok()?["id"] != first["id"]);

    // The document remains after its container file is removed and the server is restarted.
    let TestGateway { instance, server, inference, management } = gateway;
    std::fs::remove_dir_all(instance.blobs().join("containers"))?;
    server.stop().await?;
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    ensure!(gateway.server.send(&keyed(&gateway, &one, "key-1")).await?.ok()?["id"] == first["id"]);
    Ok(())
}

#[tokio::test]
async fn concurrent_retries_create_one_document() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    sparse(&gateway, "sess_a", "large", 20 << 20).await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (call, address) = (keyed(&gateway, &file_id("large"), "together"), gateway.server.address());
        calls.spawn(async move { call.send(address).await?.ok() });
    }
    let mut ids = std::collections::BTreeSet::new();
    while let Some(file) = calls.join_next().await {
        ids.insert(file??["id"].to_string());
    }
    ensure!(ids.len() == 1, "{ids:?}");
    ensure!(gateway.instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn failed_promotions_are_not_stored() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let id = file_id("later");
    gateway.server.send(&keyed(&gateway, &id, "key")).await?.envelope(404)?;
    gateway.instance.put("sess_a", "later", b"now").await?;
    gateway.server.send(&keyed(&gateway, &id, "key")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn invalid_idempotency_key_returns_400() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let id = gateway.instance.put("sess_a", "a", b"x").await?;
    let long = "k".repeat(256);
    let mut report = Report::default();
    for key in ["", "a b", "é", "a\tb", &long] {
        report.case(&format!("{key:.20}"), gateway.server.send(&keyed(&gateway, &id, key)).await?.envelope(400));
    }
    let odd = promotion(&gateway.inference.secret, "sess_a", &id).header("idempotency-key", b"\xff\xfe");
    report.case("not UTF-8", gateway.server.send(&odd).await?.envelope(400));
    report.case("the longest", gateway.server.send(&keyed(&gateway, &id, &long[..255])).await?.ok());
    ensure!(gateway.instance.document_blobs()?.len() == 1);
    report.finish()
}

//! All operations concurrently.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Call, decisions, promotion};

use crate::gateway::{TestGateway, body};

#[tokio::test]
async fn concurrent_operations_are_all_answered() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let file = gateway.instance.put("sess_a", "a", &[b'a'; 10_000]).await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let (inference, management) = (&gateway.inference.secret, &gateway.management.secret);
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(management)
        .json(format!(r#"{{"key_hashes":["{}"]}}"#, gateway.inference.hash));
    let kinds = [
        decisions(inference, body("sandbox/decider")),
        promotion(inference, "sess_a", &file),
        assign,
        Call::get("/api/v1/model/sandbox/decider").key(inference),
        Call::get("/api/v1/models/count").key(management),
    ];
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let (call, address) = (kinds[number % kinds.len()].clone(), gateway.server.address());
        calls.spawn(async move { call.send(address).await?.ok() });
    }
    // Another process writes at the same time.
    for _ in 0..3 {
        gateway.instance.inference_key().await?;
    }
    while let Some(answer) = calls.join_next().await {
        answer??;
    }
    ensure!(gateway.instance.document_blobs()?.len() == 40);
    let listed = gateway.instance.json(&["usage", "list", "--limit", "1000"]).await?;
    ensure!(crate::costs::rows(&listed)?.len() == 40);
    gateway.server.ensure_healthy().await?;
    gateway.server.stop().await
}

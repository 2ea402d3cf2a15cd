//! Everything at once.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Call, decisions, promotion};

use crate::world::{World, body};

#[tokio::test]
async fn all_operations_at_once_are_all_answered() -> Result<()> {
    let world = World::start("").await?;
    let file = world.instance.put("sess_a", "a", &[b'a'; 10_000]).await?;
    let guardrail = world.instance.guardrail(&[]).await?;
    let (inference, management) = (&world.inference.secret, &world.management.secret);
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(management)
        .json(format!(r#"{{"key_hashes":["{}"]}}"#, world.inference.hash));
    let kinds = [
        decisions(inference, body("sandbox/decider")),
        promotion(inference, "sess_a", &file),
        assign,
        Call::get("/api/v1/model/sandbox/decider").key(inference),
        Call::get("/api/v1/models/count").key(management),
    ];
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let (call, address) = (kinds[number % kinds.len()].clone(), world.server.address());
        calls.spawn(async move { call.send(address).await?.ok() });
    }
    // Another process writes in the meantime.
    for _ in 0..3 {
        world.instance.inference_key().await?;
    }
    while let Some(answer) = calls.join_next().await {
        answer??;
    }
    ensure!(world.instance.document_blobs()?.len() == 40);
    let listed = world.instance.json(&["usage", "list", "--limit", "1000"]).await?;
    ensure!(crate::costs::rows(&listed)?.len() == 40);
    world.server.ensure_healthy().await?;
    world.server.stop().await
}

//! Presets on the command line, and in requests on every server.

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use tollgate_tests::Call;

use crate::gateway::{PROMISED, QUESTIONS, TestGateway, outdated_for};

#[tokio::test]
async fn preset_is_used_on_every_server_within_a_second_of_its_change() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let file = instance.path().join("triage.json");
    let beside = instance.serve_beside().await?;
    let ask = Call::post("/api/v1/systemone")
        .json(r#"{"model":"@preset/triage","questions":{},"state":"It smokes. I want my money back."}"#)
        .key(&gateway.inference.secret);
    let unknown = gateway.server.send(&ask).await?;
    ensure!(unknown.status == 404, "{}", unknown.text());
    std::fs::write(&file, format!(r#"{{"models":["sandbox/decider"],"questions":{QUESTIONS}}}"#))?;
    let created = instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await?;
    ensure!(created["designated_version"]["version"] == 1, "{created}");
    for server in [&gateway.server, &beside] {
        outdated_for(server, &ask, 200, Instant::now()).await?;
    }
    let answer = gateway.server.send(&ask).await?.ok()?;
    ensure!(answer["answers"]["refund"]["type"] == "noul", "{answer}");
    let path = format!("/api/v1/generation?id={}", answer["id"].as_str().unwrap_or_default());
    let record = gateway.server.send(&Call::get(path).key(&gateway.inference.secret)).await?.ok()?;
    ensure!(record["data"]["preset_id"] == created["id"] && record["data"]["preset_version"] == 1, "{record}");

    std::fs::write(&file, r#"{"model":"sandbox/decider","questions":{"angry":{"type":"noul","instructions":"?"}}}"#)?;
    instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await?;
    let rolled_back = instance.json(&["preset", "designate", "triage", "1"]).await?;
    ensure!(rolled_back["designated_version"]["config"]["questions"]["refund"].is_object(), "{rolled_back}");
    let shown = instance.json(&["preset", "show", "triage"]).await?;
    ensure!(shown == rolled_back, "{shown}");
    instance.json(&["preset", "archive", "triage"]).await?;
    let archived = Instant::now();
    for server in [&gateway.server, &beside] {
        let outdated = outdated_for(server, &ask, 404, archived).await?;
        ensure!(outdated <= PROMISED, "the preset was in force for {outdated:?}");
    }
    let listed = instance.json(&["preset", "list"]).await?;
    ensure!(listed["total_count"] == 1 && listed["data"][0]["status"] == "archived", "{listed}");
    let log = instance.json(&["audit", "list", "--action", "preset.update"]).await?;
    ensure!(log["data"][0]["details"]["after"]["status"] == json!("archived"), "{log}");
    instance.json(&["audit", "verify"]).await?;
    let said = instance.refused(&["preset", "designate", "triage", "3"]).await?;
    ensure!(said.contains("not found"), "{said}");
    Ok(())
}

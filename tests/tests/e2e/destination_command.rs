//! `tollgate destination create|update|delete|test`.

use anyhow::{Result, ensure};
use serde_json::json;
use tollgate_tests::{Behaviour, Instance, Upstream};

const PRIVATE: &str = "[egress]\nallow_private_addresses = true\n";

#[tokio::test]
async fn destination_is_created_updated_and_deleted() -> Result<()> {
    let receiver = Upstream::start(Behaviour::json("{}")).await?;
    let instance = Instance::new(PRIVATE)?;
    let workspace = instance.workspace("acme").await?;
    let url = format!("{}/traces", receiver.base_url());
    std::fs::write(instance.path().join("secret"), "a-very-long-signing-secret\n")?;
    let arguments = [
        &["destination", "create", "--name", "hook", "--type", "webhook", "--endpoint", &url][..],
        &["--secret-file", "secret", "--workspace", "acme"],
    ];
    let made = instance.json(&arguments.concat()).await?;
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    ensure!(made["workspace_id"] == workspace.as_str() && made["type"] == "webhook", "{made}");
    ensure!(!made.to_string().contains("signing-secret"), "{made}");
    ensure!(receiver.take_requests().len() == 1, "the test request");

    let record = json!({"name": "of the file", "config": {"headers": {"x-team": "s3cret-header"}}});
    std::fs::write(instance.path().join("changes.json"), record.to_string())?;
    let arguments = ["destination", "update", &id, "--from", "changes.json", "--name", "of the option"];
    let changed = instance.json(&arguments).await?;
    ensure!(changed["name"] == "of the option" && changed["config"]["headers"]["x-team"].is_string(), "{changed}");
    ensure!(!changed.to_string().contains("s3cret-header"), "{changed}");
    let paused = instance.json(&["destination", "update", &id, "--enabled", "false"]).await?;
    ensure!(paused["enabled"] == false && paused["name"] == "of the option", "{paused}");
    ensure!(instance.json(&["destination", "test", &id]).await?["reached"] == true);

    let deleted = instance.json(&["destination", "delete", &id]).await?;
    ensure!(deleted["deleted"] == true, "{deleted}");
    for command in ["test", "delete"] {
        let said = instance.refused(&["destination", command, &id]).await?;
        ensure!(said.contains(&format!("destination {id} not found")), "{said}");
    }
    let log = instance.json(&["audit", "list", "--action", "destination."]).await?;
    let actions: Vec<&str> =
        log["data"].as_array().into_iter().flatten().filter_map(|entry| entry["action"].as_str()).collect();
    let expected = ["destination.delete", "destination.update", "destination.update", "destination.create"];
    ensure!(actions == expected, "{log}");
    Ok(())
}

#[tokio::test]
async fn invalid_destinations_are_rejected_with_a_sentence() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(500)).await?;
    let instance = Instance::new(PRIVATE)?;
    instance.workspace("acme").await?;
    let url = format!("{}/traces", receiver.base_url());
    std::fs::write(instance.path().join("bad.json"), r#"{"privacy_mod":true}"#)?;
    for (arguments, reason) in [
        (vec!["create"], "name is required"),
        (vec!["create", "--name", "n", "--type", "otel-collector", "--endpoint", &url], "The test call"),
        (vec!["create", "--from", "bad.json"], "nearest known member is \"privacy_mode\""),
        (vec!["create", "--from", "missing.json"], "cannot read missing.json"),
        (vec!["create", "--name", "n", "--secret-file", "sk-misplaced"], "the file of --secret-file cannot be read"),
        (vec!["update", "01990000-0000-7000-8000-000000000001", "--name", "n"], "not found"),
        (vec!["update", "01990000-0000-7000-8000-000000000001"], "No update fields provided"),
    ] {
        let said = instance.refused(&[&["destination"][..], &arguments].concat()).await?;
        ensure!(said.contains(reason) && !said.contains("sk-misplaced"), "{arguments:?}: {said}");
    }
    Ok(())
}

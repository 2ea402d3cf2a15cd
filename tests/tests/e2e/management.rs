//! Limits and guardrails that the command line manages and HTTP enforces.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tollgate_tests::{Call, Instance, Report};

use crate::gateway::{TestGateway, body};
use crate::limits::gateway;

/// The time within which changes take effect on every replica.
const IN_FORCE: Duration = Duration::from_millis(1_100);

async fn decide(gateway: &TestGateway) -> Result<tollgate_tests::Reply> {
    tokio::time::sleep(IN_FORCE).await;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await
}

fn write(instance: &Instance, name: &str, record: &Value) -> Result<String> {
    let file = instance.path().join(name);
    std::fs::write(&file, record.to_string())?;
    Ok(file.display().to_string())
}

#[tokio::test]
async fn guardrail_from_file_is_enforced_changed_and_restored() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    let instance = &gateway.instance;
    let block = json!({"name": "from the file", "content_filters": [{"pattern": "smokes", "action": "block", "label": "SMOKE"}]});
    let file = write(instance, "block.json", &block)?;
    let made = instance.json(&["guardrail", "create", "--from", &file]).await?;
    ensure!(made["name"] == "from the file", "{made}");
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    instance.json(&["guardrail", "assign", &id, &gateway.inference.hash]).await?;
    let refused = decide(&gateway).await?.envelope(403)?;
    let metadata = &refused["error"]["metadata"];
    ensure!(metadata["guardrail_id"] == id.as_str() && metadata["label"] == "SMOKE", "{refused}");
    ensure!(metadata["path"] == "state", "{refused}");

    let change = json!({"content_filters": null, "ignored_providers": ["alpha", "beta"]});
    write(instance, "change.json", &change)?;
    let changed = instance.piped(&["guardrail", "update", &id, "--from", "-"], "change.json").await?;
    ensure!(changed["version"] == 2 && changed["ignored_providers"] == json!(["alpha", "beta"]), "{changed}");
    let refused = decide(&gateway).await?.envelope(403)?;
    ensure!(refused["error"]["metadata"]["rule"] == "ignored_providers", "{refused}");

    let path = format!("/api/v1/guardrails/{id}");
    let over_http = gateway.server.send(&Call::get(&path).key(&gateway.management.secret)).await?.ok()?;
    let shown = instance.json(&["guardrail", "show", &id]).await?;
    let keys = instance.json(&["key", "list", "--guardrail", &id]).await?;
    ensure!(keys["total_count"] == 1 && keys["data"][0]["id"] == gateway.inference.id.as_str(), "{keys}");
    ensure!(shown == over_http["data"], "the same record both ways: {shown} and {over_http}");

    instance.json(&["guardrail", "unassign", &id, &gateway.inference.hash]).await?;
    decide(&gateway).await?.ok()?;
    instance.json(&["guardrail", "default", &id]).await?;
    let refused = decide(&gateway).await?.envelope(403)?;
    ensure!(refused["error"]["metadata"]["guardrail_id"] == id.as_str(), "{refused}");
    instance.json(&["guardrail", "restore", &id, "1"]).await?;
    let refused = decide(&gateway).await?.envelope(403)?;
    ensure!(refused["error"]["metadata"]["label"] == "SMOKE", "{refused}");
    let versions = instance.json(&["guardrail", "versions", &id]).await?;
    let told: Vec<u64> =
        versions["data"].as_array().into_iter().flatten().filter_map(|one| one["version"].as_u64()).collect();
    ensure!(told == [3, 2, 1], "{versions}");
    let cleared = instance.json(&["guardrail", "default", "--none"]).await?;
    ensure!(cleared["default_guardrail_id"].is_null(), "{cleared}");
    decide(&gateway).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn key_limit_is_changed_shown_and_removed() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    let (instance, hash) = (&gateway.instance, gateway.inference.hash.as_str());
    decide(&gateway).await?.ok()?;
    let updated = instance
        .json(&[
            "key",
            "update",
            hash,
            "--limit-usd",
            "0.000001",
            "--limit-reset",
            "daily",
            "--rpm",
            "1000000",
            "--name",
            "new",
        ])
        .await?;
    ensure!(updated["name"] == "new" && updated["requests_per_minute"] == 1_000_000, "{updated}");
    decide(&gateway).await?.envelope(402)?;
    let shown = instance.json(&["key", "show", hash]).await?;
    let limit = &shown["budgets"][0];
    ensure!(limit["scope"] == "key_limit" && limit["reset_interval"] == "daily", "{shown}");
    let number = |name: &str| limit[name].as_f64().unwrap_or(f64::NAN);
    ensure!((number("spend_usd") - 0.000_004_2).abs() < 1e-12, "what was spent before counts in its day: {shown}");
    ensure!((number("remaining_usd") + 0.000_003_2).abs() < 1e-12, "{shown}");
    let kept = instance.json(&["key", "update", hash, "--limit-usd", "1"]).await?;
    ensure!(kept["limit_reset"] == "daily", "the period stays: {kept}");
    decide(&gateway).await?.ok()?;
    let lifted = instance.json(&["key", "update", hash, "--no-limit", "--no-rpm"]).await?;
    ensure!(lifted["limit"].is_null() && lifted["limit_reset"].is_null(), "{lifted}");
    ensure!(lifted["requests_per_minute"].is_null(), "{lifted}");
    let expired = instance.json(&["key", "update", hash, "--expires-at", &tollgate_tests::seconds_from_now(1)]).await?;
    ensure!(expired["expires_at"].is_string(), "{expired}");
    decide(&gateway).await?.error(401, "Invalid API key")?;
    instance.json(&["key", "update", hash, "--no-expiry"]).await?;
    decide(&gateway).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn workspace_budgets_are_enforced_and_shown() -> Result<()> {
    let (gateway, _alpha) = gateway(Duration::ZERO, "").await?;
    let instance = &gateway.instance;
    decide(&gateway).await?.ok()?;
    let set = instance.json(&["workspace", "budget", "--daily", "1", "--monthly", "20"]).await?;
    ensure!(set["data"][0]["limit_usd"] == 1 && set["total_count"] == 2, "{set}");
    let said = instance.refused(&["workspace", "budget", "--weekly", "20"]).await?;
    ensure!(said == "error: the monthly budget of 20 USD must be more than the weekly one of 20 USD", "{said}");
    instance.json(&["workspace", "credit", "--add-usd", "2.5"]).await?;
    let shown = instance.json(&["workspace", "show"]).await?;
    ensure!(shown["credit_usd"] == 2.5, "what was spent before the credit is not taken from it: {shown}");
    let shown = instance.json(&["workspace", "budget"]).await?;
    ensure!(
        shown["data"][0]["reset_interval"] == "daily" && shown["data"][1]["reset_interval"] == "monthly",
        "{shown}"
    );
    ensure!(shown["data"][0]["spend_usd"].as_f64().is_some_and(|spent| spent > 0.0), "{shown}");
    instance.json(&["workspace", "budget", "--daily", "0.0000001", "--monthly", "none"]).await?;
    let refused = decide(&gateway).await?.envelope(402)?;
    ensure!(refused["error"]["metadata"]["scope"] == "workspace", "{refused}");
    instance.json(&["workspace", "budget", "--daily", "none"]).await?;
    instance.json(&["workspace", "credit", "--add-usd=-2.5"]).await?;
    decide(&gateway).await?.envelope(402)?;
    let unlimited = instance.json(&["workspace", "unlimited"]).await?;
    ensure!(unlimited["deleted"] == true, "{unlimited}");
    decide(&gateway).await?.ok()?;
    instance.json(&["workspace", "rates", "--rpm", "1"]).await?;
    decide(&gateway).await?.ok()?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(429)?;
    let lifted = instance.json(&["workspace", "rates", "--rpm", "none", "--tpm", "none"]).await?;
    ensure!(lifted["requests_per_minute"].is_null(), "{lifted}");
    decide(&gateway).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn failed_commands_print_one_sentence() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let guardrail = instance.guardrail(&[]).await?;
    let (hash, management) = (gateway.inference.hash.clone(), gateway.management.hash.clone());
    let nobody = "0".repeat(64);
    let none = "01990000-0000-7000-8000-000000000001";
    write(instance, "list.json", &json!([]))?;
    write(instance, "empty.json", &json!({}))?;
    write(instance, "wrong.json", &json!({"allowed_models": ["acme/nobody"]}))?;
    std::fs::write(instance.path().join("broken.json"), "{")?;
    let mut report = Report::default();
    for (command, part) in [
        (format!("key update {hash}"), "No update fields provided"),
        (format!("key update {nobody} --no-limit"), "not found"),
        (format!("key update {hash} --limit-usd 0"), "more than 0 USD"),
        (format!("key update {hash} --limit-usd 1e99"), "is not an amount of USD"),
        (format!("key update {hash} --limit-reset daily"), "limit_reset: requires a limit"),
        (format!("key update {hash} --expires-at 2020-01-01T00:00:00Z"), "is in the past"),
        (format!("key update {management} --rpm 5"), "a management key cannot call models"),
        ("key create --management --limit-usd 1".to_owned(), "limit: is not a member of a management key"),
        (format!("key show {nobody}"), "not found"),
        ("key show sk-tg-v1-00".to_owned(), "key not found"),
        ("guardrail create --from missing.json".to_owned(), "cannot read missing.json"),
        ("guardrail create --from broken.json".to_owned(), "not valid JSON"),
        ("guardrail create --from list.json".to_owned(), "JSON object"),
        ("guardrail create --from wrong.json".to_owned(), "allowed_models[0]: "),
        (format!("guardrail update {guardrail} --from empty.json"), "No update fields provided"),
        (format!("guardrail update {guardrail} --from wrong.json"), "acme/nobody"),
        (format!("guardrail update {none} --from wrong.json"), "not found"),
        (format!("guardrail versions {none}"), "not found"),
        (format!("guardrail restore {guardrail} 7"), "version 7 not found"),
        (format!("guardrail default {none}"), "not found"),
        (format!("guardrail unassign {none} {hash}"), "not found"),
        (format!("workspace show {none}"), "not found"),
        (format!("workspace unlimited {none}"), "not found"),
        ("workspace budget --daily 0".to_owned(), "more than 0 USD"),
        ("workspace budget --daily much".to_owned(), "neither an amount of USD nor \"none\""),
        ("workspace budget --daily 5 --weekly 4".to_owned(), "must be more than the daily one"),
        ("workspace rates --rpm 0".to_owned(), "from 1 to 4294967295"),
        ("workspace rates --tpm 1.5".to_owned(), "neither a whole number"),
        ("workspace credit --add-usd 9223373".to_owned(), "is not an amount of USD"),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let said = instance.run(&arguments).await?;
        let (told, fine) = (String::from_utf8(said.stderr)?, said.status.success());
        report.case(&command, {
            let one = told.lines().count() == 1 && said.stdout.is_empty();
            if !fine && one && told.contains(part) { Ok(()) } else { Err(anyhow::anyhow!("{told}")) }
        });
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn command_line_shows_changes_made_over_http() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let call = Call::post("/api/v1/guardrails").key(&gateway.management.secret);
    let made = gateway.server.send(&call.json(r#"{"name":"http","limit_usd":0.10,"reset_interval":"weekly"}"#)).await?;
    ensure!(made.status == 201, "{}", made.text());
    ensure!(made.text().contains(r#""limit_usd":0.1,"#), "{}", made.text());
    let id = made.json()?["data"]["id"].as_str().unwrap_or_default().to_owned();
    let listed = gateway.instance.json(&["guardrail", "list"]).await?;
    ensure!(listed["data"][0]["id"] == id.as_str() && listed["data"][0]["limit_usd"] == 0.1, "{listed}");
    let path = format!("/api/v1/guardrails/{id}");
    let delete = Call::new(Method::DELETE, &path).key(&gateway.management.secret);
    ensure!(gateway.server.send(&delete).await?.ok()? == json!({"deleted": true}));
    gateway.server.send(&delete).await?.error(404, "Resource not found")?;
    let said = gateway.instance.refused(&["guardrail", "show", &id]).await?;
    ensure!(said == format!("error: guardrail {id} not found"), "{said}");
    Ok(())
}

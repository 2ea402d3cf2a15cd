//! The audit log: recorded changes and detected tampering.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate_tests::{Call, Instance, SecondHand};

use crate::costs::rows;
use crate::gateway::TestGateway;

async fn entries(instance: &Instance) -> Result<Vec<Value>> {
    let listed = instance.json(&["audit", "list", "--limit", "10000"]).await?;
    Ok(rows(&listed)?.clone())
}

/// Returns the newest entry of an action.
async fn entry(instance: &Instance, action: &str) -> Result<Value> {
    let all = entries(instance).await?;
    let found = all.iter().find(|entry| entry["action"].as_str().is_some_and(|own| own.starts_with(action)));
    found.cloned().with_context(|| format!("no {action} in {all:?}"))
}

fn assignment(gateway: &TestGateway, guardrail: &str, secret: &str) -> Call {
    Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(secret)
        .json(json!({ "key_hashes": [gateway.inference.hash] }).to_string())
}

#[tokio::test]
async fn entries_are_filtered_by_actor_action_subject_and_time() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let guardrail = instance.guardrail(&[]).await?;
    let call = assignment(&gateway, &guardrail, &gateway.management.secret);
    gateway.server.send(&call).await?.ok()?;
    let list = async |options: &[&str]| {
        let listed = instance.json(&[&["audit", "list"], options].concat()).await?;
        anyhow::Ok(rows(&listed)?.clone())
    };
    let all = list(&[]).await?;
    let actor = format!("key:{}", gateway.management.id);
    let by_actor = list(&["--actor", &actor]).await?;
    ensure!(by_actor.len() == 1 && by_actor[0]["action"] == "guardrail.assign_keys", "{by_actor:?}");
    let keys = list(&["--action", "key."]).await?;
    let expected: Vec<&Value> =
        all.iter().filter(|entry| entry["action"].as_str().is_some_and(|own| own.contains("key."))).collect();
    ensure!(keys.len() > 1 && keys.iter().eq(expected.iter().copied()), "{keys:?}");
    ensure!(list(&["--action", "key.", "--limit", "1"]).await? == keys[..1], "the newest one");
    let by_subject = list(&["--subject", &gateway.inference.id]).await?;
    ensure!(!by_subject.is_empty() && by_subject.len() < all.len(), "{by_subject:?}");
    ensure!(list(&["--since", "2020-01-01"]).await? == all);
    ensure!(list(&["--since", "2999-01-01"]).await?.is_empty());
    ensure!(list(&["--action", "key.", "--actor", &actor]).await?.is_empty());
    ensure!(instance.refused(&["audit", "list", "--since", "yesterday"]).await?.contains("--since"));
    Ok(())
}

#[tokio::test]
async fn changes_are_audited_over_http_and_command_line() -> Result<()> {
    let mut gateway = TestGateway::start("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n").await?;
    gateway.instance.set_env("USER", "mallory");
    gateway.instance.set_env("SUDO_USER", "alice");
    let instance = &gateway.instance;
    let guardrail = instance.guardrail(&[]).await?;
    let by_command = entry(instance, "guardrail.").await?;
    let actor = by_command["actor"].as_str().context("no actor")?;
    ensure!(actor.starts_with("user:") && actor != "user:mallory", "the environment was believed: {by_command}");
    ensure!(by_command["source"].as_str().is_some_and(|source| source.ends_with(", sudo of alice")), "{by_command}");
    ensure!(by_command["outcome"] == "done" && by_command["subject"].to_string().contains(&guardrail), "{by_command}");

    let call = assignment(&gateway, &guardrail, &gateway.management.secret);
    gateway.server.send(&call.header("x-forwarded-for", "198.51.100.7, 203.0.113.9")).await?.ok()?;
    let over_http = entry(instance, "guardrail.assign").await?;
    ensure!(over_http["actor"] == format!("key:{}", gateway.management.id), "{over_http}");
    ensure!(over_http["source"] == "203.0.113.9", "whom the trusted proxy names: {over_http}");

    instance.json(&["key", "disable", &gateway.inference.hash]).await?;
    let disabled = entry(instance, "key.").await?;
    ensure!(disabled["subject"] == format!("key {}", gateway.inference.id), "{disabled}");
    // Changes without an effect are not recorded.
    let before = entries(instance).await?.len();
    instance.json(&["key", "disable", &gateway.inference.hash]).await?;
    ensure!(entries(instance).await?.len() == before, "what changes nothing leaves no entry");

    let all = instance.json(&["audit", "list"]).await?.to_string();
    for secret in [&gateway.inference.secret, &gateway.management.secret] {
        ensure!(!all.contains(secret.as_str()), "a secret is in the log");
    }
    let verified = instance.json(&["audit", "verify"]).await?;
    ensure!(verified["verified"] == true && verified["oldest"] == 1, "{verified}");
    Ok(())
}

#[tokio::test]
async fn forwarded_address_is_ignored_from_untrusted_proxy() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let call = assignment(&gateway, &guardrail, &gateway.management.secret);
    gateway.server.send(&call.header("x-forwarded-for", "203.0.113.9")).await?.ok()?;
    ensure!(entry(&gateway.instance, "guardrail.assign").await?["source"] == "127.0.0.1");
    Ok(())
}

#[tokio::test]
async fn denied_changes_are_recorded_as_counts() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let mut calls = JoinSet::new();
    for number in 0..300 {
        let call = match number % 3 {
            0 | 1 => assignment(&gateway, &guardrail, &gateway.inference.secret),
            _ => assignment(&gateway, "0199aaaa-0000-7000-8000-000000000000", &gateway.management.secret),
        };
        let address = gateway.server.address();
        calls.spawn(async move { call.send(address).await });
    }
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    while let Some(reply) = calls.join_next().await {
        *statuses.entry(reply??.status).or_default() += 1;
    }
    ensure!(statuses == [(403, 200), (404, 100)].into(), "{statuses:?}");
    // Requests with unknown keys and reads are not recorded.
    ensure!(gateway.server.send(&assignment(&gateway, &guardrail, "sk-tg-v1-nobody")).await?.status == 401);
    ensure!(gateway.server.send(&Call::get("/api/v1/model/a/b").key(&gateway.inference.secret)).await?.status == 404);
    gateway.server.stop().await?;
    let refused: Vec<Value> =
        entries(&gateway.instance).await?.into_iter().filter(|entry| entry["outcome"] == "denied").collect();
    ensure!((2..=4).contains(&refused.len()), "an entry a key and minute: {refused:?}");
    let counted = |id: &str, status: &str| -> u64 {
        let own = refused.iter().filter(|entry| entry["actor"] == format!("key:{id}"));
        own.filter_map(|entry| entry["details"]["statuses"][status].as_u64()).sum()
    };
    ensure!(counted(&gateway.inference.id, "403") == 200, "{refused:?}");
    ensure!(counted(&gateway.management.id, "404") == 100, "{refused:?}");
    ensure!(refused[0]["source"] == "127.0.0.1" && refused[0]["action"] == "request.denied", "{refused:?}");
    ensure!(refused[0]["subject"] == "POST /guardrails/{id}/assignments/keys", "{refused:?}");
    ensure!(gateway.instance.json(&["audit", "verify"]).await?["verified"] == true);
    Ok(())
}

#[tokio::test]
async fn denied_command_is_recorded_with_and_without_a_server() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let delete = ["key", "delete", "00000000-0000-7000-8000-000000000001"];
    let denied = async || {
        let all = entries(instance).await?.into_iter();
        anyhow::Ok(all.filter(|entry| entry["outcome"] == "denied").collect::<Vec<Value>>())
    };
    ensure!(instance.refused(&delete).await?.contains("not found"));
    gateway.server.stop().await?;
    ensure!(denied().await?.len() == 1, "{:?}", denied().await?);
    ensure!(instance.refused(&delete).await?.contains("not found"));
    let all = denied().await?;
    ensure!(all.len() == 2, "{all:?}");
    for member in ["actor", "action", "subject", "details"] {
        ensure!(all[0][member] == all[1][member], "{member}: {all:?}");
    }
    Ok(())
}

/// Returns the violation that `audit verify` reports for a log with tampering.
async fn fault(instance: &Instance, arguments: &[&str]) -> Result<Value> {
    let output = instance.run(&[&["audit", "verify", "--json"], arguments].concat()).await?;
    ensure!(output.status.code() == Some(1), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.starts_with("error: the audit log was modified: "), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(found["verified"] == false && said.contains(found["fault"].as_str().context("no fault")?), "{found}");
    Ok(found)
}

#[tokio::test]
async fn verify_detects_tampering() -> Result<()> {
    let instance = Instance::new("")?;
    for number in 0..6 {
        instance.workspace(&format!("w{number}")).await?;
    }
    let whole = instance.json(&["audit", "verify"]).await?;
    let newest = whole["newest"].as_str().context("no newest")?.to_owned();
    let database = SecondHand::of(&instance).await?;
    let last = database.number("SELECT MAX(seq) FROM audit_log").await?;
    ensure!(newest.starts_with(&format!("{last}:")), "{whole}");

    database.execute("CREATE TABLE kept AS SELECT * FROM audit_log").await?;
    database.execute("CREATE TABLE kept_state AS SELECT * FROM audit_state").await?;
    database.execute("CREATE TABLE kept_workspaces AS SELECT * FROM workspaces").await?;
    let restore = "DELETE FROM audit_log; INSERT INTO audit_log SELECT * FROM kept; DELETE FROM audit_state; \
                   INSERT INTO audit_state SELECT * FROM kept_state; DELETE FROM workspaces WHERE name = 'goes on'";
    let cut_end = format!("DELETE FROM audit_log WHERE seq = {last}");
    let insert = "INSERT INTO audit_log SELECT -2, at, actor, source, action, subject, outcome, details, previous_hash, \
                  hash, version, state FROM audit_log WHERE seq = 2";
    for (change, at_fault) in [
        ("UPDATE audit_log SET subject = 'another' WHERE seq = 2", "entry 2: hash mismatch"),
        ("UPDATE audit_log SET details = '{}' WHERE seq = 3", "entry 3: hash mismatch"),
        ("UPDATE audit_log SET hash = zeroblob(32) WHERE seq = 3", "entry 3: hash mismatch"),
        ("DELETE FROM audit_log WHERE seq = 3", "entry 2 is followed by entry 4"),
        ("UPDATE audit_log SET previous_hash = zeroblob(32) WHERE seq = 4", "entry 4: previous-hash mismatch"),
        ("UPDATE audit_log SET details = 'no JSON' WHERE seq = 4", "entry 4: hash mismatch"),
        ("UPDATE audit_log SET details = details || ' ' WHERE seq = 4", "entry 4: hash mismatch"),
        ("UPDATE audit_log SET source = '' WHERE seq = 1 AND source IS NULL OR seq = 2", "hash mismatch"),
        ("UPDATE audit_log SET hash = 'text' WHERE seq = 4", "entry 4"),
        (insert, "entry number -2 is invalid"),
        ("DELETE FROM audit_log WHERE seq < 3", "the log begins with entry 3"),
        (cut_end.as_str(), "was written (end truncated)"),
        ("DELETE FROM audit_log", "(log truncated)"),
        ("DELETE FROM audit_state", "the row of the table audit_state is missing"),
    ] {
        database.execute(change).await?;
        let found = fault(&instance, &[]).await?;
        ensure!(found["fault"].to_string().contains(at_fault), "{change}: {found}");
        // Changes are still possible after tampering.
        instance.workspace("goes on").await?;
        database.execute(restore).await?;
    }
    // Only an external anchor reveals a consistently rewritten end of the log.
    let cut = format!(
        "DELETE FROM workspaces WHERE rowid = (SELECT MAX(rowid) FROM workspaces); \
         DELETE FROM audit_log WHERE seq = {last}; \
         UPDATE audit_state SET newest_seq = {last} - 1, \
         newest_hash = (SELECT hash FROM audit_log WHERE seq = {last} - 1)"
    );
    database.execute(&cut).await?;
    let found = fault(&instance, &["--anchor", &newest]).await?;
    ensure!(found["fault"].to_string().contains(&format!("entry {last} is missing")), "{found}");
    database.execute("DELETE FROM workspaces; INSERT INTO workspaces SELECT * FROM kept_workspaces").await?;
    database.execute(restore).await?;
    ensure!(instance.json(&["audit", "verify", "--anchor", &newest]).await?["verified"] == true);
    let told = instance.run(&["audit", "verify"]).await?;
    ensure!(String::from_utf8(told.stdout)?.contains(&format!("Newest: {newest}")));
    database.close().await
}

#[tokio::test]
async fn verify_names_rows_that_were_changed_without_an_entry() -> Result<()> {
    let instance = Instance::new("")?;
    let guardrail = instance.guardrail(&[]).await?;
    let (key, other) = (instance.inference_key().await?, instance.key(&["--name", "other"]).await?);
    instance.json(&["guardrail", "assign", &guardrail, &key.hash]).await?;
    instance.json(&["key", "disable", &other.hash]).await?;
    let whole = instance.json(&["audit", "verify"]).await?;
    ensure!(whole["verified"] == true && whole["rows"] == json!([]), "{whole}");
    let database = SecondHand::of(&instance).await?;
    let tables = ["api_keys", "guardrails", "workspaces"];
    for table in tables {
        database.execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await?;
    }
    let copy = "INSERT INTO api_keys SELECT zeroblob(16), zeroblob(32), label, name, scope, workspace_id, \
                management_access, management_workspaces, disabled, deleted, expires_at, limit_pico, limit_reset, NULL, \
                created_at, requests_per_minute, tokens_per_minute, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
                audit_hash \
                FROM kept_api_keys WHERE disabled = 1";
    let cases = [
        (format!("UPDATE api_keys SET disabled = 0 WHERE hash = x'{}'", other.hash), "api_keys", other.id.as_str()),
        (format!("UPDATE api_keys SET limit_pico = 9 WHERE hash = x'{}'", key.hash), "api_keys", key.id.as_str()),
        (copy.to_owned(), "api_keys", "00000000-0000-0000-0000-000000000000"),
        ("UPDATE api_keys SET guardrail_id = NULL".to_owned(), "api_keys", "not known"),
        (format!("DELETE FROM api_keys WHERE hash = x'{}'", other.hash), "api_keys", "not known"),
        ("UPDATE guardrails SET rules = '{\"zdr\":false}'".to_owned(), "guardrails", guardrail.as_str()),
        ("UPDATE workspaces SET credit_pico = 1000000".to_owned(), "workspaces", "-"),
    ];
    for (change, table, row) in cases {
        database.execute(&change).await?;
        let output = instance.run(&["audit", "verify", "--json"]).await?;
        ensure!(output.status.code() == Some(1), "{change}: {}", output.status);
        let found: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(found["verified"] == false && found["fault"].is_null(), "{change}: {found}");
        let named = &found["rows"][0];
        ensure!(named["table"] == table && named["row"].to_string().contains(row), "{change}: {found}");
        ensure!(String::from_utf8(output.stderr)?.starts_with(&format!("error: {table} ")), "{found}");
        for table in tables {
            // Keys reference the other tables, so they are removed first and restored last.
            database.execute(&format!("PRAGMA foreign_keys = OFF; DELETE FROM {table}")).await?;
            database.execute(&format!("INSERT INTO {table} SELECT * FROM kept_{table}")).await?;
        }
        ensure!(instance.json(&["audit", "verify"]).await?["verified"] == true, "{change} was not restored");
    }
    // Storage figures are not managed fields.
    database.execute("UPDATE workspaces SET storage_used_bytes = 7, document_count = 1").await?;
    ensure!(instance.json(&["audit", "verify"]).await?["verified"] == true);
    database.close().await
}

#[tokio::test]
async fn concurrent_processes_write_one_hash_chain() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let beside = gateway.instance.serve_beside().await?;
    let guardrails = [gateway.instance.guardrail(&[]).await?, gateway.instance.guardrail(&[]).await?];
    let before = entries(&gateway.instance).await?.len();
    let instance = std::sync::Arc::new(gateway.instance);
    let mut changes = JoinSet::new();
    for number in 0..8 {
        let instance = std::sync::Arc::clone(&instance);
        changes.spawn(async move { instance.workspace(&format!("w{number}")).await.map(drop) });
    }
    for number in 0..40 {
        let address = if number % 2 == 0 { gateway.server.address() } else { beside.address() };
        let call = Call::post(format!("/api/v1/guardrails/{}/assignments/keys", guardrails[number / 2 % 2]))
            .key(&gateway.management.secret)
            .json(json!({ "key_hashes": [gateway.inference.hash] }).to_string());
        changes.spawn(async move { call.send(address).await?.ok().map(drop) });
    }
    while let Some(ended) = changes.join_next().await {
        ended??;
    }
    let after = entries(&instance).await?;
    let made = after.iter().filter(|entry| entry["action"] == "workspace.create").count();
    ensure!(made >= 8 && after.len() > before + 8, "{made} of {}", after.len());
    let verified = instance.json(&["audit", "verify"]).await?;
    ensure!(verified["verified"] == true && verified["entries"] == after.len(), "{verified}");
    Ok(())
}

#[tokio::test]
async fn retention_removes_oldest_entries_and_chain_verifies() -> Result<()> {
    let instance = Instance::new("[retention]\naudit_days = 30\n")?;
    for number in 0..6 {
        instance.workspace(&format!("w{number}")).await?;
    }
    let database = SecondHand::of(&instance).await?;
    let last = database.number("SELECT MAX(seq) FROM audit_log").await?;
    database.execute(&format!("UPDATE audit_log SET at = at - 31 * 86400000 WHERE seq < {last}")).await?;
    let server = instance.serve().await?;
    for _ in 0..200 {
        if database.number("SELECT MIN(seq) FROM audit_log").await? == last {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let verified = instance.json(&["audit", "verify"]).await?;
    ensure!(verified["verified"] == true && verified["oldest"] == last, "{verified}");
    ensure!(verified["removed_by_retention"] == last - 1, "{verified}");
    server.stop().await?;
    ensure!(instance.json(&["doctor"]).await.is_ok());
    database.close().await
}

#[tokio::test]
async fn invalid_anchor_or_retention_is_rejected() -> Result<()> {
    let instance = Instance::new("")?;
    instance.json(&["migrate", "up"]).await?;
    let said = instance.refused(&["audit", "verify", "--anchor", "7"]).await?;
    ensure!(said.contains("64 hexadecimal digits"), "{said}");
    for (toml, key) in [
        ("usage_days = 31", "usage_days"),
        ("audit_days = 0", "audit_days"),
        ("dead_letter_days = 99999999", "dead_letter_days"),
    ] {
        instance.configure(&format!("[retention]\n{toml}\n"))?;
        let said = instance.refused(&["audit", "list"]).await?;
        ensure!(said.contains(key) && said.contains("must be"), "{said}");
    }
    Ok(())
}

//! `tollgate workspace rename|delete`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::Instant;
use tollgate_tests::{Instance, Key};

use crate::gateway::{TestGateway, body, outdated_for};

async fn in_workspace(instance: &Instance, workspace: &str) -> Result<Key> {
    instance.key(&["--name", "tests", "--workspace", workspace]).await
}

#[tokio::test]
async fn workspace_is_renamed() -> Result<()> {
    let instance = Instance::new("")?;
    let id = instance.workspace("acme").await?;
    let renamed = instance.json(&["workspace", "rename", "acme", "--name", "acme labs"]).await?;
    ensure!(renamed["id"] == id.as_str() && renamed["name"] == "acme labs", "{renamed}");
    let shown = instance.json(&["workspace", "show", "acme labs"]).await?;
    ensure!(shown["id"] == id.as_str() && shown["name"] == "acme labs", "{shown}");
    let said = instance.refused(&["workspace", "rename", "nobody", "--name", "x"]).await?;
    ensure!(said.contains("not found"), "{said}");
    let said = instance.refused(&["workspace", "rename", "acme labs", "--name", ""]).await?;
    ensure!(said.contains("1 to 100 characters"), "{said}");
    let log = instance.json(&["audit", "list", "--action", "workspace.update"]).await?;
    ensure!(log["data"].as_array().is_some_and(|entries| entries.len() == 1), "{log}");
    instance.json(&["audit", "verify"]).await.map(drop)
}

#[tokio::test]
async fn workspace_is_deleted_with_named_contents_only() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let workspace = instance.workspace("acme").await?;
    let key = in_workspace(instance, &workspace).await?;
    instance.guardrail(&["--workspace", &workspace]).await?;
    let decided = gateway.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    std::fs::write(instance.path().join("local"), "x")?;
    let put = ["container", "put", "sess_a", "a.txt", "local", "--workspace", &workspace];
    let file = instance.json(&put).await?["id"].as_str().context("no id")?.to_owned();
    gateway.server.promote(&key.secret, "sess_a", &file).await?.ok()?;

    for with in [None, Some("keys,documents")] {
        let mut arguments = vec!["workspace", "delete", "acme"];
        arguments.extend(with.iter().flat_map(|with| ["--with", with]));
        let said = instance.refused(&arguments).await?;
        ensure!(said.contains("guardrails: 1, container_files: 1") && said.contains("with"), "{said}");
        gateway.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    let since = Instant::now();
    let arguments = ["workspace", "delete", "acme", "--with", "keys,documents,guardrails,container_files"];
    let deleted = instance.json(&arguments).await?;
    ensure!(deleted["deleted"] == true, "{deleted}");
    let call = tollgate_tests::decisions(&key.secret, body("sandbox/decider"));
    let commanded = since.elapsed();
    let outdated = outdated_for(&gateway.server, &call, 401, since).await?;
    ensure!(outdated < commanded + Duration::from_secs(1), "the key lived for {outdated:?}");

    let listed = instance.json(&["workspace", "list"]).await?;
    ensure!(!listed.to_string().contains(&workspace), "{listed}");
    for command in
        [&["workspace", "show"][..], &["key", "create", "--workspace"], &["guardrail", "list", "--workspace"]]
    {
        for name in ["acme", &workspace] {
            let said = instance.refused(&[command, &[name]].concat()).await?;
            ensure!(said.contains("not found"), "{command:?}: {said}");
        }
    }
    // The records and the books stay. Calls within the second of the deletion may have been answered, too.
    let records = instance.json(&["usage", "list", "--workspace", &workspace]).await?;
    let records: &Vec<Value> = records["data"].as_array().context("no records")?;
    ensure!(records.len() >= 3, "{records:?}");
    let id = decided["id"].as_str().context("no id")?;
    ensure!(instance.json(&["usage", "show", id]).await?["id"] == id);
    let audit = instance.json(&["doctor", "--audit"]).await?;
    ensure!(audit["ok"] == true && audit["records"].as_u64().is_some_and(|records| records >= 3), "{audit}");
    let verified = instance.json(&["audit", "verify"]).await?;
    ensure!(verified["verified"] == true, "{verified}");
    let log = instance.json(&["audit", "list", "--action", "workspace.delete"]).await?;
    ensure!(log["data"][0]["subject"] == format!("workspace {workspace}"), "{log}");
    // The name is free again.
    ensure!(instance.workspace("acme").await? != workspace);
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn default_workspace_is_not_deleted() -> Result<()> {
    let instance = Instance::new("")?;
    let default = instance.default_workspace().await?;
    for with in ["keys", "keys,documents,guardrails,destinations"] {
        let said = instance.refused(&["workspace", "delete", &default, "--with", with]).await?;
        ensure!(said.contains("the default workspace cannot be deleted"), "{said}");
    }
    let keys = instance.json(&["key", "list"]).await?;
    ensure!(keys["data"].as_array().is_some_and(|keys| !keys.is_empty()), "nothing was deleted: {keys}");
    Ok(())
}

#[tokio::test]
async fn name_that_exists_is_rejected_unless_duplicates_are_allowed() -> Result<()> {
    let instance = Instance::new("")?;
    let create_key = ["key", "create", "--name", "ci"];
    let create_workspace = ["workspace", "create", "--name", "acme"];
    let key = instance.json(&create_key).await?;
    let workspace = instance.json(&create_workspace).await?;
    let (key, workspace) = (key["id"].as_str().context("no id")?, workspace["id"].as_str().context("no id")?);
    // Management keys and other workspaces have names of their own.
    instance.json(&[&create_key[..], &["--management"]].concat()).await?;
    instance.json(&[&create_key[..], &["--workspace", "acme"]].concat()).await?;
    let other_key = instance.json(&["key", "create", "--name", "other"]).await?;
    let other_workspace = instance.json(&["workspace", "create", "--name", "other"]).await?;
    let (other_key, other_workspace) =
        (other_key["id"].as_str().context("no id")?, other_workspace["id"].as_str().context("no id")?);
    for command in [
        &create_key[..],
        &["key", "create", "--name", "ci", "--management"],
        &["key", "create", "--name", "ci", "--workspace", "acme"],
        &["key", "update", other_key, "--name", "ci"],
        &create_workspace,
        &["workspace", "rename", other_workspace, "--name", "acme"],
    ] {
        let said = instance.refused(command).await?;
        ensure!(said.contains("exists already") && said.contains("--allow-duplicate"), "{command:?}: {said}");
        instance.json(&[command, &["--allow-duplicate"]].concat()).await?;
    }
    // The own name is no other one, and the names of what is deleted are free.
    instance.json(&["key", "update", key, "--name", "ci", "--allow-duplicate", "--rpm", "9"]).await?;
    instance.json(&["workspace", "create", "--name", "once"]).await?;
    instance.json(&["workspace", "rename", "once", "--name", "once"]).await?;
    instance.json(&["workspace", "delete", "once"]).await?;
    instance.json(&["workspace", "create", "--name", "once"]).await?;
    instance.json(&["workspace", "show", workspace]).await?;
    // A name that nobody chose is not unique.
    for command in [&["key", "create"][..], &["key", "create"], &["workspace", "create"], &["workspace", "create"]] {
        instance.json(command).await?;
    }
    Ok(())
}

#[tokio::test]
async fn concurrent_commands_with_one_name_succeed_once() -> Result<()> {
    let instance = Instance::new("")?;
    instance.json(&["workspace", "list"]).await?;
    for command in [&["key", "create", "--name", "ci"][..], &["workspace", "create", "--name", "acme"]] {
        let (one, other) = tokio::try_join!(instance.run(command), instance.run(command))?;
        ensure!(one.status.success() != other.status.success(), "{command:?}: {one:?} {other:?}");
    }
    Ok(())
}

//! The operator's socket: who may use it, and with which rights.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Call, Instance, is_root};

use crate::gateway::{TestGateway, body};

/// Returns the sockets of an instance.
fn sockets(instance: &Instance) -> Result<Vec<PathBuf>> {
    let folder = instance.path().join("data/tollgate.db.sockets");
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

fn only_socket(instance: &Instance) -> Result<PathBuf> {
    let found = sockets(instance)?;
    ensure!(found.len() == 1, "{found:?}");
    found.into_iter().next().context("no socket")
}

fn mode(path: &Path) -> Result<u32> {
    Ok(path.symlink_metadata()?.permissions().mode() & 0o777)
}

#[tokio::test]
async fn operator_manages_everything_and_reads_content_without_a_key() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let TestGateway { instance, server, .. } = &gateway;
    let socket = only_socket(instance)?;
    let folder = socket.parent().context("no folder")?;
    ensure!((mode(folder)?, mode(&socket)?) == (0o700, 0o600), "{:o} {:o}", mode(folder)?, mode(&socket)?);
    ensure!(server.output().contains(&socket.display().to_string()), "the log does not name the socket");

    let other = instance.workspace("other").await?;
    let create = Call::post("/api/v1/guardrails").json(format!(r#"{{"name":"g","workspace_id":"{other}"}}"#));
    let created = create.clone().header("x-tollgate-sudo-user", "alice").send_over(&socket).await?;
    ensure!(created.status == 201, "{}", created.text());
    let id = created.json()?["data"]["id"].as_str().context("no id")?.to_owned();
    let entries = instance.json(&["audit", "list", "--action", "guardrail.create"]).await?;
    let entry = &entries["data"][0];
    let (_, mine) = (&entry["subject"], instance.json(&["audit", "list", "--action", "workspace.create"]).await?);
    ensure!(entry["actor"] == mine["data"][0]["actor"], "{entry} instead of {mine}");
    ensure!(entry["source"].as_str().is_some_and(|source| source.ends_with(", sudo of alice")), "{entry}");
    // The same call without the socket needs a key.
    server.send(&create).await?.envelope(401)?;
    server.send(&create.header("x-tollgate-sudo-user", "alice")).await?.envelope(401)?;

    let file = instance.put("sess_a", "a.txt", b"content").await?;
    let document = server.promote(&gateway.inference.secret, "sess_a", &file).await?.ok()?;
    let document = document["id"].as_str().context("no id")?;
    let get = async |path: &str| Call::get(format!("/api/v1{path}")).send_over(&socket).await;
    for path in [format!("/files/{document}/content"), format!("/containers/sess_a/files/{file}/content")] {
        ensure!(get(&path).await?.text() == "content", "{path}");
    }
    ensure!(get("/files").await?.ok()?["data"][0]["id"] == document);
    let elsewhere = get(&format!("/files?workspace_id={other}")).await?.ok()?;
    ensure!(elsewhere["data"] == Value::Array(Vec::new()), "{elsewhere}");
    get(&format!("/files/{document}/content?workspace_id={other}")).await?.envelope(404)?;
    get(&format!("/guardrails/{id}")).await?.ok()?;
    // The operator has no key: it can neither read its own nor call a model.
    get("/key").await?.error(404, "the operator has no key")?;
    let decide = Call::post("/api/v1/api/alpha/decisions").json(body("sandbox/decider"));
    decide.send_over(&socket).await?.envelope(403)?;
    Ok(())
}

#[tokio::test]
async fn socket_ends_with_its_server_and_replaces_those_of_dead_servers() -> Result<()> {
    let instance = Instance::on_file("")?;
    let first = instance.serve().await?;
    let dead = only_socket(&instance)?;
    first.kill().await?;
    ensure!(dead.exists(), "a killed server leaves its socket behind");
    let second = instance.serve().await?;
    let socket = only_socket(&instance)?;
    ensure!(socket != dead, "the socket of the dead server is left");
    Call::get("/api/v1/guardrails").send_over(&socket).await?.ok()?;
    second.stop().await?;
    ensure!(sockets(&instance)?.is_empty(), "a stop leaves the socket behind");
    Ok(())
}

/// Another user is rejected although the permissions of the files admit it. Needs root, to become that user.
#[tokio::test]
async fn foreign_user_is_rejected() -> Result<()> {
    if !is_root()? {
        return Ok(());
    }
    let gateway = TestGateway::start("").await?;
    let socket = only_socket(&gateway.instance)?;
    for path in socket.ancestors().take_while(|path| *path != Path::new("/tmp") && path.parent().is_some()) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777))?;
    }
    let curl = ["curl", "-s", "--unix-socket", &socket.display().to_string(), "http://t/api/v1/guardrails"];
    let as_user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let called = tokio::process::Command::new("setpriv").args(as_user).args(curl).output().await?;
    let answer: Value = serde_json::from_slice(&called.stdout).with_context(|| format!("{called:?}"))?;
    ensure!(answer["error"]["code"] == 403, "{answer}");
    ensure!(answer["error"]["message"] == "This socket serves the user of the server and root only", "{answer}");
    Ok(())
}

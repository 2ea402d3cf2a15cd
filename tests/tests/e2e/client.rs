//! The command line as a client: over the socket of a server, by `--url`, and without a server.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tollgate_tests::{Instance, Server};

use crate::catalogue::row;

fn folder(instance: &Instance) -> PathBuf {
    instance.path().join("data/tollgate.db.sockets")
}

/// Returns the names of all members, with those of the records inside.
fn shape(value: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if let Some(members) = value.as_object() {
            names.extend(members.keys().cloned());
            open.extend(members.values());
        }
    }
    names
}

/// Runs the commands in one way; returns the shapes of their documents, and the actions and the kinds of actors in the
/// audit log.
async fn outcomes(instance: &Instance, way: &[&str], name: &str) -> Result<(Vec<BTreeSet<String>>, Vec<String>)> {
    let run = async |arguments: &[&str]| instance.json(&[arguments, way].concat()).await;
    let before = entries(instance).await?.len();
    let key = run(&["key", "create", "--name", name, "--limit-usd", "1.50", "--limit-reset", "daily"]).await?;
    let id = key["id"].as_str().context("no id")?.to_owned();
    let guardrail = run(&["guardrail", "create", "--name", name]).await?;
    let guarded = guardrail["id"].as_str().context("no id")?.to_owned();
    let mut shapes = vec![shape(&key), shape(&guardrail)];
    for command in [
        &["key", "show", name][..],
        &["key", "update", &id, "--rpm", "7", "--no-limit"],
        &["guardrail", "assign", &guarded, name],
        &["key", "list", "--guardrail", &guarded],
        &["guardrail", "unassign", &guarded, &id],
        &["guardrail", "versions", &guarded],
        &["key", "rotate", name],
        &["destination", "list"],
        &["usage", "list", "--key", name],
        &["usage", "sum", "--by", "key", "--key", name, "--workspace", "default"],
        &["usage", "sum", "--by", "reason", "--key", &id],
        &["audit", "list", "--limit", "1"],
        &["catalogue", "list", "--output-modalities", "decisions"],
        &["catalogue", "import", "rows.json", "--dry-run"],
        &["catalogue", "import", "rows.json"],
        &["catalogue", "show", "acme/one"],
        &["container", "put", "sess_a", "f", "rows.json"],
        &["guardrail", "delete", &guarded],
        &["key", "delete", name],
    ] {
        shapes.push(shape(&run(command).await.with_context(|| format!("{command:?} {way:?}"))?));
    }
    let mut entries = entries(instance).await?;
    entries.truncate(entries.len() - before);
    let noted = entries.iter().map(|entry| {
        let actor = entry["actor"].as_str().unwrap_or_default();
        format!("{} by {}", entry["action"].as_str().unwrap_or_default(), actor.split(':').next().unwrap_or_default())
    });
    Ok((shapes, noted.collect()))
}

/// Returns the entries of the audit log, the newest first.
async fn entries(instance: &Instance) -> Result<Vec<Value>> {
    let log = instance.json(&["audit", "list", "--limit", "1000"]).await?;
    Ok(log["data"].as_array().cloned().unwrap_or_default())
}

fn url(server: &Server) -> String {
    format!("http://{}/api/v1", server.address())
}

#[tokio::test]
async fn command_has_one_outcome_with_and_without_a_server() -> Result<()> {
    let instance = Instance::new("")?;
    let management = instance.management_key().await?;
    std::fs::write(instance.path().join("key"), &management.secret)?;
    std::fs::write(instance.path().join("rows.json"), json!([row("acme/one", "acme/one", "text")]).to_string())?;
    let (shapes, noted) = outcomes(&instance, &[], "alone").await?;
    ensure!(noted.len() == 9 && noted.iter().all(|entry| entry.ends_with(" by user")), "{noted:?}");
    let server = instance.serve().await?;
    let over_socket = outcomes(&instance, &[], "socket").await?;
    ensure!(over_socket == (shapes.clone(), noted.clone()), "{over_socket:?}");
    let (by_url, of_key) = outcomes(&instance, &["--url", &url(&server), "--key-file", "key"], "url").await?;
    ensure!(by_url == shapes, "{by_url:?}");
    let expected: Vec<String> = noted.iter().map(|entry| entry.replace(" by user", " by key")).collect();
    ensure!(of_key == expected, "{of_key:?}");
    let said = instance.refused(&["key", "list", "--url", &url(&server)]).await?;
    ensure!(said.contains("TOLLGATE_MANAGEMENT_KEY"), "{said}");
    let gone = url(&server);
    server.stop().await?;
    let said = instance.refused(&["key", "list", "--url", &gone, "--key-file", "key"]).await?;
    ensure!(said.contains("the server did not answer"), "{said}");
    Ok(())
}

#[tokio::test]
async fn socket_of_a_dead_server_or_another_file_is_ignored() -> Result<()> {
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    server.kill().await?;
    ensure!(folder(&instance).read_dir()?.count() == 1, "a killed server leaves its socket behind");
    instance.json(&["key", "create", "--name", "a"]).await?;
    std::fs::write(folder(&instance).join("0.sock"), "no socket")?;
    instance.json(&["key", "create", "--name", "b"]).await?;
    ensure!(instance.json(&["key", "list"]).await?["total_count"] == 2);
    Ok(())
}

#[tokio::test]
async fn server_that_stops_in_the_middle_is_one_sentence() -> Result<()> {
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    std::fs::create_dir_all(folder(&instance))?;
    let listener = UnixListener::bind(folder(&instance).join("server.sock"))?;
    let refusing = instance.refused(&["key", "create", "--name", "a"]);
    let closing = async {
        while let Ok(accepted) = listener.accept().await {
            drop(accepted);
        }
    };
    let said = tokio::select! {
        said = refusing => said?,
        () = closing => anyhow::bail!("the listener failed"),
    };
    ensure!(said.contains("runs and does not answer"), "{said}");
    std::fs::remove_file(folder(&instance).join("server.sock"))?;
    ensure!(instance.json(&["key", "list"]).await?["total_count"] == 0, "nothing is half done");
    Ok(())
}

/// A command takes the lock of the servers shared, as the test does here.
#[tokio::test]
async fn commands_without_a_server_run_at_the_same_time() -> Result<()> {
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    let mut lock = instance.database().into_os_string();
    lock.push(".serving");
    let lock = std::fs::File::open(lock)?;
    lock.lock_shared()?;
    let create = async |name: &'static str| instance.json(&["key", "create", "--name", name]).await;
    let (one, other) = tokio::join!(create("a"), create("b"));
    ensure!(one?["id"] != other?["id"]);
    lock.unlock()?;
    lock.lock()?;
    let said = instance.refused(&["key", "list"]).await?;
    ensure!(said.contains("another process uses the database alone"), "{said}");
    Ok(())
}

/// Another user can neither enter the folder nor put a socket of its own there. Needs root, to become that user.
#[tokio::test]
async fn foreign_user_gets_a_sentence() -> Result<()> {
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    for path in folder(&instance).ancestors().skip(1).take_while(|path| *path != Path::new("/tmp")) {
        let Ok(()) = std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)) else { return Ok(()) };
    }
    let program = tollgate_tests::binary_folder()?.join("tollgate").display().to_string();
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program, "key", "list"]);
    let database = instance.database().display().to_string();
    command.env("TOLLGATE__STORAGE__URL", format!("sqlite://{database}")).current_dir("/");
    let Ok(called) = command.output().await else { return Ok(()) };
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    if said.contains("setpriv") {
        return Ok(());
    }
    ensure!(!called.status.success() && said.lines().count() == 1, "{said}");
    ensure!(said.contains("run the command as the user of the server, or use --url"), "{said}");
    server.stop().await
}

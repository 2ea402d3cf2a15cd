//! The status of running servers, as commands ask for it.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::net::UnixListener;
use tollgate_tests::{Behaviour, Instance, Upstream, record};

use crate::gateway::{ANSWER, TestGateway, body};

/// Runs a command with `--json` that may fail; returns its record and whether it succeeded.
async fn document(instance: &Instance, arguments: &[&str]) -> Result<(Value, bool)> {
    let output = instance.run(&[arguments, &["--json"]].concat()).await?;
    let document = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((record(document), output.status.success()))
}

async fn text(instance: &Instance, arguments: &[&str]) -> Result<String> {
    let output = instance.run(arguments).await?;
    Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn status_shows_running_servers_and_their_providers() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(401)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    gateway.decide(body("acme/pair")).await?;
    let (status, ok) = document(&gateway.instance, &["status"]).await?;
    ensure!(ok && status["ok"] == true, "{status}");
    let server = &status["servers"][0];
    ensure!(server["state"] == "ready" && server["version"] == env!("CARGO_PKG_VERSION"), "{status}");
    ensure!(server["address"] == gateway.server.address().to_string(), "{status}");
    let stores = server["stores"].as_array().context("no stores")?;
    ensure!(stores.len() == 3 && stores.iter().all(|store| store["ready"] == true), "{status}");
    ensure!(server["journal"]["writable"] == true, "{status}");
    let providers = server["providers"].as_array().context("no providers")?;
    let of = |slug: &str| providers.iter().find(|one| one["provider"] == slug).context("the provider is missing");
    ensure!(of("alpha")?["state"] == "credential_rejected", "{status}");
    ensure!(of("alpha")?["last_error"]["upstream_status"] == 401, "{status}");
    ensure!(of("beta")?["state"] == "ok" && of("beta")?["accept_rate"] == 1.0, "{status}");
    let processes = status["processes"].as_array().context("no processes")?;
    ensure!(processes.len() == 1 && processes[0]["has_journal"] == true, "{status}");
    ensure!(!status.to_string().contains("alpha-secret"), "{status}");
    let variables = server["variables"].as_array().context("no variables")?;
    ensure!(variables.iter().any(|name| name == "ALPHA_API_KEY"), "{status}");

    let shown = text(&gateway.instance, &["status"]).await?;
    for part in ["State:", "ready", "credential rejected", "provider_auth_failed (401)", "Journal:"] {
        ensure!(shown.contains(part), "{part}: {shown}");
    }
    ensure!(!shown.contains('\u{1b}'), "colours outside a terminal");
    Ok(())
}

#[tokio::test]
async fn status_shows_rejected_credential_in_red_on_a_terminal_only() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(401)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(502)?;
    let shown = gateway.instance.run_on_terminal(&["status"]).await?;
    let red = |text: &str| text.lines().any(|line| line.contains("\u{1b}[31malpha") && line.contains("credential"));
    ensure!(red(&shown), "{shown:?}");
    ensure!(!red(&text(&gateway.instance, &["status"]).await?));
    Ok(())
}

#[tokio::test]
async fn status_fails_without_a_server_and_shows_every_server() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let second = gateway.instance.serve_beside().await?;
    let (status, ok) = document(&gateway.instance, &["status"]).await?;
    ensure!(ok && status["servers"].as_array().is_some_and(|servers| servers.len() == 2), "{status}");
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|one| one["id"].to_string()).collect()
    };
    let (listed, _) = document(&gateway.instance, &["journal", "list"]).await?;
    ensure!(ids(&status["servers"]) == ids(&listed["data"]), "{status} {listed}");
    let TestGateway { instance, server, .. } = gateway;
    // A killed server leaves its socket behind.
    server.kill().await?;
    let (status, ok) = document(&instance, &["status"]).await?;
    ensure!(ok && status["servers"][0]["address"] == second.address().to_string(), "{status}");
    ensure!(status["servers"].as_array().is_some_and(|servers| servers.len() == 1), "{status}");
    second.stop().await?;
    let (status, ok) = document(&instance, &["status"]).await?;
    ensure!(!ok && status["ok"] == false && status["servers"] == serde_json::json!([]), "{status}");
    ensure!(status["processes"].is_array() && status["endpoints"][0]["model"] == "sandbox/decider", "{status}");
    ensure!(text(&instance, &["status"]).await?.contains("No server is running"), "no sentence");
    let folder = instance.path().join("data/tollgate.db.sockets");
    let mode = std::fs::metadata(&folder)?.permissions().mode();
    ensure!(mode & 0o777 == 0o700, "{mode:o}");
    // The next start removes sockets of dead servers.
    let server = instance.serve().await?;
    ensure!(std::fs::read_dir(&folder)?.count() == 1, "dead sockets are left");
    server.stop().await
}

#[tokio::test]
async fn silent_server_is_reported_beside_the_others() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let _silent = UnixListener::bind(gateway.instance.path().join("data/tollgate.db.sockets/0.sock"))?;
    let (status, ok) = document(&gateway.instance, &["status"]).await?;
    ensure!(!ok && status["ok"] == false && status["servers"][0]["state"] == "ready", "{status}");
    let expected = serde_json::json!({"id": "0", "error": "the server did not answer within 5 s"});
    ensure!(status["servers"][1] == expected, "{status}");
    let output = gateway.instance.run(&["endpoint", "list"]).await?;
    let told = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && told.contains("The server 0 does not show its status"), "{told}");
    gateway.server.stop().await?;
    let said = gateway.instance.refused(&["endpoint", "list"]).await?;
    ensure!(said == "error: the server did not answer within 5 s", "{said}");
    Ok(())
}

#[tokio::test]
async fn answer_of_another_server_is_named_with_its_status() -> Result<()> {
    let mut instance = tollgate_tests::Instance::new("")?;
    instance.set_env("TOLLGATE_MANAGEMENT_KEY", "sk-tg-v1-of-another-server");
    let with_id = Behaviour::Answer(200, "x-request-id: 1\r\n".to_owned(), "{\"data\":{}}".to_owned());
    let page = Behaviour::Answer(200, String::new(), "<html></html>".to_owned());
    for (behaviour, status) in [
        (with_id, 200),
        (page, 200),
        (Behaviour::json("{}"), 200),
        (Behaviour::status(302), 302),
        (Behaviour::status(404), 404),
        (Behaviour::Answer(502, String::new(), "<html></html>".to_owned()), 502),
    ] {
        let is_tollgate_like = matches!(&behaviour, Behaviour::Answer(_, headers, _) if !headers.is_empty());
        let other = Upstream::start(behaviour).await?;
        let url = other.base_url();
        let ends = format!(" does: status {status}");
        for command in [&["status"][..], &["key", "list"], &["key", "create", "--name", "k"]] {
            if is_tollgate_like && command != ["status"] {
                continue;
            }
            let said = instance.refused(&[command, &["--url", &url]].concat()).await?;
            let begins = format!("error: the server at {url} did not answer as Tollgate ");
            ensure!(said.starts_with(&begins) && said.ends_with(&ends), "{command:?}: {said}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn endpoint_list_shows_health_of_running_server() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    gateway.decide(body("acme/pair")).await?;
    let (listed, ok) = document(&gateway.instance, &["endpoint", "list", "--model", "acme/pair"]).await?;
    ensure!(ok, "{listed}");
    let (first, second) = (&listed["data"][0]["health"][0], &listed["data"][1]["health"][0]);
    ensure!(first["accept_rate"] == 0.0 && first["last_error"]["outcome"] == "http_error", "{listed}");
    ensure!(second["accept_rate"] == 1.0 && second["latency_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{listed}");
    let shown = text(&gateway.instance, &["endpoint", "list", "--model", "acme/pair"]).await?;
    ensure!(shown.contains("http_error (500)") && shown.contains("100 %"), "{shown}");
    let none = ["endpoint", "list", "--model", "acme/none"];
    ensure!(gateway.instance.refused(&none).await? == "error: Model not found");
    gateway.server.stop().await?;
    ensure!(gateway.instance.refused(&none).await? == "error: Model not found");
    let (listed, ok) = document(&gateway.instance, &["endpoint", "list"]).await?;
    ensure!(ok && listed["data"][0]["health"].is_null(), "{listed}");
    let shown = text(&gateway.instance, &["endpoint", "list"]).await?;
    ensure!(shown.contains("No server is running"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn doctor_sees_variables_and_health_of_running_server() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let mut gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    // The shell of the command lacks the variable of the server.
    gateway.instance.set_env("ALPHA_API_KEY", "");
    gateway.instance.set_env("TOLLGATE__LOG__FORMAT", "json");
    let (report, ok) = document(&gateway.instance, &["doctor"]).await?;
    ensure!(ok, "{report}");
    let checks = report["checks"].as_array().context("no checks")?;
    let has = |name: &str, status: &str, detail: &str| {
        checks.iter().any(|check| {
            check["name"].as_str().is_some_and(|found| found.starts_with(name))
                && check["status"] == status
                && check["detail"].as_str().is_some_and(|found| found.contains(detail))
        })
    };
    ensure!(has("server ", "ok", "ready: version"), "{report}");
    ensure!(has("providers", "ok", "set in the running server, not here: ALPHA_API_KEY"), "{report}");
    ensure!(has("server ", "warning", "only this command has TOLLGATE__LOG__FORMAT"), "{report}");

    alpha.behave(Behaviour::status(401));
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(502)?;
    let (report, ok) = document(&gateway.instance, &["doctor"]).await?;
    let detail = "it rejected the credential of the running server: provider_auth_failed (401)";
    ensure!(!ok && report.to_string().contains(detail), "{report}");

    let TestGateway { instance, server, .. } = gateway;
    server.stop().await?;
    let (report, ok) = document(&instance, &["doctor"]).await?;
    ensure!(!ok && report.to_string().contains("no server is running"), "{report}");
    ensure!(report.to_string().contains("api_key names an environment variable that is not set"), "{report}");
    Ok(())
}

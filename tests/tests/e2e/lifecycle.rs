//! Starts and stops.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, files_below};

use crate::gateway::{ANSWER, TestGateway, body};

#[cfg(unix)]
#[tokio::test]
async fn first_start_writes_private_management_key() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let instance = Instance::new("")?;
    let server = instance.serve().await?;
    let holds_secret =
        |file: &std::path::PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.contains("sk-tg-v1-"));
    let files: Vec<_> = files_below(instance.path())?.into_iter().filter(holds_secret).collect();
    let [file] = files.as_slice() else { anyhow::bail!("the secret is in {files:?}") };
    ensure!(file.parent() == instance.database().parent(), "{} does not lie beside the database", file.display());
    let mode = file.metadata()?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "{mode:o}");
    let output = server.output();
    ensure!(output.contains(&file.display().to_string()), "the file is not named: {output}");
    let command = output.lines().find_map(|line| {
        let from = line.find("(cd ")?;
        let to = line[from..].find("--name first)")?;
        Some(line[from..from + to + "--name first)".len()].replace("\\\"", "\""))
    });
    let command = command.with_context(|| format!("the next command is not shown: {output}"))?;
    let elsewhere =
        tokio::process::Command::new("/bin/sh").args(["-c", &command]).env_clear().current_dir("/").output();
    let created = elsewhere.await?;
    ensure!(created.status.success(), "{command}: {}", String::from_utf8_lossy(&created.stderr));
    ensure!(String::from_utf8_lossy(&created.stdout).contains("sk-tg-v1-"), "{command} shows no key");

    let text = std::fs::read_to_string(file)?;
    let secret = text.split_whitespace().find(|word| word.starts_with("sk-tg-v1-")).context("no secret")?.to_owned();
    let guardrail = instance.guardrail(&[]).await?;
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&secret)
        .json(r#"{"key_hashes":["a"]}"#);
    server.send(&assign).await?.ok()?;
    server.stop().await?;

    let before = std::fs::read_to_string(file)?;
    let server = instance.serve().await?;
    ensure!(std::fs::read_to_string(file)? == before, "a second start wrote another key");
    server.send(&assign).await?.ok()?;
    server.stop().await
}

#[tokio::test]
async fn stop_finishes_requests_in_flight_and_exits_with_0() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let TestGateway { instance, server, inference, .. } = TestGateway::with_providers(&alpha, &beta, 20_000).await?;
    let address = server.address();
    let call = decisions(&inference.secret, body("acme/alone"));
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    server.stop().await?;
    let answer = calls.join_next().await.context("the call is gone")??.context("cut off")?.ok()?;
    let id = answer["id"].as_str().context("no id")?;
    let usage = instance.json(&["usage", "show", id]).await?;
    ensure!(usage["outcome"] == "completed", "{usage}");
    ensure!(Call::get("/health/live").send(address).await.is_err(), "the port is still open");
    Ok(())
}

#[tokio::test]
async fn idle_server_stops_quickly_with_open_connections() -> Result<()> {
    let TestGateway { instance: _instance, server, .. } = TestGateway::start("").await?;
    let _idle = tokio::net::TcpStream::connect(server.address()).await?;
    let stopped = tokio::time::timeout(Duration::from_secs(20), server.stop()).await;
    stopped.context("an idle connection keeps it alive")?
}

#[tokio::test]
async fn interrupt_stops_server() -> Result<()> {
    let TestGateway { instance: _instance, server, .. } = TestGateway::start("").await?;
    server.interrupt().await?;
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

#[tokio::test]
async fn server_ignores_unrelated_signals() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let TestGateway { instance: _instance, server, inference, .. } =
        TestGateway::with_providers(&alpha, &alpha, 20_000).await?;
    let address = server.address();
    let call = decisions(&inference.secret, body("acme/alone"));
    let ignored = |name: &str| format!("signal=\"{name}\"");
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name).await?;
    }
    for name in ["SIGHUP", "SIGUSR1", "SIGUSR2"] {
        let logged = ignored(name);
        wait_until("no line of the signal", || server.output().contains(&logged)).await?;
    }
    server.ensure_healthy().await?;
    // Also during a stop.
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    server.terminate().await?;
    wait_until("it does not stop", || server.output().contains("SIGTERM")).await?;
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name).await?;
    }
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    calls.join_next().await.context("the call is gone")??.context("cut off")?.ok()?;
    Ok(())
}

/// Waits until a condition is true.
async fn wait_until(otherwise: &str, condition: impl Fn() -> bool) -> Result<()> {
    for _ in 0..1_000 {
        if condition() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("{otherwise}")
}

#[tokio::test]
async fn killed_server_restarts_on_same_data() -> Result<()> {
    let TestGateway { instance, server, inference, management } = TestGateway::start("").await?;
    let id = instance.put("sess_a", "a", b"x").await?;
    let file = server.promote(&inference.secret, "sess_a", &id).await?.ok()?;
    server.kill().await?;
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    gateway.decide(body("sandbox/decider")).await?;
    ensure!(gateway.instance.document_blobs()?.len() == 1, "{file} is lost");
    gateway.server.stop().await
}

#[tokio::test]
async fn start_at_address_in_use_is_refused_in_one_sentence_and_leaves_nothing() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains(&gateway.server.address().port().to_string()), "{said}");
    let processes = gateway.instance.json(&["journal", "list"]).await?;
    ensure!(processes["data"].as_array().is_some_and(|processes| processes.len() == 1), "{processes}");
    let journals = std::fs::read_dir(gateway.instance.path().join("data/tollgate-journal"))?.count();
    ensure!(journals == 2, "{journals} entries beside the lock and the journal of the server");
    let mut beside = Instance::new("")?;
    beside.set_env("TOLLGATE__SERVER__METRICS_LISTEN", gateway.server.address().to_string());
    let said = beside.refused_serving().await?;
    ensure!(said.contains("for metrics"), "{said}");
    let left = std::fs::read_dir(beside.path())?.collect::<std::io::Result<Vec<_>>>()?;
    ensure!(left.len() == 1, "beside the configuration: {left:?}");
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn readiness_reports_stores() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for path in ["/health/live", "/health/ready"] {
        let reply = gateway.server.send(&Call::get(path)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
    }
    Ok(())
}

//! From the first start to the last answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, files_below};

use crate::world::{ANSWER, World, body};

#[cfg(unix)]
#[tokio::test]
async fn the_first_start_writes_one_management_key_for_its_owner_only() -> Result<()> {
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
async fn a_stop_finishes_what_is_in_flight_and_exits_with_0() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let World { instance, server, inference, .. } = World::with_providers(&alpha, &beta, 20_000).await?;
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
    ensure!(Call::get("/health/live").send(address).await.is_err(), "somebody still listens");
    Ok(())
}

#[tokio::test]
async fn an_idle_server_stops_soon_although_connections_are_open() -> Result<()> {
    let World { instance: _instance, server, .. } = World::start("").await?;
    let _idle = tokio::net::TcpStream::connect(server.address()).await?;
    let stopped = tokio::time::timeout(Duration::from_secs(20), server.stop()).await;
    stopped.context("an idle connection keeps it alive")?
}

#[tokio::test]
async fn an_interrupt_stops_it_as_well() -> Result<()> {
    let World { instance: _instance, server, .. } = World::start("").await?;
    server.interrupt().await?;
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

#[tokio::test]
async fn server_goes_on_when_it_gets_signals_that_mean_nothing_to_it() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let World { instance: _instance, server, inference, .. } = World::with_providers(&alpha, &alpha, 20_000).await?;
    let address = server.address();
    let call = decisions(&inference.secret, body("acme/alone"));
    let ignored = |name: &str| format!("signal=\"{name}\"");
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name).await?;
    }
    for name in ["SIGHUP", "SIGUSR1", "SIGUSR2"] {
        let logged = ignored(name);
        eventually("no line of the signal", || server.output().contains(&logged)).await?;
    }
    server.ensure_healthy().await?;
    // While it stops as well.
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    server.terminate().await?;
    eventually("it does not stop", || server.output().contains("SIGTERM")).await?;
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name).await?;
    }
    let status = server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    calls.join_next().await.context("the call is gone")??.context("cut off")?.ok()?;
    Ok(())
}

/// Waits until the condition holds.
async fn eventually(otherwise: &str, condition: impl Fn() -> bool) -> Result<()> {
    for _ in 0..1_000 {
        if condition() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("{otherwise}")
}

#[tokio::test]
async fn a_killed_server_starts_again_on_the_same_data() -> Result<()> {
    let World { instance, server, inference, management } = World::start("").await?;
    let id = instance.put("sess_a", "a", b"x").await?;
    let file = server.promote(&inference.secret, "sess_a", &id).await?.ok()?;
    server.kill().await?;
    let world = World { server: instance.serve().await?, instance, inference, management };
    world.decide(body("sandbox/decider")).await?;
    ensure!(world.instance.document_blobs()?.len() == 1, "{file} is lost");
    world.server.stop().await
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_in_one_sentence() -> Result<()> {
    let world = World::start("").await?;
    let said = world.instance.refused_serving().await?;
    ensure!(said.contains(&world.server.address().port().to_string()), "{said}");
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn readiness_tells_of_the_stores() -> Result<()> {
    let world = World::start("").await?;
    for path in ["/health/live", "/health/ready"] {
        let reply = world.server.send(&Call::get(path)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
    }
    Ok(())
}

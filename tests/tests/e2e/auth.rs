//! Who is let in.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Report, seconds_from_now};

use crate::world::{World, body, outdated_for};

/// How long a key may live after it was switched off.
const DEATH: Duration = Duration::from_secs(1);

fn operations() -> Vec<(&'static str, Call)> {
    vec![
        ("promote", Call::post("/api/v1/containers/sess_a/files/cfile_YQ/promote")),
        ("decisions", Call::post("/api/v1/api/alpha/decisions").json(body("sandbox/decider"))),
        ("decisions of old", Call::post("/api/alpha/decisions").json("{ not even JSON")),
        ("assign", Call::post("/api/v1/guardrails/x/assignments/keys").json(r#"{"key_hashes":["a"]}"#)),
        ("model", Call::get("/api/v1/model/sandbox/decider")),
        ("count", Call::get("/api/v1/models/count?output_modalities=nonsense")),
    ]
}

#[tokio::test]
async fn whoever_has_no_live_key_is_refused_before_anything_else_is_looked_at() -> Result<()> {
    let world = World::start("").await?;
    let unknown = format!("Bearer sk-tg-v1-{}", "0".repeat(64));
    let headers: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("scheme alone", b"Bearer".to_vec()),
        ("scheme and a space", b"Bearer ".to_vec()),
        ("no scheme", world.inference.secret.clone().into_bytes()),
        ("basic", b"Basic dXNlcjpwYXNz".to_vec()),
        ("10 kB", format!("Bearer {}", "a".repeat(10_000)).into_bytes()),
        ("non-ASCII", "Bearer schlüssel-\u{1F511}".as_bytes().to_vec()),
        ("not UTF-8", b"Bearer \xff\xfe\xfd".to_vec()),
        ("SQL", b"Bearer ' OR 1=1; DROP TABLE api_keys; --".to_vec()),
        ("unknown", unknown.into_bytes()),
        ("upper case", format!("Bearer {}", world.inference.secret.to_uppercase()).into_bytes()),
        ("the hash for the secret", format!("Bearer {}", world.inference.hash).into_bytes()),
        ("two in one", format!("Bearer {0}, Bearer {0}", world.inference.secret).into_bytes()),
    ];
    let mut report = Report::default();
    for (operation, call) in operations() {
        let reply = world.server.send(&call).await?;
        report.case(&format!("{operation}, none"), reply.error(401, "Missing Authentication header"));
        let mut messages = std::collections::BTreeSet::new();
        for (name, value) in &headers {
            let reply = world.server.send(&call.clone().header("authorization", value)).await?;
            let envelope = reply.envelope(401);
            if let (Ok(envelope), true) = (&envelope, *name != "empty") {
                messages.insert(envelope["error"]["message"].to_string());
            }
            report.case(&format!("{operation}, {name}"), envelope);
        }
        let one = if messages.len() == 1 { Ok(()) } else { Err(anyhow::anyhow!("an oracle: {messages:?}")) };
        report.case(&format!("{operation}, one message"), one);
    }
    let output = world.server.output();
    report.case("the secret is not logged", {
        if output.contains(&world.inference.secret) { Err(anyhow::anyhow!("it is: {output}")) } else { Ok(()) }
    });
    world.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn each_kind_of_key_does_its_own_work_and_both_read_the_catalogue() -> Result<()> {
    let world = World::start("").await?;
    let guardrail = world.instance.guardrail(&[]).await?;
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .json(format!(r#"{{"key_hashes":["{}"]}}"#, world.inference.hash));
    let (inference, management) = (&world.inference.secret, &world.management.secret);
    let server = &world.server;

    server.send(&assign.clone().key(inference)).await?.error(403, "Only management keys can perform this operation")?;
    // The kind of key is looked at before the body and the guardrail are.
    let nonsense = Call::post("/api/v1/guardrails/nonsense/assignments/keys").json("{").key(inference);
    server.send(&nonsense).await?.error(403, "Only management keys can perform this operation")?;
    ensure!(server.send(&assign.key(management)).await?.ok()?["assigned_count"] == 1);

    let forbidden = "Management keys cannot perform this operation";
    server.decide(management, body("sandbox/decider")).await?.error(403, forbidden)?;
    server.promote(management, "sess_a", "cfile_YQ").await?.error(403, forbidden)?;
    world.decide(body("sandbox/decider")).await?;

    for secret in [inference, management] {
        server.send(&Call::get("/api/v1/models/count").key(secret)).await?.ok()?;
        server.send(&Call::get("/api/v1/model/sandbox/decider").key(secret)).await?.ok()?;
    }
    let lower = Call::get("/api/v1/models/count").header("authorization", format!("bearer {inference}"));
    server.send(&lower).await?.ok()?;
    Ok(())
}

/// Repeats a call until it has this status, and returns for how long it had another.
async fn until(world: &World, secret: &str, status: u16) -> Result<Duration> {
    let call = Call::get("/api/v1/models/count").key(secret);
    outdated_for(&world.server, &call, status, Instant::now()).await
}

#[tokio::test]
async fn a_key_that_another_process_switches_off_or_deletes_dies_within_a_second() -> Result<()> {
    let world = World::start("").await?;
    let (secret, hash) = (&world.inference.secret, world.inference.hash.as_str());
    // Once before, so that it lies in the cache.
    world.decide(body("sandbox/decider")).await?;
    world.instance.json(&["key", "disable", hash]).await?;
    let took = until(&world, secret, 401).await?;
    ensure!(took <= DEATH, "a disabled key lived on for {took:?}");
    world.server.decide(secret, body("sandbox/decider")).await?.error(401, "Invalid API key")?;
    world.instance.json(&["key", "enable", hash]).await?;
    let took = until(&world, secret, 200).await?;
    ensure!(took <= DEATH, "an enabled key was refused for {took:?}");
    world.instance.json(&["key", "delete", hash]).await?;
    let took = until(&world, secret, 401).await?;
    ensure!(took <= DEATH, "a deleted key lived on for {took:?}");
    world.instance.refused(&["key", "enable", hash]).await?;
    Ok(())
}

#[tokio::test]
async fn a_new_key_works_at_once_also_after_it_was_refused() -> Result<()> {
    let world = World::start("").await?;
    for _ in 0..3 {
        let key = world.instance.inference_key().await?;
        world.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_key_dies_at_its_expiry_although_it_was_used_a_moment_before() -> Result<()> {
    let world = World::start("").await?;
    let key = world.instance.key(&["--name", "short", "--expires-at", &seconds_from_now(4)]).await?;
    world.server.send(&Call::get("/api/v1/models/count").key(&key.secret)).await?.ok()?;
    sleep(Duration::from_secs(4)).await;
    let reply = world.server.send(&Call::get("/api/v1/models/count").key(&key.secret)).await?;
    reply.error(401, "Invalid API key")?;
    let past = seconds_from_now(-60);
    world.instance.refused(&["key", "create", "--name", "late", "--expires-at", &past]).await?;
    Ok(())
}

#[tokio::test]
async fn the_keys_of_a_suspended_workspace_are_forbidden_until_it_is_resumed() -> Result<()> {
    let world = World::start("").await?;
    let workspace = world.instance.workspace("acme").await?;
    let key = world.instance.key(&["--name", "a", "--workspace", &workspace]).await?;
    world.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    world.instance.json(&["workspace", "suspend", &workspace]).await?;
    let took = until(&world, &key.secret, 403).await?;
    ensure!(took <= DEATH, "a suspended workspace went on for {took:?}");
    for (name, call) in operations() {
        let reply = world.server.send(&call.key(&key.secret)).await?;
        reply.envelope(403).map_err(|error| error.context(name))?;
    }
    world.decide(body("sandbox/decider")).await?;
    world.instance.json(&["workspace", "resume", &workspace]).await?;
    let took = until(&world, &key.secret, 200).await?;
    ensure!(took <= DEATH, "a resumed workspace waited for {took:?}");
    Ok(())
}

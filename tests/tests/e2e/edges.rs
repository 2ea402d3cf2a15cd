//! Connections, crowds and logs.

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, raw};

use crate::world::{ANSWER, QUESTIONS, World, body};

#[tokio::test]
async fn a_refused_request_does_not_spoil_the_connection_for_the_next_one() -> Result<()> {
    let world = World::start("").await?;
    let secret = &world.inference.secret;
    let post = |body: &str, close: &str| {
        format!(
            "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n{close}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let unknown = "POST /nonsense HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
    let stranger = "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";
    let requests = [
        post("{", ""),
        unknown.to_owned(),
        stranger.to_owned(),
        post(&body("sandbox/decider"), "connection: close\r\n"),
    ];
    let answers = raw(world.server.address(), requests.concat().as_bytes()).await?;
    let statuses: Vec<&str> =
        answers.split("HTTP/1.1 ").skip(1).map(|answer| answer.split(' ').next().unwrap_or_default()).collect();
    // A server may also close after a refusal, but must not read a body as a request.
    ensure!(["400", "404", "401", "200"].starts_with(&statuses), "{statuses:?}");
    ensure!(!statuses.is_empty());
    world.server.ensure_healthy().await
}

#[tokio::test]
async fn more_requests_at_once_than_are_taken_are_told_to_come_back() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let toml = format!(
        "[limits]\nmax_in_flight = 1\n{}",
        crate::world::providers_toml(&alpha.base_url(), &alpha.base_url(), 30_000)
    );
    let world = World::start(&toml).await?;
    let count = Call::get("/api/v1/models/count").key(&world.inference.secret);
    world.server.send(&count).await?.ok()?;
    let call = decisions(&world.inference.secret, body("acme/alone"));
    let address = world.server.address();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    let refused = world.server.send(&count).await?;
    refused.error(503, "Service temporarily unavailable")?;
    ensure!(!refused.header("retry-after").is_empty());
    ensure!(world.server.send(&Call::get("/health/ready")).await?.status == 200, "open routes take no place");
    calls.shutdown().await;
    alpha.wait_until_abandoned(1).await?;
    for _ in 0..100 {
        if world.server.send(&count).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("the place is not given back")
}

#[tokio::test]
async fn an_error_names_the_workspaces_owner_where_one_is_set() -> Result<()> {
    let world = World::start("").await?;
    let made = world.instance.json(&["workspace", "create", "--name", "w", "--owner-id", "owner-7"]).await?;
    let workspace = made["id"].as_str().context("no id")?;
    let key = world.instance.key(&["--name", "k", "--workspace", workspace]).await?;
    let owned = world.server.decide(&key.secret, "{").await?.envelope(400)?;
    ensure!(owned["user_id"] == "owner-7", "{owned}");
    let bare = world.server.decide(&world.inference.secret, "{").await?.envelope(400)?;
    ensure!(bare.get("user_id").is_none_or(serde_json::Value::is_null), "{bare}");
    Ok(())
}

#[tokio::test]
async fn secrets_and_content_stay_out_of_the_most_talkative_log() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER.replace("0.97", "0.97,\"aside\":\"marker-answer\""))).await?;
    let toml = crate::world::providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "marker-provider-key");
    instance.set_env("RUST_LOG", "trace");
    let world = World::of(instance).await?;
    let request = format!(
        r#"{{"model":"acme/alone","questions":{QUESTIONS},"state":"marker-state","session_id":"marker-session",
            "user":"marker-user","trace":{{"a":"marker-trace"}}}}"#
    );
    world.decide(&request).await?;
    let broken = request.replace("\"noul\"", "\"marker-type\"");
    world.server.decide(&world.inference.secret, broken).await?.envelope(400)?;
    alpha.behave(Behaviour::Answer(500, String::new(), "marker-failure".to_owned()));
    world.server.decide(&world.inference.secret, &request).await?.envelope(502)?;
    alpha.behave(Behaviour::json("marker-garbage"));
    world.server.decide(&world.inference.secret, &request).await?.envelope(502)?;
    let id = world.instance.put("sess_a", "a", b"marker-file").await?;
    world.server.promote(&world.inference.secret, "sess_a", &id).await?.ok()?;

    let log = world.server.output();
    ensure!(log.contains("TRACE"), "the log is not at its most talkative");
    ensure!(log.contains("500"), "the failure is not logged");
    for private in ["marker-", &world.inference.secret, &world.inference.secret[9..]] {
        let line = log.lines().find(|line| line.contains(private));
        ensure!(line.is_none(), "{private} is in the log: {line:?}");
    }
    Ok(())
}

#[tokio::test]
async fn logs_are_json_where_the_configuration_says_so() -> Result<()> {
    let world = World::start("[log]\nformat = \"json\"\n").await?;
    let call = decisions(&world.inference.secret, body("sandbox/error-502")).header("x-request-id", "find-me");
    world.server.send(&call).await?.envelope(502)?;
    let mut log = world.server.output();
    for _ in 0..200 {
        if log.contains("find-me") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        log = world.server.output();
    }
    // The last line may be half written.
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    for line in whole.lines() {
        serde_json::from_str::<serde_json::Value>(line).with_context(|| format!("not JSON: {line}"))?;
    }
    ensure!(log.contains("find-me"), "the request is not named: {log}");
    world.server.stop().await
}

#[tokio::test]
async fn doctor_finds_what_is_broken() -> Result<()> {
    let nobody = format!("http://{}/v1", tollgate_tests::free_address()?);
    let world = World::start(&crate::world::providers_toml(&nobody, &nobody, 1_000)).await?;
    let output = world.instance.run(&["doctor", "--json"]).await?;
    ensure!(!output.status.success(), "a provider that nobody answers for is fine");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report.to_string().contains("alpha"), "{report}");
    ensure!(report.to_string().contains("acme/alone"), "the minimal row is not told: {report}");
    Ok(())
}

//! Endpoints that fail partly or always.

use anyhow::{Result, ensure};
use serde_json::json;
use tollgate_tests::{Behaviour, Call, Upstream};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

#[tokio::test]
async fn failing_endpoint_gets_few_requests_and_degraded_one_half() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    // At one half, few early rejections by chance lead to many more, so an unseeded run may exceed any useful bound.
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let gateway = TestGateway::start(&format!("[routing]\nseed = 1\n{providers}")).await?;
    let (mut answered, mut throttled) = (0, 0);
    for number in 0..400 {
        alpha.behave(if number % 2 == 0 { Behaviour::status(500) } else { Behaviour::json(ANSWER) });
        match gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.status {
            200 => answered += 1,
            503 => throttled += 1,
            other => ensure!(other == 502, "{other}"),
        }
    }
    ensure!(answered > 180, "{answered} of the 200 that it can answer; {throttled} were 503");

    alpha.behave(Behaviour::status(500));
    alpha.take_requests();
    for _ in 0..1_000 {
        let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
        if reply.status == 503 {
            let wait: u64 = reply.header("retry-after").parse()?;
            ensure!((1..=60).contains(&wait), "{wait}");
        } else {
            reply.envelope(502)?;
        }
    }
    let tried = alpha.take_requests().len();
    ensure!((1..800).contains(&tried), "{tried} of 1,000");
    let call = Call::get("/api/v1/models/acme/alone/endpoints").key(&gateway.inference.secret);
    let listed = gateway.server.send(&call).await?.ok()?;
    let health = &listed["data"]["endpoints"][0]["health"];
    ensure!(health["throttled"] == false && health["throttled_workspaces"] == 1, "by one workspace alone: {listed}");
    ensure!(health["accept_rate"].as_f64().is_some_and(|rate| rate < 0.5), "{listed}");
    Ok(())
}

#[tokio::test]
async fn failures_of_one_workspace_do_not_affect_another() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json("{\"answers\":")).await?;
    // A throttled endpoint still gets a few requests by chance: the last one of an unseeded run may be among them.
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let gateway = TestGateway::start(&format!("[routing]\nseed = 1\n{providers}")).await?;
    let workspace = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "other", "--workspace", &workspace]).await?;
    for behaviour in [
        Behaviour::json("{\"answers\":"),
        Behaviour::status(403),
        Behaviour::status(404),
        Behaviour::Answer(429, "retry-after: 600\r\n".into(), "{}".into()),
    ] {
        for _ in 0..20 {
            alpha.behave(behaviour.clone());
            let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
            ensure!(matches!(reply.status, 502 | 503 | 529), "{}", reply.text());
            if reply.status != 502 {
                let wait: u64 = reply.header("retry-after").parse()?;
                ensure!(wait <= 60, "{wait}");
            }
        }
        alpha.behave(Behaviour::json(ANSWER));
        for _ in 0..5 {
            gateway.server.decide(&other.secret, body("acme/alone")).await?.ok()?;
        }
    }
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
    let message = reply.envelope(503)?["error"]["message"].clone();
    let expected = "no endpoint of acme/alone is available: alpha throttled, last failed with ";
    ensure!(message.as_str().is_some_and(|message| message.starts_with(expected)), "{message}");

    // A rejected credential does not depend on a request's content.
    alpha.behave(Behaviour::status(401));
    gateway.server.decide(&other.secret, body("acme/alone")).await?.envelope(502)?;
    let reply = gateway.server.decide(&other.secret, body("acme/alone")).await?;
    let wait: u64 = reply.header("retry-after").parse()?;
    ensure!(wait <= 5 && reply.envelope(503)?["error"]["metadata"]["retry_after_seconds"] == json!(wait), "{wait}");
    Ok(())
}

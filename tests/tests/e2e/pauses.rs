//! A server that is paused, as by SIGSTOP, a debugger or a suspended machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Reply, Upstream, decisions};

use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

const CALLS: usize = 16;
/// Longer than the timeout of an attempt.
const PAUSE: Duration = Duration::from_secs(3);

/// Pauses the server while this many calls wait for the provider; returns their responses.
async fn pause_under_load(gateway: &TestGateway, alpha: &Upstream) -> Result<Vec<Reply>> {
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (call, address) = (decisions(&gateway.inference.secret, body("acme/alone")), gateway.server.address());
        calls.spawn(async move { call.send(address).await });
    }
    alpha.wait_for_requests(CALLS).await?;
    gateway.server.signal("STOP").await?;
    tokio::time::sleep(PAUSE).await;
    gateway.server.signal("CONT").await?;
    let mut replies = Vec::new();
    while let Some(reply) = calls.join_next().await {
        replies.push(reply??);
    }
    alpha.take_requests();
    Ok(replies)
}

/// Checks that many calls succeed, so the endpoint is not throttled.
async fn all_answer(gateway: &TestGateway) -> Result<()> {
    for _ in 0..40 {
        gateway.decide(body("acme/alone")).await?;
    }
    Ok(())
}

async fn start(alpha: &Upstream) -> Result<TestGateway> {
    TestGateway::start(&providers_toml(&alpha.base_url(), &alpha.base_url(), 2_000)).await
}

#[tokio::test]
async fn answers_that_arrived_during_a_pause_are_read() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_secs(1), ANSWER.to_owned())).await?;
    let gateway = start(&alpha).await?;
    for reply in pause_under_load(&gateway, &alpha).await? {
        reply.ok().context("its answer lay in the socket")?;
    }
    alpha.behave(Behaviour::json(ANSWER));
    all_answer(&gateway).await
}

#[tokio::test]
async fn deadlines_passed_during_pause_do_not_throttle() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let gateway = start(&alpha).await?;
    for reply in pause_under_load(&gateway, &alpha).await? {
        reply.envelope(524)?;
    }
    ensure!(gateway.server.output().contains("process was paused"), "{}", gateway.server.output());
    alpha.behave(Behaviour::json(ANSWER));
    all_answer(&gateway).await
}

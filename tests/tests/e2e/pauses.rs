//! A server that is stopped for a while, as by SIGSTOP, a debugger or a suspended machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Reply, Upstream, decisions};

use crate::world::{ANSWER, World, body, providers_toml};

const CALLS: usize = 16;
/// Longer than the deadline of an attempt.
const PAUSE: Duration = Duration::from_secs(3);

/// Stops the server while so many calls wait for the provider; returns their answers.
async fn pause_under_load(world: &World, alpha: &Upstream) -> Result<Vec<Reply>> {
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (call, address) = (decisions(&world.inference.secret, body("acme/alone")), world.server.address());
        calls.spawn(async move { call.send(address).await });
    }
    alpha.wait_for_requests(CALLS).await?;
    world.server.signal("STOP").await?;
    tokio::time::sleep(PAUSE).await;
    world.server.signal("CONT").await?;
    let mut replies = Vec::new();
    while let Some(reply) = calls.join_next().await {
        replies.push(reply??);
    }
    alpha.take_requests();
    Ok(replies)
}

/// Many calls, all of which are answered: the endpoint is not throttled.
async fn all_answer(world: &World) -> Result<()> {
    for _ in 0..40 {
        world.decide(body("acme/alone")).await?;
    }
    Ok(())
}

async fn start(alpha: &Upstream) -> Result<World> {
    World::start(&providers_toml(&alpha.base_url(), &alpha.base_url(), 2_000)).await
}

#[tokio::test]
async fn answers_that_arrived_during_a_pause_are_read() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Late(Duration::from_secs(1), ANSWER.to_owned())).await?;
    let world = start(&alpha).await?;
    for reply in pause_under_load(&world, &alpha).await? {
        reply.ok().context("its answer lay in the socket")?;
    }
    alpha.behave(Behaviour::json(ANSWER));
    all_answer(&world).await
}

#[tokio::test]
async fn deadlines_that_passed_during_a_pause_throttle_nobody() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let world = start(&alpha).await?;
    for reply in pause_under_load(&world, &alpha).await? {
        reply.envelope(524)?;
    }
    ensure!(world.server.output().contains("process was paused"), "{}", world.server.output());
    alpha.behave(Behaviour::json(ANSWER));
    all_answer(&world).await
}

//! Conditional and repeated changes over HTTP, on real stores.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;
use tollgate_tests::{Call, Instance, Server};

use crate::gateway::TestGateway;

const GUARDRAILS: &str = "/api/v1/guardrails";

fn create(secret: &str, key: &str, body: &str) -> Call {
    Call::post(GUARDRAILS).key(secret).header("idempotency-key", key).json(body)
}

async fn count(server: &Server, secret: &str) -> Result<Value> {
    Ok(server.send(&Call::get(GUARDRAILS).key(secret)).await?.ok()?["total_count"].clone())
}

async fn concurrent_posts_have_one_effect(instance: Instance) -> Result<()> {
    let gateway = TestGateway::of(instance).await?;
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let call = create(&gateway.management.secret, "together", r#"{"name":"g"}"#);
        let address = gateway.server.address();
        calls.spawn(async move { call.send(address).await });
    }
    let mut answers = BTreeSet::new();
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        ensure!(reply.status == 201, "{reply:?}");
        answers.insert((reply.body.to_vec(), format!("{:?}", reply.headers.get("etag"))));
    }
    ensure!(answers.len() == 1, "{answers:?}");
    ensure!(count(&gateway.server, &gateway.management.secret).await? == 1);
    Ok(())
}

#[tokio::test]
async fn concurrent_posts_with_one_key_have_one_effect_and_one_response() -> Result<()> {
    concurrent_posts_have_one_effect(Instance::new("")?).await
}

#[tokio::test]
async fn concurrent_posts_with_one_key_have_one_effect_and_one_response_on_postgres() -> Result<()> {
    concurrent_posts_have_one_effect(Instance::on_postgres("")?).await
}

#[tokio::test]
async fn scope_of_an_idempotency_key_is_the_callers_key() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let other = gateway.instance.management_key().await?;
    let (mine, theirs) = (&gateway.management.secret, &other.secret);
    let first = gateway.server.send(&create(mine, "k", r#"{"name":"g"}"#)).await?;
    let second = gateway.server.send(&create(theirs, "k", r#"{"name":"h"}"#)).await?;
    ensure!((first.status, second.status) == (201, 201), "{first:?} {second:?}");
    gateway.server.send(&create(mine, "k", r#"{"name":"h"}"#)).await?.envelope(409)?;
    ensure!(gateway.server.send(&create(mine, "k", r#"{"name":"g"}"#)).await?.body == first.body);
    ensure!(count(&gateway.server, mine).await? == 2);
    Ok(())
}

#[tokio::test]
async fn repetitions_after_a_crash_have_one_effect_each() -> Result<()> {
    const CALLS: usize = 40;
    let TestGateway { instance, server, management, .. } = TestGateway::start("").await?;
    let call = |number: usize| create(&management.secret, &format!("k{number}"), &format!(r#"{{"name":"g{number}"}}"#));
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let (call, address) = (call(number), server.address());
        calls.spawn(async move { (number, call.send(address).await) });
    }
    let mut answered = Vec::new();
    let (number, first) = calls.join_next().await.context("no call")??;
    answered.push((number, first?));
    server.kill().await?;
    while let Some(ended) = calls.join_next().await {
        if let (number, Ok(reply)) = ended? {
            answered.push((number, reply));
        }
    }
    let server = instance.serve().await?;
    for number in 0..CALLS {
        let reply = server.send(&call(number)).await?;
        ensure!(reply.status == 201, "{reply:?}");
        let before = answered.iter().find(|(other, _)| *other == number);
        ensure!(before.is_none_or(|(_, before)| before.body == reply.body), "{before:?} {reply:?}");
    }
    ensure!(count(&server, &management.secret).await? == CALLS);
    server.stop().await
}

#[tokio::test]
async fn of_many_concurrent_changes_of_a_version_one_succeeds() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = gateway.management.secret.clone();
    let made = gateway.server.send(&Call::post(GUARDRAILS).key(&secret).json(r#"{"name":"g"}"#)).await?;
    let tag = made.headers.get("etag").context("no tag")?.as_bytes().to_vec();
    let path = format!("{GUARDRAILS}/{}", made.json()?["data"]["id"].as_str().unwrap_or_default());
    let mut calls = JoinSet::new();
    for number in 0..12 {
        let body = format!(r#"{{"name":"n{number}"}}"#);
        let call = Call::new(Method::PATCH, &path).key(&secret).header("if-match", &tag).json(body);
        let address = gateway.server.address();
        calls.spawn(async move { call.send(address).await });
    }
    let mut statuses = Vec::new();
    while let Some(reply) = calls.join_next().await {
        statuses.push(reply??.status);
    }
    statuses.sort_unstable();
    ensure!(statuses[0] == 200 && statuses[1..] == [412; 11], "{statuses:?}");
    let any = Call::new(Method::DELETE, &path).key(&secret).header("if-match", "*");
    gateway.server.send(&any).await?.ok()?;
    gateway.server.send(&any).await?.envelope(404)?;
    Ok(())
}

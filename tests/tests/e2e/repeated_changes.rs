//! Every change over HTTP has one effect or none: sent twice at once, and repeated after a crash or a lost answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Call, Instance, Key, Reply, Report, Server, Upstream};

use crate::catalogue::row;
use crate::gateway::TestGateway;

/// How a change answers when it is sent again.
#[derive(Clone, Copy, PartialEq)]
enum Again {
    /// As the first time.
    Same,
    /// 409, because the first answer had a secret.
    Secret,
    /// 404, because it is deleted.
    Gone,
}
use Again::{Gone, Same, Secret};

/// Method, path and body. `{key}` and `{guardrail}` stand for new records of the workspace `{workspace}`, which has a
/// daily budget; `{receiver}` for a webhook, `{row}` for a new model, `{n}` for a number that no other call has.
const CHANGES: &[(&str, &str, &str, Again)] = &[
    ("POST", "/keys", r#"{"name":"n {n}","workspace_id":"{workspace}"}"#, Secret),
    ("PATCH", "/keys/{key}", r#"{"name":"n {n}"}"#, Same),
    ("POST", "/keys/{key}/rotate", r#"{"grace_seconds":60}"#, Secret),
    ("DELETE", "/keys/{key}", "", Gone),
    ("POST", "/guardrails", r#"{"name":"g","workspace_id":"{workspace}"}"#, Same),
    ("PATCH", "/guardrails/{guardrail}", r#"{"description":"{n}"}"#, Same),
    ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{key}"]}"#, Same),
    ("DELETE", "/guardrails/{guardrail}", "", Gone),
    ("POST", "/workspaces", r#"{"name":"w {n}"}"#, Same),
    ("PATCH", "/workspaces/{workspace}", r#"{"description":"{n}"}"#, Same),
    ("PUT", "/workspaces/{workspace}/budgets/daily", r#"{"limit_usd":1{n}}"#, Same),
    ("DELETE", "/workspaces/{workspace}/budgets/daily", "", Gone),
    ("POST", "/workspaces/{workspace}/credits", r#"{"add_usd":1}"#, Same),
    (
        "POST",
        "/presets/triage/decisions?workspace_id={workspace}",
        r#"{"model":"sandbox/decider","questions":{"q{n}":{"type":"noul","instructions":"Is it?"}}}"#,
        Same,
    ),
    ("PATCH", "/presets/triage?workspace_id={workspace}", r#"{"name":"p {n}"}"#, Same),
    (
        "POST",
        "/observability/destinations",
        r#"{"name":"d {n}","workspace_id":"{workspace}","type":"webhook","config":{"url":"{receiver}"}}"#,
        Same,
    ),
    ("POST", "/catalogue/imports?mode=merge", "[{row}]", Same),
];

struct Installation {
    instance: Instance,
    key: Key,
    workspace: String,
    receiver: Upstream,
    sent: u32,
}

impl Installation {
    async fn start() -> Result<(Self, Server)> {
        let TestGateway { instance, server, management, .. } =
            TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
        let workspace = instance.workspace("own").await?;
        let receiver = Upstream::start(Behaviour::json("{}")).await?;
        Ok((Self { instance, key: management, workspace, receiver, sent: 0 }, server))
    }

    /// Returns a change with new records. The same call is the same request.
    async fn call(&mut self, server: &Server, method: &str, path: &str, body: &str) -> Result<Call> {
        self.sent += 1;
        let new = async |path: &str, member: &str| -> Result<String> {
            let body = format!(r#"{{"name":"of the test","workspace_id":"{}"}}"#, self.workspace);
            let made = server.send(&self.managing(Call::post(format!("/api/v1{path}")).json(body))).await?.json()?;
            Ok(made["data"][member].as_str().context("the record has no name")?.to_owned())
        };
        let (key, guardrail) = (new("/keys", "hash").await?, new("/guardrails", "id").await?);
        let budget = format!("/api/v1/workspaces/{}/budgets/daily", self.workspace);
        let set = Call::new(Method::PUT, budget).json(r#"{"limit_usd":1}"#);
        server.send(&self.managing(set)).await?.ok()?;
        let fill = |text: &str| {
            text.replace("{key}", &key)
                .replace("{guardrail}", &guardrail)
                .replace("{workspace}", &self.workspace)
                .replace("{receiver}", &self.receiver.base_url())
                .replace("{row}", &row(&format!("acme/m-{}", self.sent), "acme/m", "text").to_string())
                .replace("{n}", &self.sent.to_string())
        };
        let call = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{}", fill(path)));
        let call = if body.is_empty() { call } else { call.json(fill(body)) };
        let is_post = method == "POST";
        Ok(self.managing(if is_post { call.header("idempotency-key", format!("change-{}", self.sent)) } else { call }))
    }

    fn managing(&self, call: Call) -> Call {
        call.key(&self.key.secret)
    }

    /// Returns the number of changes that the key has made.
    async fn changes(&self, server: &Server) -> Result<usize> {
        let path = format!("/api/v1/audit?actor=key:{}&limit=1000", self.key.id);
        let read: Value = server.send(&self.managing(Call::get(path))).await?.ok()?;
        ensure!(read["next_cursor"].is_null(), "more changes than one page");
        Ok(read["data"].as_array().context("no list")?.len())
    }
}

fn is_again(again: Again, first: &Reply, second: &Reply) -> bool {
    match again {
        Same => second.status == first.status,
        Secret => second.status == 409,
        Gone => second.status == 404,
    }
}

#[tokio::test]
async fn change_that_is_sent_twice_at_once_has_one_effect() -> Result<()> {
    let (mut installation, server) = Installation::start().await?;
    let mut report = Report::default();
    for (method, path, body, again) in CHANGES {
        let call = installation.call(&server, method, path, body).await?;
        let before = installation.changes(&server).await?;
        let (one, two) = tokio::join!(server.send(&call), server.send(&call));
        let (one, two) = (one?, two?);
        let (first, second) = if one.status < 300 { (one, two) } else { (two, one) };
        let effects = installation.changes(&server).await? - before;
        let as_expected = first.status < 300 && is_again(*again, &first, &second) && effects == 1;
        let outcome = as_expected.then_some(()).with_context(|| {
            format!("{} and {}, {effects} effects: {} {}", first.status, second.status, first.text(), second.text())
        });
        report.case(&format!("{method} {path}"), outcome);
        let third = server.send(&call).await?;
        let repeated = is_again(*again, &first, &third) && installation.changes(&server).await? - before == 1;
        report.case(&format!("{method} {path}, a third time"), repeated.then_some(()).with_context(|| third.text()));
    }
    report.finish()?;
    server.stop().await
}

#[tokio::test]
async fn change_that_a_crash_interrupts_has_one_effect_when_it_is_repeated() -> Result<()> {
    let (mut installation, mut server) = Installation::start().await?;
    let mut report = Report::default();
    let (mut done, mut undone) = (0, 0);
    for (method, path, body, again) in CHANGES {
        for delay in [200, 2_000, 30_000] {
            let call = installation.call(&server, method, path, body).await?;
            let before = installation.changes(&server).await?;
            let address = server.address();
            let killed = async {
                sleep(Duration::from_micros(delay)).await;
                server.kill().await
            };
            let (first, killed) = tokio::join!(call.send(address), killed);
            killed?;
            let first = first.ok().map(|reply| reply.status);
            server = installation.instance.serve().await?;
            let effects = installation.changes(&server).await? - before;
            *if effects == 1 { &mut done } else { &mut undone } += 1;
            let repeated = server.send(&call).await?;
            let after = installation.changes(&server).await? - before;
            let is_answered = match (effects, again) {
                (0, _) | (_, Same) => repeated.status < 300,
                (_, Secret) => repeated.status == 409,
                (_, Gone) => repeated.status == 404,
            };
            let is_kept = first.is_none_or(|status| status < 300 && effects == 1);
            let outcome = (is_answered && is_kept && effects <= 1 && after == 1).then_some(());
            report.case(
                &format!("{method} {path}, killed after {delay} us"),
                outcome.with_context(|| {
                    format!(
                        "first {first:?}, {effects} effects; then {}, {after}: {}",
                        repeated.status,
                        repeated.text()
                    )
                }),
            );
        }
    }
    report.finish()?;
    ensure!(done > 0 && undone > 0, "every crash came too {}", if done > 0 { "late" } else { "early" });
    server.stop().await
}

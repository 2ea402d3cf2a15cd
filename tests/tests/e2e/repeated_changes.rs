//! Every change over HTTP has one effect or none: sent twice at once, and repeated after a crash or a lost answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Call, Instance, Key, Reply, Report, Server, Upstream, promotion};

use crate::catalogue::row;
use crate::gateway::TestGateway;
use crate::management_scopes::pattern;

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

/// Method, path and body. `{key}`, `{guardrail}`, `{destination}`, `{file}` and `{document}` stand for new records of the
/// workspace `{workspace}`, `{empty}` for a new workspace, `{receiver}` for a webhook, `{row}` for a new model, `{n}` for a
/// number that no other call has.
const CHANGES: &[(&str, &str, &str, Again)] = &[
    ("POST", "/keys", r#"{"name":"n {n}","workspace_id":"{workspace}"}"#, Secret),
    ("PATCH", "/keys/{key}", r#"{"name":"n {n}"}"#, Same),
    ("POST", "/keys/{key}/rotate", r#"{"grace_seconds":60}"#, Secret),
    ("DELETE", "/keys/{key}", "", Gone),
    ("POST", "/guardrails", r#"{"name":"g","workspace_id":"{workspace}"}"#, Same),
    ("PATCH", "/guardrails/{guardrail}", r#"{"description":"{n}"}"#, Same),
    ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{key}"]}"#, Same),
    ("POST", "/guardrails/{guardrail}/assignments/keys/remove", r#"{"key_hashes":["{key}"]}"#, Same),
    ("POST", "/guardrails/{guardrail}/versions/1/restore", "", Same),
    ("DELETE", "/guardrails/{guardrail}", "", Gone),
    ("POST", "/workspaces", r#"{"name":"w {n}"}"#, Same),
    ("PATCH", "/workspaces/{workspace}", r#"{"description":"{n}"}"#, Same),
    ("DELETE", "/workspaces/{empty}", "", Gone),
    ("PUT", "/workspaces/{workspace}/budgets/daily", r#"{"limit_usd":1{n}}"#, Same),
    ("DELETE", "/workspaces/{workspace}/budgets/daily", "", Gone),
    ("PATCH", "/workspaces/{workspace}/budgets", r#"{"monthly":5{n},"lifetime":null}"#, Same),
    ("POST", "/workspaces/{workspace}/credits", r#"{"add_usd":1}"#, Same),
    ("DELETE", "/workspaces/{workspace}/credits", "", Gone),
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
    ("PATCH", "/observability/destinations/{destination}", r#"{"name":"d {n}"}"#, Same),
    ("DELETE", "/observability/destinations/{destination}", "", Gone),
    ("PATCH", "/providers/sandbox", r#"{"paused":true}"#, Same),
    ("POST", "/catalogue/imports?mode=merge", "[{row}]", Same),
    ("PUT", "/containers/sess_own/files?path=new-{n}&workspace_id={workspace}", "content", Same),
    ("DELETE", "/containers/sess_own/files/{file}", "", Gone),
    ("DELETE", "/files/{document}?workspace_id={workspace}", "", Gone),
];

/// Method and path of a change, and the call that brings about the state that it changes.
const BEFORE: &[(&str, &str, (&str, &str, &str))] = &[
    (
        "POST",
        "/guardrails/{guardrail}/assignments/keys/remove",
        ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{key}"]}"#),
    ),
    (
        "POST",
        "/guardrails/{guardrail}/versions/1/restore",
        ("PATCH", "/guardrails/{guardrail}", r#"{"description":"second version"}"#),
    ),
    (
        "DELETE",
        "/workspaces/{workspace}/budgets/daily",
        ("PUT", "/workspaces/{workspace}/budgets/daily", r#"{"limit_usd":1}"#),
    ),
    ("DELETE", "/workspaces/{workspace}/credits", ("POST", "/workspaces/{workspace}/credits", r#"{"add_usd":1}"#)),
    ("PATCH", "/providers/sandbox", ("PATCH", "/providers/sandbox", r#"{"paused":false}"#)),
];

/// The other routes that are no reads, and the reason. Those of Decisions change no record of the management.
const OTHERS: &[(&str, &str)] = &[
    ("POST /containers/{}/files/{}/promote", "has tests of its own: idempotency.rs and interrupted_promotions.rs"),
    (
        "POST /generation/feedback",
        "evidence without an audit entry: contract/evidence.rs and http/evidence.rs repeat it",
    ),
    ("POST /guardrails/{}/explain", "changes nothing"),
    ("POST /labels", "evidence without an audit entry: contract/evidence.rs and http/evidence.rs repeat it"),
    ("POST /observability/destinations/{}/retry", "needs dead letters: broadcast.rs"),
    ("POST /observability/destinations/{}/test", "changes nothing: sends a test trace"),
    ("POST /providers/{}/test", "changes nothing: makes a test call"),
];

struct Installation {
    instance: Instance,
    key: Key,
    /// A key of the workspace that reads and deletes files.
    inference: Key,
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
        let inference = instance.key(&["--workspace", &workspace]).await?;
        Ok((Self { instance, key: management, inference, workspace, receiver, sent: 0 }, server))
    }

    /// Returns a change with new records. The same call is the same request.
    async fn call(&mut self, server: &Server, method: &str, path: &str, body: &str) -> Result<Call> {
        self.sent += 1;
        let mut values = vec![
            ("{workspace}", self.workspace.clone()),
            ("{receiver}", self.receiver.base_url()),
            ("{row}", row(&format!("acme/m-{}", self.sent), "acme/m", "text").to_string()),
            ("{n}", self.sent.to_string()),
        ];
        for name in ["{key}", "{guardrail}", "{destination}", "{empty}", "{file}", "{document}"] {
            if path.contains(name) || body.contains(name) {
                values.push((name, self.create(server, name).await?));
            }
        }
        let fill = |text: &str| values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        for (.., (method, path, body)) in BEFORE.iter().filter(|(of, at, _)| (*of, *at) == (method, path)) {
            let before = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{}", fill(path)));
            server.send(&self.managing(before.json(fill(body)))).await?.ok()?;
        }
        let call = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{}", fill(path)));
        let call = match body {
            "" => call,
            "content" => call.body(body),
            _ => call.json(fill(body)),
        };
        if method == "DELETE" && path.starts_with("/containers/") {
            return Ok(call.key(&self.inference.secret));
        }
        let is_post = method == "POST";
        Ok(self.managing(if is_post { call.header("idempotency-key", format!("change-{}", self.sent)) } else { call }))
    }

    /// Creates a record and returns its name.
    async fn create(&self, server: &Server, name: &str) -> Result<String> {
        let (workspace, receiver, sent) = (&self.workspace, self.receiver.base_url(), self.sent);
        let of_workspace = format!(r#"{{"name":"of the test","workspace_id":"{workspace}"}}"#);
        let (path, body, member) = match name {
            "{key}" => ("/keys", of_workspace, "/data/hash"),
            "{guardrail}" => ("/guardrails", of_workspace, "/data/id"),
            "{empty}" => ("/workspaces", format!(r#"{{"name":"empty {sent}"}}"#), "/data/id"),
            // A workspace has at most five webhooks.
            "{destination}" => {
                let other = self.post(server, "/workspaces", format!(r#"{{"name":"of {sent}"}}"#), "/data/id").await?;
                let config = format!(r#""type":"webhook","config":{{"url":"{receiver}"}}"#);
                let body = format!(r#"{{"name":"of {sent}","workspace_id":"{other}",{config}}}"#);
                ("/observability/destinations", body, "/data/id")
            }
            _ => {
                let path = format!("/api/v1/containers/sess_own/files?path=old-{sent}&workspace_id={workspace}");
                let put = Call::new(Method::PUT, path).body("content");
                let file = server.send(&self.managing(put)).await?.ok()?;
                let file = file["id"].as_str().context("no id of the file")?.to_owned();
                if name == "{file}" {
                    return Ok(file);
                }
                let document = server.send(&promotion(&self.inference.secret, "sess_own", &file)).await?.ok()?;
                return Ok(document["id"].as_str().context("no id of the document")?.to_owned());
            }
        };
        self.post(server, path, body, member).await
    }

    /// Creates a record and returns a member of the response.
    async fn post(&self, server: &Server, path: &str, body: String, member: &str) -> Result<String> {
        let made = server.send(&self.managing(Call::post(format!("/api/v1{path}")).json(body))).await?;
        ensure!(made.status == 201, "{path}: {} {}", made.status, made.text());
        Ok(made.json()?.pointer(member).and_then(Value::as_str).context("the record has no name")?.to_owned())
    }

    fn managing(&self, call: Call) -> Call {
        call.key(&self.key.secret)
    }

    /// Returns the state by which effects are counted.
    async fn state(&self, server: &Server) -> Result<State> {
        let path = format!("/api/v1/audit?actor=key:{}&limit=1000", self.key.id);
        let read: Value = server.send(&self.managing(Call::get(path))).await?.ok()?;
        ensure!(read["next_cursor"].is_null(), "more changes than one page");
        let listed = Call::get("/api/v1/containers/sess_own/files?limit=1000").key(&self.inference.secret);
        let listed: Value = server.send(&listed).await?.ok()?;
        let count = |list: &Value| list["data"].as_array().map(Vec::len).context("no list");
        Ok(State { entries: count(&read)?, files: count(&listed)? })
    }
}

/// The number of changes that the management key has made, and of files in the container, whose changes have no audit
/// entries.
#[derive(Debug, Clone, Copy)]
struct State {
    entries: usize,
    files: usize,
}

impl State {
    /// Returns the number of effects since an earlier state.
    fn effects_since(self, before: Self) -> usize {
        self.entries - before.entries + self.files.abs_diff(before.files)
    }
}

fn is_again(method: &str, again: Again, first: &Reply, second: &Reply) -> bool {
    match again {
        // The request has an `Idempotency-Key`.
        Same if method == "POST" => (second.status, second.text()) == (first.status, first.text()),
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
        let before = installation.state(&server).await?;
        let (one, two) = tokio::join!(server.send(&call), server.send(&call));
        let (one, two) = (one?, two?);
        let (first, second) = if one.status < 300 { (one, two) } else { (two, one) };
        let effects = installation.state(&server).await?.effects_since(before);
        let as_expected = first.status < 300 && is_again(method, *again, &first, &second) && effects == 1;
        let outcome = as_expected.then_some(()).with_context(|| {
            format!("{} and {}, {effects} effects: {} {}", first.status, second.status, first.text(), second.text())
        });
        report.case(&format!("{method} {path}"), outcome);
        let third = server.send(&call).await?;
        let repeated =
            is_again(method, *again, &first, &third) && installation.state(&server).await?.effects_since(before) == 1;
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
            let before = installation.state(&server).await?;
            let address = server.address();
            let killed = async {
                sleep(Duration::from_micros(delay)).await;
                server.kill().await
            };
            let (first, killed) = tokio::join!(call.send(address), killed);
            killed?;
            let first = first.ok().map(|reply| reply.status);
            server = installation.instance.serve().await?;
            let effects = installation.state(&server).await?.effects_since(before);
            *if effects == 1 { &mut done } else { &mut undone } += 1;
            let repeated = server.send(&call).await?;
            let after = installation.state(&server).await?.effects_since(before);
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

/// A new route without a line in one of the lists fails this test.
#[tokio::test]
async fn every_change_is_listed() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let is_segment = |one: &str, other: &str| one == "{}" || other == "{}" || one == other;
    let is_route = |one: &str, other: &str| {
        one.split('/').count() == other.split('/').count()
            && one.split('/').zip(other.split('/')).all(|(one, other)| is_segment(one, other))
    };
    let (mut unlisted, mut found) = (Vec::new(), Vec::new());
    for (path, item) in document["paths"].as_object().context("no paths")? {
        let Some(path) = path.strip_prefix("/api/v1/") else { continue };
        for (method, operation) in item.as_object().context("no operations")? {
            let is_change = ["post", "put", "patch", "delete"].contains(&method.as_str());
            if !is_change || operation["tags"][0] == "Decisions" {
                continue;
            }
            let route = pattern(&method.to_uppercase(), &format!("/{path}"));
            let is_listed = CHANGES.iter().any(|(method, path, ..)| is_route(&pattern(method, path), &route));
            if !is_listed && !OTHERS.iter().any(|(other, _)| *other == route) {
                unlisted.push(route.clone());
            }
            found.push(route);
        }
    }
    ensure!(unlisted.is_empty(), "add to CHANGES or OTHERS: {unlisted:#?}");
    let old: Vec<_> = OTHERS.iter().filter(|(other, _)| !found.iter().any(|route| route == other)).collect();
    ensure!(old.is_empty(), "no such routes: {old:#?}");
    Ok(())
}

//! The rights of management keys over HTTP and on the command line.

pub mod table;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Call, Key, Report, Server, Upstream, promotion};

use self::table::{INFERENCE, NO_KEY, OF_ANOTHER, OF_SUSPENDED, ROUTES};
use crate::gateway::{QUESTIONS, TestGateway, outdated_for};

/// Returns method and pattern without names of parameters and query.
pub fn pattern(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
}

/// The caller with an unrestricted key.
pub const UNRESTRICTED: usize = 5;

/// A server with objects of a workspace, and callers with each kind of key.
pub struct Scopes {
    pub gateway: TestGateway,
    workspace: String,
    pub callers: Vec<Key>,
    objects: Vec<(&'static str, String)>,
    _receiver: Upstream,
}

impl Scopes {
    pub async fn start() -> Result<Self> {
        let receiver = Upstream::start(Behaviour::json("{}")).await?;
        let gateway = TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
        let instance = &gateway.instance;
        let (workspace, other) = (instance.workspace("own").await?, instance.workspace("other").await?);
        let mut callers = vec![instance.key(&["--workspace", &workspace]).await?];
        for (access, of) in [("read", &workspace), ("keys", &workspace), ("write", &other), ("write", &workspace)] {
            callers.push(instance.key(&["--management", "--access", access, "--workspace", of]).await?);
        }
        callers.push(instance.key(&["--management"]).await?);
        callers.push(Key { secret: String::new(), hash: String::new(), id: String::new() });
        callers.push(instance.key(&["--workspace", &other]).await?);
        let suspended = instance.workspace("suspended").await?;
        callers.push(instance.key(&["--workspace", &suspended]).await?);
        instance.json(&["workspace", "suspend", &suspended]).await?;
        for access in ["read", "keys"] {
            callers.push(instance.key(&["--management", "--access", access, "--workspace", &other]).await?);
        }
        callers.push(instance.key(&["--management", "--access", "read"]).await?);
        let target = instance.key(&["--workspace", &workspace]).await?;
        let guardrail = instance.guardrail(&["--workspace", &workspace]).await?;
        std::fs::write(instance.path().join("secret"), "a-very-long-signing-secret\n")?;
        let url = format!("{}/traces", receiver.base_url());
        let arguments = [
            &["destination", "create", "--name", "hook", "--type", "webhook", "--endpoint", &url][..],
            &["--secret-file", "secret", "--workspace", &workspace],
        ];
        let destination = instance.json(&arguments.concat()).await?["id"].as_str().unwrap_or_default().to_owned();
        let generation = labelled_answer(&gateway.server, &callers[0].secret, &callers[5].secret, &workspace).await?;
        let put = format!("/api/v1/containers/sess_x/files?path=a.txt&workspace_id={workspace}");
        let put = Call::new(Method::PUT, put).body("content").key(&callers[5].secret);
        let text = |value: &Value| value["id"].as_str().map(str::to_owned).context("no id");
        let file = text(&gateway.server.send(&put).await?.ok()?)?;
        let promoted = gateway.server.send(&promotion(&callers[INFERENCE].secret, "sess_x", &file)).await?;
        let document = text(&promoted.ok()?)?;
        let objects = vec![
            ("{key}", target.id),
            ("{guardrail}", guardrail),
            ("{destination}", destination),
            ("{workspace}", workspace.clone()),
            ("{generation}", generation),
            ("{version}", "1".to_owned()),
            ("{preset}", "triage".to_owned()),
            ("{document}", document),
            ("{file}", file),
            ("{author}", "sandbox".to_owned()),
            ("{slug}", "decider".to_owned()),
            ("{model}", "sandbox%2Fdecider".to_owned()),
            ("{container}", "sess_x".to_owned()),
            ("{provider}", "sandbox".to_owned()),
            ("{period}", "daily".to_owned()),
        ];
        Ok(Self { gateway, workspace, callers, objects, _receiver: receiver })
    }

    pub fn fill(&self, text: &str) -> String {
        self.objects.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
    }

    async fn json(&self, caller: usize, path: &str) -> Result<Value> {
        let call = Call::get(format!("/api/v1{path}")).key(&self.callers[caller].secret);
        self.gateway.server.send(&call).await?.ok()
    }
}

/// Asks a preset of the workspace, and labels the answer; returns its id.
async fn labelled_answer(server: &Server, key: &str, management: &str, workspace: &str) -> Result<String> {
    let version = format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#);
    let create = Call::post(format!("/api/v1/presets/labelled/decisions?workspace_id={workspace}"));
    server.send(&create.json(version).key(management)).await?.ok()?;
    let answer =
        server.decide(key, r#"{"model":"@preset/labelled","state":"It smokes.","questions":{}}"#).await?.ok()?;
    let generation = answer["id"].as_str().context("no id")?.to_owned();
    let label = json!({"generation_id": generation, "question": "refund", "label": true, "source": "human"});
    let call = Call::post("/api/v1/labels").json(json!({"labels": [label]}).to_string()).key(management);
    let reply = server.send(&call).await?.ok()?;
    ensure!(reply["data"]["changed"] == 1, "{reply}");
    Ok(generation)
}

#[tokio::test]
async fn every_route_has_the_expected_status_for_each_kind_of_key() -> Result<()> {
    let scopes = Scopes::start().await?;
    let mut report = Report::default();
    for (method, path, body, expected) in ROUTES {
        for (caller, status) in expected.iter().enumerate() {
            let mut call = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{}", scopes.fill(path)));
            if !body.is_empty() {
                call = call.json(scopes.fill(body));
            }
            if caller != NO_KEY {
                call = call.key(&scopes.callers[caller].secret);
            }
            let reply = scopes.gateway.server.send(&call).await?;
            let is_expected = if reply.status == *status {
                Ok(())
            } else {
                Err(anyhow::anyhow!("{} instead of {status}: {}", reply.status, reply.text()))
            };
            report.case(&format!("{method} {path}, caller {caller}"), is_expected);
            // Content is for inference keys, whatever a management key may do.
            let is_content = expected[INFERENCE] == 200 && expected[5] == 403;
            if reply.status == 403 && ![INFERENCE, OF_ANOTHER, OF_SUSPENDED].contains(&caller) && !is_content {
                let metadata = &reply.envelope(403)?["error"]["metadata"];
                let needs = match path.split('?').next() {
                    Some("/keys") if body.contains("management") => "unrestricted",
                    Some(path) if path.starts_with("/workspaces") => "unrestricted",
                    Some(path) if path.starts_with("/keys") => "keys",
                    Some("/audit" | "/status") => "read_all",
                    Some("/catalogue/imports") => "unrestricted",
                    Some(path) if path.starts_with("/providers") => "unrestricted",
                    _ => "write",
                };
                let is_named = metadata["reason"] == "management_key_restricted" && metadata["needs"] == needs;
                report.case("needs", if is_named { Ok(()) } else { Err(anyhow::anyhow!("{path}: {metadata}")) });
            }
        }
    }
    report.finish()
}

/// A new route without a line in the table fails this test.
#[tokio::test]
async fn every_route_is_listed() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let mut unlisted = Vec::new();
    for (path, item) in document["paths"].as_object().context("no paths")? {
        let Some(path) = path.strip_prefix("/api/v1/") else { continue };
        for (method, operation) in item.as_object().context("no operations")? {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let line = pattern(&method.to_uppercase(), &format!("/{path}"));
            let has_statuses = ROUTES.iter().any(|(method, path, ..)| pattern(method, path) == line);
            if !has_statuses {
                unlisted.push(format!("{line} ({tag})"));
            }
        }
    }
    ensure!(unlisted.is_empty(), "add to ROUTES: {unlisted:#?}");
    Ok(())
}

#[tokio::test]
async fn lists_contain_only_the_workspaces_of_the_key() -> Result<()> {
    let scopes = Scopes::start().await?;
    let workspace = scopes.workspace.as_str();
    // Without workspace_id: all workspaces of the key.
    for (caller, guardrails, destinations) in [(1, 1, 1), (3, 0, 0), (4, 1, 1)] {
        let listed = scopes.json(caller, "/guardrails").await?;
        ensure!(listed["total_count"] == guardrails, "caller {caller}: {listed}");
        let listed = scopes.json(caller, "/observability/destinations").await?;
        ensure!(listed["total_count"] == destinations, "caller {caller}: {listed}");
    }
    // Two workspaces without the default one: a call that creates has to name one.
    let other = scopes.gateway.instance.workspace("third").await?;
    let options = ["--management", "--access", "write", "--workspace", workspace, "--workspace", &other];
    let several = scopes.gateway.instance.key(&options).await?;
    let call = |path: &str| Call::get(format!("/api/v1{path}")).key(&several.secret);
    let required = "workspace_id is required: the key manages several workspaces";
    for path in ["/guardrails".to_owned(), format!("/guardrails?workspace_id={workspace}")] {
        let listed = scopes.gateway.server.send(&call(&path)).await?.ok()?;
        ensure!(listed["total_count"] == 1, "{path}: {listed}");
    }
    let post = Call::post("/api/v1/guardrails").json(r#"{"name":"n"}"#).key(&several.secret);
    scopes.gateway.server.send(&post).await?.error(400, required)?;
    Ok(())
}

/// The default guardrail bounds its workspace, so only an unrestricted key changes it.
#[tokio::test]
async fn default_guardrail_is_changed_by_unrestricted_keys_only() -> Result<()> {
    let scopes = Scopes::start().await?;
    let guardrail = scopes.fill("{guardrail}");
    scopes.gateway.instance.json(&["guardrail", "default", &guardrail]).await?;
    let path = format!("/api/v1/guardrails/{guardrail}");
    let rename = || Call::new(Method::PATCH, &path).json(r#"{"name":"n"}"#);
    let restore = || Call::post(format!("{path}/versions/1/restore"));
    let delete = || Call::new(Method::DELETE, &path);
    for call in [rename(), restore(), delete()] {
        let refused = scopes.gateway.server.send(&call.key(&scopes.callers[4].secret)).await?.envelope(403)?;
        ensure!(refused["error"]["metadata"]["needs"] == "unrestricted", "{refused}");
    }
    for call in [rename(), restore(), delete()] {
        scopes.gateway.server.send(&call.key(&scopes.callers[5].secret)).await?.ok()?;
    }
    Ok(())
}

/// A command sends the whole scope. It does not undo what another one narrowed since it was read.
#[tokio::test]
async fn concurrent_narrowings_by_commands_are_both_in_force() -> Result<()> {
    let scopes = Scopes::start().await?;
    let instance = &scopes.gateway.instance;
    for _ in 0..6 {
        let id = instance.key(&["--management"]).await?.id;
        let by_access = ["key", "update", &id, "--access", "read"];
        let by_workspace = ["key", "update", &id, "--workspace", &scopes.workspace];
        tokio::try_join!(instance.json(&by_access), instance.json(&by_workspace))?;
        let scope = instance.json(&["key", "show", &id]).await?["management"].clone();
        ensure!(scope == json!({"access": "read", "workspaces": [scopes.workspace]}), "{scope}");
    }
    Ok(())
}

#[tokio::test]
async fn changed_scope_is_in_force_within_a_second_and_audited() -> Result<()> {
    let scopes = Scopes::start().await?;
    let instance = &scopes.gateway.instance;
    let key = &scopes.callers[5];
    let call = Call::get(format!("/api/v1/guardrails/{}", scopes.fill("{guardrail}"))).key(&key.secret);
    let beside = instance.serve_beside().await?;
    for server in [&scopes.gateway.server, &beside] {
        server.send(&call).await?.ok()?;
    }
    let other = instance.workspace("elsewhere").await?;
    let narrowed = instance.json(&["key", "update", &key.id, "--access", "read", "--workspace", &other]).await?;
    ensure!(narrowed["management"] == json!({"access": "read", "workspaces": [other]}), "{narrowed}");
    let changed = Instant::now();
    for server in [&scopes.gateway.server, &beside] {
        let outdated = outdated_for(server, &call, 404, changed).await?;
        ensure!(outdated <= Duration::from_millis(1_500), "the old scope was in force for {outdated:?}");
    }
    let log = instance.json(&["audit", "list", "--action", "key.update"]).await?;
    let details = &log["data"][0]["details"];
    ensure!(details["before"]["management"] == json!({"access": "write", "workspaces": null}), "{log}");
    ensure!(details["after"]["management"] == narrowed["management"], "{log}");
    let widened = instance.json(&["key", "update", &key.id, "--access", "write", "--all-workspaces"]).await?;
    ensure!(widened["management"] == json!({"access": "write", "workspaces": null}), "{widened}");
    ensure!(instance.json(&["key", "show", &key.id]).await?["management"] == widened["management"]);
    outdated_for(&scopes.gateway.server, &call, 200, Instant::now()).await?;
    let said = instance.refused(&["key", "update", &scopes.callers[0].id, "--access", "read"]).await?;
    ensure!(said.contains("only a management key has a scope"), "{said}");
    instance.json(&["audit", "verify"]).await?;
    Ok(())
}

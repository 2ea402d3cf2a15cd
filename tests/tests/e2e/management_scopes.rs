//! The rights of management keys over HTTP and on the command line.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Call, Key, Report, Upstream};

use crate::gateway::{TestGateway, body, outdated_for};

/// Statuses by caller: an inference key of the workspace, keys with access `read` and `keys` to it, one with `write` to
/// another workspace, one with `write` to it, an unrestricted key.
type Statuses = [u16; 6];

const READ: Statuses = [403, 200, 200, 404, 200, 200];
const WRITE: Statuses = [403, 403, 403, 404, 200, 200];
/// Records of a workspace that its inference keys read, too.
const RECORDS: Statuses = [200, 200, 200, 404, 200, 200];
/// Records of one inference key.
const OF_ANOTHER_KEY: Statuses = [400, 200, 200, 404, 200, 200];
/// A list that a key of another workspace reads without the resources of this one.
const LIST: Statuses = [403, 200, 200, 200, 200, 200];
const UNRESTRICTED: Statuses = [403, 403, 403, 403, 403, 200];
/// The last caller finds nothing, because the one before it deleted it.
const DELETE: Statuses = [403, 403, 403, 404, 200, 404];

/// The management routes below the base path, with a body and the expected statuses. `{key}`, `{guardrail}`, `{preset}`,
/// `{destination}`, `{workspace}` and `{generation}` stand for objects of the workspace, `{document}` for none,
/// `{provider}` and `{period}` for the sandbox and a day.
const ROUTES: &[(&str, &str, &str, Statuses)] = &[
    ("GET", "/generation?id={generation}", "", [200, 200, 200, 404, 200, 200]),
    (
        "POST",
        "/generation/feedback",
        r#"{"generation_id":"{generation}","category":"other"}"#,
        [200, 403, 403, 404, 200, 200],
    ),
    // A label of another workspace is rejected by itself.
    ("POST", "/labels", r#"{"labels":[]}"#, [403, 403, 403, 200, 200, 200]),
    ("GET", "/generations?workspace_id={workspace}", "", RECORDS),
    ("GET", "/generations?workspace_id=own", "", RECORDS),
    ("GET", "/generations?key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/usage?group_by=key&workspace_id={workspace}", "", RECORDS),
    ("GET", "/usage?group_by=key&key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/usage/rejections?workspace_id=own", "", RECORDS),
    ("GET", "/usage/rejections?key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/activity?workspace_id={workspace}", "", RECORDS),
    ("GET", "/activity?api_key_hash={key}", "", OF_ANOTHER_KEY),
    ("GET", "/guardrails?workspace_id={workspace}", "", READ),
    ("POST", "/guardrails", r#"{"name":"n","workspace_id":"{workspace}"}"#, [403, 403, 403, 404, 201, 201]),
    ("GET", "/guardrails/{guardrail}", "", READ),
    ("PATCH", "/guardrails/{guardrail}", r#"{"name":"n"}"#, WRITE),
    ("GET", "/guardrails/{guardrail}/assignments/keys", "", READ),
    ("GET", "/guardrails/assignments/keys", "", LIST),
    ("GET", "/guardrails/assignments/keys?workspace_id={workspace}", "", READ),
    ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{key}"]}"#, WRITE),
    ("POST", "/guardrails/{guardrail}/assignments/keys/remove", r#"{"key_hashes":["{key}"]}"#, WRITE),
    (
        "POST",
        "/guardrails/{guardrail}/explain",
        r#"{"body":{"model":"sandbox/decider","state":"s","questions":{"q":{"type":"noul","instructions":"Is it?"}}}}"#,
        READ,
    ),
    ("GET", "/guardrails/{guardrail}/versions", "", READ),
    ("GET", "/guardrails/{guardrail}/versions/{version}", "", READ),
    ("POST", "/guardrails/{guardrail}/versions/{version}/restore", "", WRITE),
    ("DELETE", "/guardrails/{guardrail}", "", DELETE),
    (
        "POST",
        "/presets/{preset}/decisions?workspace_id={workspace}",
        r#"{"model":"sandbox/decider","questions":{"q":{"type":"noul","instructions":"Is it?"}}}"#,
        WRITE,
    ),
    ("PATCH", "/presets/{preset}?workspace_id={workspace}", r#"{"name":"n"}"#, WRITE),
    ("GET", "/evidence?preset={preset}&workspace_id={workspace}", "", RECORDS),
    // An inference key reads the presets of its workspace.
    ("GET", "/presets?workspace_id={workspace}", "", [200, 200, 200, 404, 200, 200]),
    ("GET", "/presets/{preset}?workspace_id={workspace}", "", [200, 200, 200, 404, 200, 200]),
    ("GET", "/presets/{preset}/versions?workspace_id={workspace}", "", [200, 200, 200, 404, 200, 200]),
    ("GET", "/presets/{preset}/versions/{version}?workspace_id={workspace}", "", [200, 200, 200, 404, 200, 200]),
    ("GET", "/observability/destinations?workspace_id={workspace}", "", READ),
    // An unknown workspace and an invalid record are 400.
    (
        "POST",
        "/observability/destinations",
        r#"{"name":"n","workspace_id":"{workspace}"}"#,
        [403, 403, 403, 400, 400, 400],
    ),
    ("GET", "/observability/destinations/{destination}", "", READ),
    ("PATCH", "/observability/destinations/{destination}", r#"{"name":"n"}"#, WRITE),
    ("POST", "/observability/destinations/{destination}/test", "", WRITE),
    ("POST", "/observability/destinations/{destination}/retry", "", WRITE),
    ("DELETE", "/observability/destinations/{destination}", "", DELETE),
    ("PUT", "/containers/{container}/files?path=a&workspace_id={workspace}", "1", WRITE),
    ("GET", "/files?workspace_id={workspace}", "", RECORDS),
    ("GET", "/files?workspace_id=own", "", RECORDS),
    // The right is checked before the file, which does not exist.
    ("DELETE", "/files/{document}?workspace_id={workspace}", "", [404, 403, 403, 404, 404, 404]),
    ("GET", "/keys?workspace_id={workspace}", "", READ),
    ("POST", "/keys", r#"{"name":"n","workspace_id":"{workspace}"}"#, [403, 403, 201, 404, 201, 201]),
    ("POST", "/keys", r#"{"name":"n","management":{"access":"read"}}"#, [403, 403, 403, 403, 403, 201]),
    ("GET", "/keys/{key}", "", READ),
    ("PATCH", "/keys/{key}", r#"{"name":"n"}"#, [403, 403, 200, 404, 200, 200]),
    ("POST", "/keys/{key}/rotate", "", [403, 403, 200, 404, 200, 200]),
    ("GET", "/audit", "", UNRESTRICTED),
    ("GET", "/status", "", UNRESTRICTED),
    ("GET", "/status?model=sandbox/decider", "", UNRESTRICTED),
    ("GET", "/status?model=acme/none", "", [403, 403, 403, 403, 403, 404]),
    ("POST", "/providers/{provider}/test", "", UNRESTRICTED),
    ("PATCH", "/providers/{provider}", r#"{"paused":false}"#, UNRESTRICTED),
    ("POST", "/catalogue/imports?dry_run=true", r#"[{"id":"a/b"}]"#, [403, 403, 403, 403, 403, 400]),
    ("GET", "/workspaces", "", LIST),
    ("POST", "/workspaces", r#"{"name":"n"}"#, [403, 403, 403, 403, 403, 201]),
    ("GET", "/workspaces/{workspace}", "", READ),
    ("PATCH", "/workspaces/{workspace}", r#"{"description":"d"}"#, UNRESTRICTED),
    ("PUT", "/workspaces/{workspace}/budgets/{period}", r#"{"limit_usd":1000}"#, UNRESTRICTED),
    ("GET", "/workspaces/{workspace}/budgets", "", READ),
    ("GET", "/workspaces/{workspace}/budgets/{period}", "", READ),
    ("DELETE", "/workspaces/{workspace}/budgets/{period}", "", UNRESTRICTED),
    ("POST", "/workspaces/{workspace}/credits", r#"{"add_usd":1000}"#, UNRESTRICTED),
    ("GET", "/credits?workspace_id={workspace}", "", READ),
    ("DELETE", "/workspaces/{workspace}/credits", "", UNRESTRICTED),
    // The workspace has contents.
    ("DELETE", "/workspaces/{workspace}", "", [403, 403, 403, 403, 403, 400]),
    // The last callers find nothing, because the first of them deleted it.
    ("DELETE", "/keys/{key}", "", [403, 403, 200, 404, 404, 404]),
];

/// The other routes below the base path, whose rights do not depend on a management key's scope.
const OTHER_ROUTES: &[&str] = &[
    "DELETE /containers/{}/files/{}",
    "GET /containers/{}/files",
    "GET /containers/{}/files/{}",
    "GET /containers/{}/files/{}/content",
    "GET /decisions/models",
    "GET /endpoints/zdr",
    "GET /files/{}",
    "GET /files/{}/content",
    "GET /key",
    "GET /model/{}/{}",
    "GET /models",
    "GET /models/count",
    "GET /models/user",
    "GET /models/{}",
    "GET /models/{}/{}",
    "GET /models/{}/{}/endpoints",
    "GET /providers",
    "POST /containers/{}/files/{}/promote",
];

/// Returns method and pattern without names of parameters and query.
fn pattern(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
}

struct Scopes {
    gateway: TestGateway,
    workspace: String,
    callers: Vec<Key>,
    objects: Vec<(&'static str, String)>,
    _receiver: Upstream,
}

impl Scopes {
    async fn start() -> Result<Self> {
        let receiver = Upstream::start(Behaviour::json("{}")).await?;
        let gateway = TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
        let instance = &gateway.instance;
        let (workspace, other) = (instance.workspace("own").await?, instance.workspace("other").await?);
        let mut callers = vec![instance.key(&["--workspace", &workspace]).await?];
        for (access, of) in [("read", &workspace), ("keys", &workspace), ("write", &other), ("write", &workspace)] {
            callers.push(instance.key(&["--management", "--access", access, "--workspace", of]).await?);
        }
        callers.push(instance.key(&["--management"]).await?);
        let target = instance.key(&["--workspace", &workspace]).await?;
        let guardrail = instance.guardrail(&["--workspace", &workspace]).await?;
        std::fs::write(instance.path().join("secret"), "a-very-long-signing-secret\n")?;
        let url = format!("{}/traces", receiver.base_url());
        let arguments = [
            &["destination", "create", "--name", "hook", "--type", "webhook", "--endpoint", &url][..],
            &["--secret-file", "secret", "--workspace", &workspace],
        ];
        let destination = instance.json(&arguments.concat()).await?["id"].as_str().unwrap_or_default().to_owned();
        let answer = gateway.server.decide(&callers[0].secret, body("sandbox/decider")).await?.ok()?;
        let generation = answer["id"].as_str().context("no id")?.to_owned();
        let objects = vec![
            ("{key}", target.id),
            ("{guardrail}", guardrail),
            ("{destination}", destination),
            ("{workspace}", workspace.clone()),
            ("{generation}", generation),
            ("{version}", "1".to_owned()),
            ("{preset}", "triage".to_owned()),
            ("{document}", "tgfile_x".to_owned()),
            ("{container}", "sess_x".to_owned()),
            ("{provider}", "sandbox".to_owned()),
            ("{period}", "daily".to_owned()),
        ];
        Ok(Self { gateway, workspace, callers, objects, _receiver: receiver })
    }

    fn fill(&self, text: &str) -> String {
        self.objects.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
    }

    async fn json(&self, caller: usize, path: &str) -> Result<Value> {
        let call = Call::get(format!("/api/v1{path}")).key(&self.callers[caller].secret);
        self.gateway.server.send(&call).await?.ok()
    }
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
            let reply = scopes.gateway.server.send(&call.key(&scopes.callers[caller].secret)).await?;
            let is_expected = if reply.status == *status {
                Ok(())
            } else {
                Err(anyhow::anyhow!("{} instead of {status}: {}", reply.status, reply.text()))
            };
            report.case(&format!("{method} {path}, caller {caller}"), is_expected);
            if reply.status == 403 && caller > 0 {
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

/// A new route without a line in one of the lists fails this test.
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
            if !has_statuses && !OTHER_ROUTES.contains(&line.as_str()) && tag != "Decisions" {
                unlisted.push(format!("{line} ({tag})"));
            }
        }
    }
    ensure!(unlisted.is_empty(), "add to ROUTES or OTHER_ROUTES: {unlisted:#?}");
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
    ensure!(said.contains("only a management key has access and workspaces"), "{said}");
    instance.json(&["audit", "verify"]).await?;
    Ok(())
}

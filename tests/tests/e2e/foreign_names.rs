//! Ids, filters, members of bodies and cursors that name resources of another workspace.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tollgate_tests::{Call, Report};

use crate::gateway::{QUESTIONS, TestGateway, body};
use crate::management_scopes::table::{INFERENCE, OF_ANOTHER, ROUTES};
use crate::management_scopes::{Scopes, UNRESTRICTED, pattern};

/// The caller with `write` to the workspace.
const OWN_WRITE: usize = 4;
/// The caller with `write` to another workspace.
const OTHER_WRITE: usize = 3;
/// The caller with `read` to all workspaces.
const READ_ALL: usize = 11;

/// Parameters and members that name resources of a workspace.
const NAMES: [&str; 13] = [
    "workspace_id",
    "key",
    "api_key_hash",
    "api_key_hashes",
    "key_hash",
    "key_hashes",
    "guardrail_id",
    "default_guardrail_id",
    "designated_version_id",
    "generation_id",
    "id",
    "preset",
    "after_id",
];

/// Requests with an object of another workspace, `{other_…}`: method, path, body, caller, and the status or a part of the
/// 200. The table of routes has the others.
const FOREIGN: &[(&str, &str, &str, usize, u16, &str)] = &[
    ("GET", "/keys?guardrail_id={other_guardrail}", "", OWN_WRITE, 404, ""),
    ("GET", "/usage?group_by=model&key={other_key}", "", OWN_WRITE, 404, ""),
    // A position, which needs no document.
    ("GET", "/files?after_id={other_document}", "", INFERENCE, 200, "\"data\""),
    ("GET", "/files/{document}/content?workspace_id={other_workspace}", "", INFERENCE, 400, ""),
    ("GET", "/containers/{container}/files?workspace_id={other_workspace}", "", INFERENCE, 400, ""),
    ("GET", "/containers/{container}/files/{file}?workspace_id={other_workspace}", "", INFERENCE, 400, ""),
    ("GET", "/containers/{container}/files/{file}/content?workspace_id={other_workspace}", "", INFERENCE, 400, ""),
    ("DELETE", "/containers/{container}/files/{file}?workspace_id={other_workspace}", "", INFERENCE, 400, ""),
    (
        "POST",
        "/keys",
        r#"{"name":"n","workspace_id":"{workspace}","guardrail_id":"{other_guardrail}"}"#,
        OWN_WRITE,
        400,
        "",
    ),
    ("PATCH", "/keys/{key}", r#"{"name":"n","workspace_id":"{other_workspace}"}"#, OWN_WRITE, 400, ""),
    ("PATCH", "/keys/{key}", r#"{"guardrail_id":"{other_guardrail}"}"#, OWN_WRITE, 400, ""),
    ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{other_key}"]}"#, OWN_WRITE, 200, ":0}"),
    (
        "POST",
        "/guardrails/{guardrail}/assignments/keys/remove",
        r#"{"key_hashes":["{other_key}"]}"#,
        OWN_WRITE,
        200,
        ":0}",
    ),
    (
        "POST",
        "/guardrails/{guardrail}/explain",
        r#"{"key_hash":"{other_key}","body":{"model":"sandbox/decider","state":"s","questions":{"q":{"type":"noul","instructions":"Is it?"}}}}"#,
        OWN_WRITE,
        400,
        "",
    ),
    (
        "POST",
        "/labels",
        r#"{"labels":[{"generation_id":"{other_generation}","question":"refund","label":true,"source":"human"}]}"#,
        OWN_WRITE,
        200,
        r#""changed":0"#,
    ),
    (
        "POST",
        "/generation/feedback",
        r#"{"generation_id":"{other_generation}","category":"other"}"#,
        OWN_WRITE,
        404,
        "",
    ),
    (
        "POST",
        "/observability/destinations",
        r#"{"name":"n","type":"webhook","config":{"url":"https://example.org/x"},"workspace_id":"{workspace}","api_key_hashes":["{other_key}"]}"#,
        OWN_WRITE,
        400,
        "",
    ),
    ("PATCH", "/observability/destinations/{destination}", r#"{"api_key_hashes":["{other_key}"]}"#, OWN_WRITE, 400, ""),
    ("PATCH", "/workspaces/{workspace}", r#"{"default_guardrail_id":"{other_guardrail}"}"#, UNRESTRICTED, 400, ""),
    ("POST", "/workspaces", r#"{"name":"n","default_guardrail_id":"{other_guardrail}"}"#, UNRESTRICTED, 400, ""),
    (
        "PATCH",
        "/presets/{preset}?workspace_id={workspace}",
        r#"{"designated_version_id":"{other_version}"}"#,
        OWN_WRITE,
        400,
        "",
    ),
    ("GET", "/evidence?preset={other_preset}&workspace_id={workspace}", "", OWN_WRITE, 404, ""),
    ("POST", "/systemone", r#"{"model":"@preset/{other_preset}","state":"s","questions":{}}"#, INFERENCE, 404, ""),
];

/// The objects of the other workspace, which `{other_…}` stands for.
async fn others(scopes: &Scopes) -> Result<Vec<(&'static str, String)>> {
    let (gateway, own) = (&scopes.gateway, &scopes.callers[OF_ANOTHER]);
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).map(str::to_owned).with_context(|| format!("{pointer}: {value}"))
    };
    let workspace = gateway.instance.json(&["workspace", "show", "other"]).await?;
    let workspace = text(&workspace, "/id")?;
    for (name, of) in [("theirs", workspace.as_str()), ("triage", &scopes.fill("{workspace}"))] {
        create_preset(scopes, name, of).await?;
    }
    let call = Call::get(format!("/api/v1/presets/theirs?workspace_id={workspace}"));
    let preset = gateway.server.send(&call.key(&scopes.callers[UNRESTRICTED].secret)).await?.ok()?;
    let file = gateway.instance.container_file(&workspace, "sess_o", "theirs.csv")?;
    std::fs::write(file, "a,b\n")?;
    // The id is the path in base64.
    let document = gateway.server.promote(&own.secret, "sess_o", "cfile_dGhlaXJzLmNzdg").await?.ok()?;
    let generation = gateway.server.decide(&own.secret, body("sandbox/decider")).await?.ok()?;
    Ok(vec![
        ("{other_guardrail}", gateway.instance.guardrail(&["--workspace", &workspace]).await?),
        ("{other_key}", own.id.clone()),
        ("{other_generation}", text(&generation, "/id")?),
        ("{other_version}", text(&preset, "/data/designated_version/id")?),
        ("{other_preset}", "theirs".to_owned()),
        ("{other_document}", text(&document, "/id")?),
        ("{other_workspace}", workspace),
    ])
}

async fn create_preset(scopes: &Scopes, name: &str, workspace: &str) -> Result<()> {
    let path = format!("/api/v1/presets/{name}/decisions?workspace_id={workspace}");
    let body = format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#);
    let call = Call::post(path).json(body).key(&scopes.callers[UNRESTRICTED].secret);
    scopes.gateway.server.send(&call).await?.ok().map(drop)
}

#[tokio::test]
async fn names_of_another_workspace_name_no_resource() -> Result<()> {
    let scopes = Scopes::start().await?;
    let others = others(&scopes).await?;
    let fill = |text: &str| others.iter().fold(scopes.fill(text), |text, (name, object)| text.replace(name, object));
    let mut report = Report::default();
    for (method, path, body, caller, status, part) in FOREIGN {
        let call = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{}", fill(path)));
        let call = if body.is_empty() { call } else { call.json(fill(body)) };
        let reply = scopes.gateway.server.send(&call.key(&scopes.callers[*caller].secret)).await?;
        let text = reply.text();
        let is_expected = reply.status == *status && text.contains(part);
        let said = format!("{} {text} instead of {status} {part}", reply.status);
        report.case(&format!("{method} {path} {body}"), is_expected.then_some(()).context(said));
    }
    report.finish()
}

/// A parameter or member that names a resource, without a request that names one of another workspace, fails this test.
#[tokio::test]
async fn every_name_of_a_resource_is_tried() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let mut tried = BTreeSet::new();
    let routes = ROUTES.iter().map(|(method, path, body, _)| (method, path, body));
    for (method, path, body) in routes.chain(FOREIGN.iter().map(|(method, path, body, ..)| (method, path, body))) {
        for name in NAMES {
            if path.contains(&format!("?{name}="))
                || path.contains(&format!("&{name}="))
                || body.contains(&format!("\"{name}\":"))
            {
                tried.insert(format!("{} {name}", pattern(method, path)));
            }
        }
    }
    let mut missing = Vec::new();
    for (path, item) in document["paths"].as_object().context("no paths")? {
        let Some(path) = path.strip_prefix("/api/v1") else { continue };
        for (method, operation) in item.as_object().context("no operations")? {
            let mut names = Vec::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                names.extend(parameter["name"].as_str().filter(|_| parameter["in"] == "query"));
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            members(&document, schema, &mut names);
            let line = pattern(&method.to_uppercase(), path);
            let wanted = names.into_iter().filter(|name| NAMES.contains(name)).map(|name| format!("{line} {name}"));
            missing.extend(wanted.filter(|name| !tried.contains(name)));
        }
    }
    ensure!(missing.is_empty(), "add to FOREIGN: {missing:#?}");
    Ok(())
}

/// Adds the names of the members of a schema, also of inner objects.
fn members<'a>(document: &'a Value, schema: &'a Value, names: &mut Vec<&'a str>) {
    let reference = schema["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    let schema = reference.unwrap_or(schema);
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        names.push(name);
        members(document, member, names);
    }
    for part in ["allOf", "anyOf", "oneOf"] {
        schema[part].as_array().into_iter().flatten().for_each(|part| members(document, part, names));
    }
    if schema["items"].is_object() {
        members(document, &schema["items"], names);
    }
}

/// The lists with cursors: a path, a filter, a caller, and another one who may read the same list.
const CURSORS: &[(&str, &str, usize, usize)] = &[
    ("/audit?limit=1", "action=key", UNRESTRICTED, READ_ALL),
    ("/generations?limit=1&workspace_id={workspace}", "model=sandbox%2Fdecider", OWN_WRITE, READ_ALL),
    ("/evidence?limit=1&preset=own&workspace_id={workspace}", "question=refund", OWN_WRITE, READ_ALL),
];

#[tokio::test]
async fn cursor_of_another_list_filter_caller_or_workspace_is_rejected() -> Result<()> {
    let scopes = Scopes::start().await?;
    create_preset(&scopes, "own", &scopes.fill("{workspace}")).await?;
    for _ in 0..3 {
        let asked = json!({"model": "@preset/own", "questions": {}, "state": "s"}).to_string();
        let call = Call::post("/api/v1/systemone").key(&scopes.callers[INFERENCE].secret).json(asked);
        scopes.gateway.server.send(&call).await?.ok()?;
    }
    let get = async |caller: usize, path: &str| {
        let call = Call::get(format!("/api/v1{}", scopes.fill(path))).key(&scopes.callers[caller].secret);
        scopes.gateway.server.send(&call).await
    };
    let mut report = Report::default();
    for (list, _, owner, _) in CURSORS {
        let page = get(*owner, list).await?.ok()?;
        let cursor = page["next_cursor"].as_str().with_context(|| format!("{list}: {page}"))?;
        get(*owner, &format!("{list}&cursor={cursor}")).await?.ok()?;
        let mut tried = vec![
            (OTHER_WRITE, format!("/generations?limit=1&cursor={cursor}")),
            (OF_ANOTHER, format!("/generations?limit=1&cursor={cursor}")),
            (INFERENCE, format!("/generations?limit=1&cursor={cursor}")),
        ];
        for (path, filter, caller, another) in CURSORS {
            tried.push((*caller, format!("{path}&{filter}&cursor={cursor}")));
            tried.push((*another, format!("{path}&cursor={cursor}")));
            if path != list {
                tried.push((*caller, format!("{path}&cursor={cursor}")));
            }
        }
        for (caller, path) in tried {
            let reply = get(caller, &path).await?;
            let rejected = reply.envelope(400).and_then(|_| {
                ensure!(reply.text().contains("cursor"), "another error: {}", reply.text());
                Ok(())
            });
            report.case(&format!("{list}, caller {caller} {path}"), rejected);
        }
    }
    report.finish()
}

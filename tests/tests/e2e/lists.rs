//! Lists: their counts, and walks over their pages while others write.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Report, Upstream};

use crate::gateway::{QUESTIONS, TestGateway, body_with};

/// Every list with a count, and its length under each filter. The first server creates a management key, too. `{w}` is a
/// workspace, `{g}` a guardrail, `{a}` an answer.
const LISTS: &[(&str, &[(&str, usize)])] = &[
    ("/guardrails", &[("", 5), ("workspace_id={w}", 2), ("workspace_id=default", 3)]),
    ("/guardrails/assignments/keys", &[("", 4), ("workspace_id={w}", 0), ("workspace_id=default", 4)]),
    ("/guardrails/{g}/assignments/keys", &[("", 4)]),
    ("/guardrails/{g}/versions", &[("", 4)]),
    (
        "/keys",
        &[
            ("", 9),
            ("workspace_id={w}", 3),
            ("workspace_id=default", 6),
            ("name=k-3", 1),
            ("name=k-3&workspace_id={w}", 0),
            ("external_user=ann", 4),
            ("external_user=ann&workspace_id={w}", 1),
            ("guardrail_id={g}", 4),
            ("guardrail_id={g}&external_user=ann&include_expired=true", 3),
            ("include_disabled=false", 7),
            ("include_disabled=false&workspace_id=default&external_user=ann", 2),
            ("kind=management", 3),
            ("kind=management&name=ops", 1),
        ],
    ),
    ("/labels", &[("generation_id={a}&question=refund", 3)]),
    ("/observability/destinations", &[("", 4), ("workspace_id={w}", 1), ("workspace_id=default", 3)]),
    ("/presets", &[("", 4), ("workspace_id={w}", 1), ("workspace_id=default", 3)]),
    ("/presets/p-0/versions", &[("", 4), ("workspace_id=default", 4)]),
    ("/workspaces", &[("", 4)]),
    ("/workspaces/{w}/budgets", &[("", 3)]),
];

/// Lists whose filters have property tests.
const MODELS: [&str; 3] = ["/api/v1/models", "/api/v1/models/user", "/v1/models"];

/// Sends a call with the management key, which must succeed.
async fn send(gateway: &TestGateway, call: Call) -> Result<Value> {
    let reply = gateway.server.send(&call.key(&gateway.management.secret)).await?;
    ensure!([200, 201].contains(&reply.status), "{} {}", reply.status, reply.text());
    reply.json()
}

/// Reads a path with the management key.
async fn read(gateway: &TestGateway, path: &str) -> Result<Value> {
    send(gateway, Call::get(format!("/api/v1{path}"))).await
}

/// Creates a record and returns its id.
async fn create(gateway: &TestGateway, path: &str, record: Value) -> Result<String> {
    let made = send(gateway, Call::post(format!("/api/v1{path}")).json(record.to_string())).await?;
    Ok(made["data"]["id"].as_str().unwrap_or_default().to_owned())
}

/// Creates the records of [`LISTS`]; returns the ids of the workspace, of the guardrail and of the answer.
async fn create_records(gateway: &TestGateway, hook: &str) -> Result<[String; 3]> {
    let mut workspaces = vec!["default".to_owned()];
    for name in ["w", "x", "y"] {
        workspaces.push(create(gateway, "/workspaces", json!({ "name": name })).await?);
    }
    let default = read(gateway, "/workspaces/default").await?["data"]["id"].as_str().context("no id")?.to_owned();
    // Of each kind the first ones belong to the default workspace, the others to `w`.
    let of = |number: usize, first: usize| if number < first { &default } else { &workspaces[1] };
    let mut guardrails = Vec::new();
    for number in 0..5 {
        let record = json!({"name": format!("g-{number}"), "workspace_id": of(number, 3)});
        guardrails.push(create(gateway, "/guardrails", record).await?);
    }
    for number in 0..3 {
        let change = json!({"description": number.to_string()}).to_string();
        let path = format!("/api/v1/guardrails/{}", guardrails[0]);
        send(gateway, Call::new(http::Method::PATCH, path).json(change)).await?;
    }
    for number in 0..8 {
        let user = [0, 1, 2, 5].contains(&number).then_some("ann");
        let guardrail = (number < 4).then(|| guardrails[0].clone());
        let record = json!({"name": format!("k-{number}"), "workspace_id": of(number, 5), "external_user": user,
            "guardrail_id": guardrail});
        let key = create(gateway, "/keys", record).await?;
        if [1, 6].contains(&number) {
            let call = Call::new(http::Method::PATCH, format!("/api/v1/keys/{key}"));
            send(gateway, call.json(r#"{"disabled":true}"#)).await?;
        }
    }
    create(gateway, "/keys", json!({"name": "ops", "management": {"access": "read", "workspaces": null}})).await?;
    for number in 0..4 {
        let record = json!({"name": format!("d-{number}"), "workspace_id": of(number, 3), "type": "webhook",
            "config": {"url": hook}});
        create(gateway, "/observability/destinations", record).await?;
        let versions = if number == 0 { 4 } else { 1 };
        for _ in 0..versions {
            create_preset_version(gateway, &format!("p-{number}?workspace_id={}", of(number, 3))).await?;
        }
    }
    for (interval, usd) in [("daily", 1), ("weekly", 2), ("lifetime", 3)] {
        let path = format!("/api/v1/workspaces/{}/budgets/{interval}", workspaces[1]);
        send(gateway, Call::new(http::Method::PUT, path).json(json!({"limit_usd": usd}).to_string())).await?;
    }
    Ok([workspaces.swap_remove(1), guardrails.swap_remove(0), label_answer(gateway).await?])
}

/// Asks a preset, labels the answer three times, and returns its id.
async fn label_answer(gateway: &TestGateway) -> Result<String> {
    let ask = json!({"model": "@preset/p-0", "questions": {}, "state": "s"}).to_string();
    let asked = gateway.server.send(&Call::post("/api/v1/systemone").key(&gateway.inference.secret).json(ask)).await?;
    let id = asked.ok()?["id"].as_str().context("no id")?.to_owned();
    for label in [true, false, true] {
        let labels =
            json!({"labels": [{"generation_id": id, "question": "refund", "label": label, "source": "human"}]});
        send(gateway, Call::post("/api/v1/labels").json(labels.to_string())).await?;
    }
    Ok(id)
}

/// Adds a version to the preset `SLUG[?QUERY]`.
async fn create_preset_version(gateway: &TestGateway, preset: &str) -> Result<()> {
    let (slug, query) = preset.split_once('?').unwrap_or((preset, ""));
    let config = format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#);
    let call = Call::post(format!("/api/v1/presets/{slug}/decisions?{query}")).json(config);
    send(gateway, call).await.map(drop)
}

/// Returns the paths of lists with a count in the OpenAPI document, each with whether it has pages.
async fn described_lists(gateway: &TestGateway) -> Result<Vec<(String, bool)>> {
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let paths = document["paths"].as_object().context("no paths")?;
    let mut lists = Vec::new();
    for (path, methods) in paths {
        let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let schema = if name.is_empty() { schema } else { &document["components"]["schemas"][name] };
        if schema.to_string().contains("\"total_count\"") {
            lists.push((path.clone(), methods["get"]["parameters"].to_string().contains("\"offset\"")));
        }
    }
    Ok(lists)
}

fn rows(page: &Value) -> Result<Vec<Value>> {
    page["data"].as_array().cloned().with_context(|| format!("no data: {page}"))
}

#[tokio::test]
async fn count_is_the_length_of_the_list_under_every_filter() -> Result<()> {
    let receiver = Upstream::start(Behaviour::json("{}")).await?;
    let gateway = TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
    let [workspace, guardrail, answer] = create_records(&gateway, &receiver.base_url()).await?;
    let described = described_lists(&gateway).await?;
    let generic = |path: &str| path.replace("{g}", "{id}").replace("{w}", "{id}").replace("p-0", "{slug}");
    let tested: BTreeSet<String> = LISTS.iter().map(|(path, _)| format!("/api/v1{}", generic(path))).collect();
    let wanted = described.iter().map(|(path, _)| path.clone()).filter(|path| !MODELS.contains(&path.as_str()));
    let wanted: BTreeSet<String> = wanted.collect();
    ensure!(tested == wanted, "{tested:?} instead of {wanted:?}");

    let mut report = Report::default();
    for (path, filters) in LISTS {
        let described_path = format!("/api/v1{}", generic(path));
        let has_pages = described.iter().any(|(path, has_pages)| *path == described_path && *has_pages);
        for (filter, expected) in *filters {
            let path = format!("{path}?{filter}").replace("{g}", &guardrail);
            let path = path.replace("{w}", &workspace).replace("{a}", &answer);
            report.case(&path, verify_count(&gateway, &path, has_pages, *expected).await);
        }
    }
    report.finish()
}

/// Compares the count of a list with its length, as a whole and in pages of two.
async fn verify_count(gateway: &TestGateway, path: &str, has_pages: bool, expected: usize) -> Result<()> {
    let page = async |paging: String| read(gateway, &format!("{path}{paging}")).await;
    let whole = page(if has_pages { "&limit=100".to_owned() } else { String::new() }).await?;
    let list = rows(&whole)?;
    ensure!((list.len(), &whole["total_count"]) == (expected, &json!(expected)), "not {expected}: {whole}");
    let mut walked = Vec::new();
    while walked.len() < list.len() && has_pages {
        let next = page(format!("&limit=2&offset={}", walked.len())).await?;
        ensure!(next["total_count"] == expected, "{next}");
        let found = rows(&next)?;
        ensure!(!found.is_empty(), "a page is missing after {walked:?}");
        walked.extend(found);
    }
    ensure!(!has_pages || walked == list, "{walked:?} instead of {list:?}");
    Ok(())
}

/// The writes during a walk.
const WRITES: usize = 5;

/// Reads a list page by page, by the member `cursor` of a page, while `write` adds elements. Its elements at the
/// beginning are those of one read, and none is repeated.
async fn walk(gateway: &TestGateway, path: &str, cursor: &str, write: impl AsyncFn() -> Result<()>) -> Result<()> {
    let whole = rows(&read(gateway, &format!("{path}&limit=1000")).await?)?;
    ensure!(whole.len() > 5, "a short list: {}", whole.len());
    let (mut walked, mut next, mut writes) = (Vec::new(), String::new(), 0);
    loop {
        let page = read(gateway, &format!("{path}&limit=2{next}")).await?;
        walked.extend(rows(&page)?);
        let Some(position) = page[cursor].as_str() else { break };
        next = format!("&cursor={position}");
        if writes < WRITES {
            write().await?;
            writes += 1;
        }
    }
    let different: BTreeSet<String> = walked.iter().map(Value::to_string).collect();
    ensure!(different.len() == walked.len(), "an element is repeated: {walked:?}");
    walked.retain(|element| whole.contains(element));
    ensure!(walked == whole, "{} of {} elements", walked.len(), whole.len());
    Ok(())
}

#[tokio::test]
async fn walk_over_pages_is_one_read_while_others_write() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let users = ["u", "v"];
    create_preset_version(&gateway, "p").await?;
    let ask = async |number: usize| {
        let body = json!({"model": "@preset/p", "questions": {}, "state": number.to_string()}).to_string();
        let call = Call::post("/api/v1/systemone").key(&gateway.inference.secret).json(body);
        gateway.server.send(&call).await?.ok()?;
        gateway.decide(body_with(&format!(r#""user":"{}""#, users[number % 2]))).await.map(drop)
    };
    let create_guardrail = async || create(&gateway, "/guardrails", json!({"name": "g"})).await.map(drop);
    let promote = async |number: usize| crate::files::promote(&gateway, &format!("out/{number}"), b"x").await.map(drop);
    for number in 0..14 {
        ask(number).await?;
    }
    for number in 0..7 {
        promote(number).await?;
        create_guardrail().await?;
    }
    let key = &gateway.inference.id;
    let mut report = Report::default();
    for filter in ["", "user=u", "outcome=completed&provider=sandbox", "workspace_id=default", &format!("key={key}")] {
        let path = format!("/generations?{filter}");
        report.case(&path, walk(&gateway, &path, "next_cursor", async || ask(0).await).await);
    }
    for filter in ["", "question=refund", "version=1"] {
        let path = format!("/evidence?preset=p&workspace_id=default&{filter}");
        report.case(&path, walk(&gateway, &path, "next_cursor", async || ask(0).await).await);
    }
    for filter in ["", "action=guardrail.create", "actor=key%3A", "since=2020-01-01T00:00:00Z"] {
        let path = format!("/audit?{filter}");
        report.case(&path, walk(&gateway, &path, "next_cursor", create_guardrail).await);
    }
    let path = "/files?workspace_id=default";
    report.case(path, walk(&gateway, path, "cursor", async || promote(99).await).await);
    report.finish()
}

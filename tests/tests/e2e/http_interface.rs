//! The HTTP interface around the operations: routes, envelopes, request ids, and the OpenAPI document.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Report, Upstream};

use crate::gateway::{TestGateway, body};

const OPERATIONS: [(&str, &str); 5] = [
    ("/containers/{container_id}/files/{file_id}/promote", "post"),
    ("/api/alpha/decisions", "post"),
    ("/guardrails/{id}/assignments/keys", "post"),
    ("/model/{author}/{slug}", "get"),
    ("/models/count", "get"),
];

#[tokio::test]
async fn unknown_route_returns_404_with_envelope() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    for path in [
        "/nonsense",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v2/models/count",
        "/api/v1/models/count/more",
        "/API/V1/models/count",
        "/api/v1/model/only-author",
        "/api/v1/model/a/b/c",
        "/api/v1/containers",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/health",
        "/health/ready/x",
        "/favicon.ico",
        "/%ff%00",
        "/api/v1//models/count",
    ] {
        for call in [Call::get(path), Call::get(path).key(&gateway.inference.secret), Call::post(path).json("{")] {
            report.case(path, gateway.server.send(&call).await?.error(404, ""));
        }
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn unsupported_method_returns_405_with_allowed_methods() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    let secret = &gateway.inference.secret;
    for (path, allowed) in [
        ("/api/v1/containers/sess_a/files/cfile_YQ/promote", "POST"),
        ("/api/v1/files", "GET"),
        ("/api/v1/api/alpha/decisions", "POST"),
        ("/api/alpha/decisions", "POST"),
        ("/api/v1/guardrails/x/assignments/keys/remove", "POST"),
        ("/api/v1/guardrails/x/explain", "POST"),
        ("/api/v1/model/sandbox/decider", "GET"),
        ("/api/v1/models/count", "GET"),
        ("/health/ready", "GET"),
        ("/openapi.json", "GET"),
    ] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
            if method == allowed {
                continue;
            }
            let reply = gateway.server.send(&Call::new(method.clone(), path).key(secret)).await?;
            report.case(
                &format!("{method} {path}"),
                reply.envelope(405).and_then(|_| {
                    let allow = reply.header("allow");
                    ensure!(allow.split(',').any(|name| name.trim() == allowed), "allow: {allow:?}");
                    Ok(())
                }),
            );
        }
    }
    let head = gateway.server.send(&Call::new(Method::HEAD, "/api/v1/models/count").key(secret)).await?;
    ensure!(head.status == 200 && head.body.is_empty(), "HEAD: {}", head.status);
    let head = gateway.server.send(&Call::new(Method::HEAD, "/api/v1/api/alpha/decisions").key(secret)).await?;
    ensure!(head.status == 405, "HEAD: {}", head.status);
    report.finish()
}

#[tokio::test]
async fn response_has_request_id_of_client_or_a_new_one() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    let good = |id: &str| Call::get("/api/v1/models/count").key(&gateway.inference.secret).header("x-request-id", id);
    let bad = |id: &str| Call::get("/nonsense").header("x-request-id", id);
    let longest = "a".repeat(128);
    for id in ["abc-1.2_3", "0", &longest] {
        for call in [good(id), bad(id)] {
            let reply = gateway.server.send(&call).await?;
            ensure!(reply.header("x-request-id") == id, "{id} became {:?}", reply.header("x-request-id"));
        }
        report.case(id, gateway.server.send(&bad(id)).await?.envelope(404));
    }
    let long = "a".repeat(129);
    let mut fresh = std::collections::BTreeSet::new();
    for id in ["", "a b", "a/b", "<script>", "é", "a,b", &long] {
        for call in [good(id), bad(id)] {
            let reply = gateway.server.send(&call).await?;
            let given = reply.header("x-request-id").to_owned();
            ensure!(!given.is_empty() && given != id, "{id:?} was taken over");
            ensure!(fresh.insert(given), "a request id came twice");
        }
    }
    for path in ["/health/live", "/openapi.json", "/docs", "/"] {
        let reply = gateway.server.send(&Call::get(path)).await?;
        ensure!(!reply.header("x-request-id").is_empty(), "{path} has none");
    }
    report.finish()
}

#[tokio::test]
async fn only_public_routes_need_no_key() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for path in ["/", "/health/live", "/health/ready", "/openapi.json", "/docs", "/docs/rapidoc-9.3.8.min.js"] {
        for call in [Call::get(path), Call::get(path).header("authorization", "Bearer nonsense")] {
            let reply = gateway.server.send(&call).await?;
            ensure!(reply.status == 200, "{path}: {}", reply.status);
        }
    }
    for path in ["/api/v1/models/count", "/api/v1/model/sandbox/decider"] {
        gateway.server.send(&Call::get(path)).await?.envelope(401)?;
    }
    Ok(())
}

#[tokio::test]
async fn document_is_openapi_3_1_with_all_five_operations() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let reply = gateway.server.send(&Call::get("/openapi.json")).await?;
    ensure!(reply.header("content-type").starts_with("application/json"));
    let document = reply.ok()?;
    ensure!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")), "{}", document["openapi"]);
    ensure!(document["info"]["version"] == "1.0.0", "{}", document["info"]);
    let paths = document["paths"].as_object().context("no paths")?;
    let mut ids = std::collections::BTreeSet::new();
    for (path, method) in OPERATIONS {
        let full = format!("/api/v1{path}");
        let item = paths.get(&full).or_else(|| paths.get(path)).with_context(|| format!("{full} is missing"))?;
        let operation = &item[method];
        let responses = operation["responses"].as_object().with_context(|| format!("{full} has no responses"))?;
        for status in ["200", "401", "403", "413", "429", "500", "503"] {
            ensure!(responses.contains_key(status), "{full} does not describe {status}");
        }
        let id = operation["operationId"].as_str().with_context(|| format!("{full} has no operationId"))?;
        ensure!(ids.insert(id.to_owned()), "{id} is used twice");
        for parameter in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let parameters = operation["parameters"].as_array().or_else(|| item["parameters"].as_array());
            let described = parameters.is_some_and(|all| all.iter().any(|one| one["name"] == parameter));
            ensure!(described, "{full} does not describe {parameter}");
        }
        let secured = operation.get("security").or_else(|| document.get("security"));
        ensure!(secured.is_some_and(|security| security.to_string().len() > 4), "{full} needs no key");
    }
    ensure!(document["components"]["securitySchemes"].to_string().contains("bearer"), "no bearer scheme");
    let mut dangling = Vec::new();
    references(&document, &mut |reference| {
        let pointer = reference.strip_prefix('#').unwrap_or("/-");
        if document.pointer(pointer).is_none() {
            dangling.push(reference.to_owned());
        }
    });
    ensure!(dangling.is_empty(), "{dangling:?} lead nowhere");
    let printed = gateway.instance.json(&["openapi"]).await?;
    ensure!(printed == document, "the command prints another document than the server answers");
    Ok(())
}

fn references(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                match inner.as_str() {
                    Some(reference) if name == "$ref" => visit(reference),
                    _ => references(inner, visit),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|inner| references(inner, visit)),
        _ => {}
    }
}

#[tokio::test]
async fn documentation_page_needs_no_network() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let reply = gateway.server.send(&Call::get("/docs")).await?;
    ensure!(reply.status == 200 && reply.header("content-type").starts_with("text/html"));
    let policy = reply.header("content-security-policy").to_owned();
    ensure!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    ensure!(policy.contains("connect-src 'self';") && !policy.contains("http"), "{policy}");
    let page = reply.text();
    ensure!(!page.contains("//"), "the page names another host: {page}");
    let mut loaded = 0;
    for attribute in ["src=\"", "spec-url=\""] {
        for rest in page.split(attribute).skip(1) {
            let (path, _) = rest.split_once('"').context("an attribute without an end")?;
            let reply = gateway.server.send(&Call::get(format!("/{path}"))).await?;
            ensure!(reply.status == 200, "{path}: {}", reply.status);
            loaded += 1;
        }
    }
    ensure!(loaded == 2, "the page loads {loaded} files: {page}");
    Ok(())
}

#[tokio::test]
async fn documented_examples_are_accepted() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let mut report = Report::default();
    for path in ["/api/v1/api/alpha/decisions", "/v1/systemone", "/v1/decisions"] {
        let operation = &document["paths"][path]["post"];
        let request = &operation["requestBody"]["content"]["application/json"]["examples"]["sandbox"]["value"];
        let response = &operation["responses"]["200"]["content"]["application/json"]["examples"]["sandbox"]["value"];
        let call = Call::post(path).key(&gateway.inference.secret).json(request.to_string());
        let answer = gateway.server.send(&call).await?.ok()?;
        let compared = || {
            for member in ["answers", "model", "provider", "usage"] {
                ensure!(answer[member] == response[member], "{member}: {answer} instead of {response}");
            }
            Ok(())
        };
        report.case(path, compared());
    }
    report.finish()
}

#[tokio::test]
async fn base_path_prefixes_operations_but_not_public_routes() -> Result<()> {
    let gateway = TestGateway::start("[server]\nbase_path = \"/gateway/v1\"\n").await?;
    let secret = &gateway.inference.secret;
    gateway.server.send(&Call::get("/gateway/v1/models/count").key(secret)).await?.ok()?;
    let model = gateway.server.send(&Call::get("/gateway/v1/model/sandbox/decider").key(secret)).await?.ok()?;
    let details = model["data"]["links"]["details"].as_str().unwrap_or_default();
    ensure!(details.starts_with("/gateway/v1/models/"), "{details}");
    for path in ["/gateway/v1/api/alpha/decisions", "/api/alpha/decisions"] {
        gateway.server.send(&Call::post(path).key(secret).json(body("sandbox/decider"))).await?.ok()?;
    }
    gateway.server.send(&Call::get("/api/v1/models/count").key(secret)).await?.envelope(404)?;
    ensure!(gateway.server.send(&Call::get("/openapi.json")).await?.text().contains("/gateway/v1"));
    Ok(())
}

#[tokio::test]
async fn response_metadata_is_included_on_request() -> Result<()> {
    for (profile, member) in [("interface", "service_metadata"), ("openrouter", "openrouter_metadata")] {
        let gateway =
            TestGateway::start(&format!("[server]\nwire_names = \"{profile}\"\n[sandbox]\nerrors = true\n")).await?;
        let call = tollgate_tests::decisions(&gateway.inference.secret, body("sandbox/error-502"));
        let silent = gateway.server.send(&call).await?.json()?;
        ensure!(silent.get(member).is_none_or(Value::is_null), "{silent}");
        let asking = call.clone().header("x-tollgate-metadata", "enabled");
        let told = gateway.server.send(&asking).await?.json()?;
        ensure!(told[member].is_object(), "{told}");
        for (name, value) in [
            ("user-agent", "speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter"),
            ("user-agent", "typesafe-sdk/0.7.5"),
            ("x-openrouter-title", "a client"),
        ] {
            let told = gateway.server.send(&asking.clone().header(name, value)).await?.json()?;
            ensure!(told["openrouter_metadata"].is_object(), "{name}: {value}: {told}");
        }
        let told = gateway.server.send(&call.header("x-openrouter-metadata", "enabled")).await?.json()?;
        ensure!(told["openrouter_metadata"].is_object(), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn requests_per_minute_are_limited_per_key_when_configured() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nrequests_per_minute = 5\n").await?;
    let call = Call::get("/api/v1/models/count").key(&gateway.inference.secret);
    let mut refused = None;
    for _ in 0..20 {
        let reply = gateway.server.send(&call).await?;
        if reply.status != 200 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.context("twenty of five were let through")?;
    refused.error(429, "Rate limit exceeded")?;
    ensure!(refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=60).contains(&seconds)));
    for header in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        ensure!(refused.header(header).parse::<u64>().is_ok(), "{header}: {:?}", refused.header(header));
    }
    // Labels count as any other request.
    let feedback = json!({"generation_id": "gen-dec-none", "category": "other", "labels": {}}).to_string();
    let feedback = Call::post("/api/v1/generation/feedback").json(feedback).key(&gateway.inference.secret);
    gateway.server.send(&feedback).await?.error(429, "Rate limit exceeded")?;
    gateway.server.send(&Call::get("/api/v1/models/count").key(&gateway.management.secret)).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn example_of_the_openapi_document_is_answered_beside_a_provider() -> Result<()> {
    // The answers of the document's own example.
    let answers = r#"{"model":"judge-1.0","usage":{"input_tokens":9,"output_tokens":3},"answers":{
        "refund":{"type":"noul","noul":0.88},
        "queue":{"type":"choice","choice":"billing","probabilities":{"billing":0.67,"hardware":0.24,"other":0.09}},
        "heat":{"type":"score","score":1.37,"probabilities":{"0":0.21,"1":0.21,"2":0.58}}}}"#;
    let alpha = Upstream::start(Behaviour::json(answers)).await?;
    let gateway = TestGateway::with_providers(&alpha, &alpha, 5_000).await?;
    let document = gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let post = &document["paths"]["/api/v1/api/alpha/decisions"]["post"];
    let example = &post["requestBody"]["content"]["application/json"]["examples"]["sandbox"]["value"];
    let model = example["model"].as_str().context("no model")?;
    ensure!(!model.starts_with("sandbox/"), "the sandbox is off beside a provider: {model}");
    let answer = gateway.decide(example.to_string()).await?;
    ensure!(answer["model"] == model, "{answer}");
    gateway.server.stop().await
}

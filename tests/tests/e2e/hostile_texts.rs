//! Texts with NUL, which PostgreSQL neither stores nor compares, wherever a route takes a text.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Map, Value};
use tollgate_tests::{Call, Report};

use crate::management_scopes::table::{INFERENCE, ROUTES};
use crate::management_scopes::{Scopes, UNRESTRICTED, pattern};

const ENCODED: [&str; 2] = ["%00", "a%00b"];
/// The second is looked up in the store.
const TEXTS: [&str; 2] = [NUL, "@preset/a\0b"];
const NUL: &str = "a\0b";

#[tokio::test]
async fn nul_in_a_path_a_query_or_a_body_is_never_a_server_error() -> Result<()> {
    let scopes = Scopes::start().await?;
    let document = scopes.gateway.server.send(&Call::get("/openapi.json")).await?.ok()?;
    let (mut report, mut texts) = (Report::default(), 0);
    for (method, path, body, _) in ROUTES {
        let operation = operation(&document, method, path).with_context(|| format!("{method} {path}"))?;
        let full = scopes.fill(path);
        let route = full.split('?').next().unwrap_or_default();
        let mut cases: Vec<(String, String)> = Vec::new();
        for (placeholder, text) in placeholders(path).flat_map(|name| ENCODED.map(|text| (name, text))) {
            cases.push((scopes.fill(&path.replace(placeholder, text)), scopes.fill(body)));
        }
        for (name, text) in query_names(operation).flat_map(|name| ENCODED.map(|text| (name, text))) {
            cases.push((format!("{route}?{name}={text}"), scopes.fill(body)));
        }
        if !body.is_empty() {
            let filled = serde_json::from_str(&scopes.fill(body))?;
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let variants = with_nul(&document, schema, &filled, 4);
            texts += variants.len();
            cases.extend(variants.into_iter().map(|body| (full.clone(), body.to_string())));
        }
        for (path, body) in &cases {
            for caller in [INFERENCE, UNRESTRICTED] {
                let mut call = Call::new(Method::from_bytes(method.as_bytes())?, format!("/api/v1{path}"));
                if !body.is_empty() {
                    call = call.json(body.clone());
                }
                let reply = scopes.gateway.server.send(&call.key(&scopes.callers[caller].secret)).await;
                let outcome = reply.and_then(|reply| {
                    ensure!(reply.status < 500, "{}: {}", reply.status, reply.text());
                    Ok(())
                });
                report.case(&format!("{method} {path} {body}, caller {caller}"), outcome);
            }
        }
    }
    ensure!(texts >= 90, "the document describes only {texts} texts of bodies");
    scopes.gateway.server.ensure_healthy().await?;
    report.finish()
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    let path = path.split('?').next().unwrap_or_default();
    path.split('/').filter(|segment| segment.starts_with('{'))
}

fn operation<'d>(document: &'d Value, method: &str, path: &str) -> Option<&'d Value> {
    let wanted = pattern(method, path);
    let paths = document["paths"].as_object()?.iter();
    let mut below = paths.filter_map(|(path, item)| Some((path.strip_prefix("/api/v1")?, item)));
    let (_, item) = below.find(|(path, _)| pattern(method, path) == wanted)?;
    item.get(method.to_ascii_lowercase())
}

fn query_names(operation: &Value) -> impl Iterator<Item = &str> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.filter(|parameter| parameter["in"] == "query").filter_map(|parameter| parameter["name"].as_str())
}

/// Returns the body with NUL in each text that the schema describes, one at a time.
fn with_nul(document: &Value, schema: &Value, base: &Value, depth: usize) -> Vec<Value> {
    let reference = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
    if let Some(referred) = reference.and_then(|pointer| document.pointer(pointer)) {
        return with_nul(document, referred, base, depth);
    }
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let mut variants = Vec::new();
    for choice in ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[name].as_array()).flatten() {
        variants.extend(with_nul(document, choice, base, depth));
    }
    let is = |name: &str| {
        schema["type"] == name || schema["type"].as_array().is_some_and(|types| types.iter().any(|of| of == name))
    };
    if is("string") {
        variants.extend(TEXTS.map(Value::from));
    }
    if is("array") {
        let items = with_nul(document, &schema["items"], &base[0], depth);
        variants.extend(items.into_iter().map(|item| Value::Array(vec![item])));
    }
    let of_members = base.as_object().cloned().unwrap_or_default();
    let member = |name: &str, value: Value| {
        let mut members: Map<String, Value> = of_members.clone();
        members.insert(name.to_owned(), value);
        Value::Object(members)
    };
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        let values = with_nul(document, of, &base[name], depth);
        variants.extend(values.into_iter().map(|value| member(name, value)));
    }
    if let Some(of) = schema.get("additionalProperties").filter(|of| of.is_object()) {
        let known = of_members.iter().next().map(|(name, value)| (name.clone(), value.clone()));
        let (name, value) = known.unwrap_or_else(|| ("a".to_owned(), Value::Null));
        variants.extend(with_nul(document, of, &value, depth).into_iter().map(|value| member(&name, value)));
        variants.push(member(NUL, value));
    }
    variants
}

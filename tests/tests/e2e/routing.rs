//! Preferences, split and merge, hedging, shared calls, throttling, and their metadata.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use tollgate_tests::{Behaviour, Call, Recorded, Upstream, vendors};

use crate::gateway::{ANSWER, QUESTIONS, TestGateway};

/// Starts a gateway with two providers and the given endpoints.
async fn gateway(alpha: &Upstream, beta: &Upstream, more: &str) -> Result<TestGateway> {
    TestGateway::start(&format!(
        "[[providers]]\nslug = \"alpha\"\nname = \"Alpha AI\"\nwire = \"system-one\"\nbase_url = \"{}\"\n\
         attempt_timeout_ms = 3000\n\
         [[providers]]\nslug = \"beta\"\nname = \"Beta AI\"\nwire = \"system-one\"\nbase_url = \"{}\"\n\
         attempt_timeout_ms = 3000\ndata_collection = \"zdr\"\n{more}",
        alpha.base_url(),
        beta.base_url()
    ))
    .await
}

fn endpoint(model: &str, provider: &str, price: &str, more: &str) -> String {
    format!(
        "[[endpoints]]\nmodel = \"{model}\"\nprovider = \"{provider}\"\nupstream_model = \"m-{provider}\"\n\
         input_usd_per_million_tokens = \"{price}\"\noutput_usd_per_million_tokens = \"0\"\n{more}\n"
    )
}

fn pair(model: &str) -> String {
    endpoint(model, "alpha", "1", "quantization = \"fp8\"") + &endpoint(model, "beta", "2", "")
}

fn with(model: &str, members: &Value) -> String {
    let mut body = json!({"model": model, "state": "It smokes.",
        "questions": {"refund": {"type": "noul", "instructions": "Does the writer want a refund?"}}});
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[tokio::test]
async fn preferences_are_applied_and_reported() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = gateway(&alpha, &beta, &pair("acme/pair")).await?;
    for (preference, expected) in [
        (json!({"order": ["beta"]}), "Beta AI"),
        (json!({"order": ["ALPHA"]}), "Alpha AI"),
        (json!({"only": ["beta"]}), "Beta AI"),
        (json!({"ignore": ["alpha"]}), "Beta AI"),
        (json!({"zdr": true}), "Beta AI"),
        (json!({"data_collection": "deny"}), "Beta AI"),
        (json!({"quantizations": ["fp8"]}), "Alpha AI"),
        (json!({"sort": "price"}), "Alpha AI"),
        (json!({"max_price": {"prompt": "1"}}), "Alpha AI"),
        (json!({"max_price": {"prompt": 1.0, "completion": 0}}), "Alpha AI"),
        (json!({"require_parameters": true, "order": ["beta"]}), "Beta AI"),
        (json!({"preferred_max_latency": {"p90": 100}, "order": ["alpha"]}), "Alpha AI"),
    ] {
        let answer = gateway.decide(with("acme/pair", &json!({"provider": preference}))).await?;
        ensure!(answer["provider"] == expected, "{preference}: {answer}");
    }
    for (preference, step) in [
        (json!({"only": ["gamma"]}), "only"),
        (json!({"ignore": ["alpha", "beta"]}), "ignore"),
        (json!({"max_price": {"prompt": 0.9}}), "max_price"),
        (json!({"quantizations": ["int4"]}), "quantizations"),
        (json!({"only": ["alpha"], "zdr": true}), "only"),
    ] {
        let body = with("acme/pair", &json!({"provider": preference}));
        let error = gateway.server.decide(&gateway.inference.secret, body).await?.envelope(404)?;
        let funnel = error["error"]["metadata"]["routing_funnel"].as_array().context("a funnel")?.clone();
        let emptied = funnel.iter().find(|row| row["endpoint_count"] == 0).context("an empty step")?;
        ensure!(emptied["step"] == step, "{preference}: {error}");
    }
    let body = with("acme/pair", &json!({"provider": {"only": ["alhpa"]}}));
    let error = gateway.server.decide(&gateway.inference.secret, body).await?.envelope(404)?;
    let message = error["error"]["message"].as_str().context("a message")?;
    ensure!(message.contains("\"alhpa\" is not a configured provider; nearest: alpha"), "{error}");
    Ok(())
}

#[tokio::test]
async fn endpoint_in_back_off_is_skipped_or_returns_503() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Answer(429, "retry-after: 30\r\n".into(), "{}".into())).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = gateway(&alpha, &beta, &(pair("acme/pair") + &endpoint("acme/alone", "alpha", "0", ""))).await?;
    let ordered = with("acme/pair", &json!({"provider": {"order": ["alpha", "beta"]}}));
    for _ in 0..3 {
        let answer = gateway.decide(&ordered).await?;
        ensure!(answer["provider"] == "Beta AI", "{answer}");
    }
    ensure!(alpha.take_requests().len() == 1, "it asked to wait, and was asked again");
    let alone = with("acme/alone", &json!({}));
    gateway.server.decide(&gateway.inference.secret, &alone).await?.envelope(529)?;
    let reply = gateway.server.decide(&gateway.inference.secret, &alone).await?;
    let error = reply.envelope(503)?;
    let wait: u64 = reply.header("retry-after").parse().context("Retry-After")?;
    ensure!((1..=30).contains(&wait), "{wait}");
    ensure!(error["error"]["metadata"]["routing_funnel"].is_array(), "{error}");
    let message = error["error"]["message"].as_str().unwrap_or_default();
    let expected = "no endpoint of acme/alone is available: alpha throttled, last failed with 429; retry in ";
    ensure!(message.starts_with(expected), "{message}");

    // Back-offs apply per workspace; both listings show the endpoint.
    let workspace = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "other", "--workspace", &workspace]).await?;
    gateway.server.decide(&other.secret, &alone).await?.envelope(529)?;
    gateway.server.decide(&other.secret, &alone).await?.envelope(503)?;
    let call = Call::get("/api/v1/models/acme/alone/endpoints").key(&gateway.inference.secret);
    let listed = gateway.server.send(&call).await?.ok()?;
    ensure!(listed["data"]["endpoints"][0]["health"]["throttled"] == true, "{listed}");
    let providers = gateway.server.send(&Call::get("/api/v1/providers").key(&gateway.inference.secret)).await?.ok()?;
    let slugs: Vec<_> = providers["data"].as_array().into_iter().flatten().map(|row| row["slug"].clone()).collect();
    ensure!(slugs.contains(&json!("alpha")) && slugs.contains(&json!("beta")), "{providers}");
    Ok(())
}

/// Answers every question with a probability of a half, and reports one token per question.
fn half(request: &Recorded) -> (u16, String) {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let asked: Vec<String> =
        body["questions"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let answers: serde_json::Map<String, Value> =
        asked.iter().map(|name| (name.clone(), json!({"type": "noul", "noul": 0.5}))).collect();
    let usage = json!({"input_tokens": asked.len(), "output_tokens": 0});
    (200, json!({"model": "m", "answers": answers, "usage": usage}).to_string())
}

fn nouls(count: usize) -> Value {
    let question = json!({"type": "noul", "instructions": "Is it so?"});
    Value::Object((0..count).map(|number| (format!("q{number}"), question.clone())).collect())
}

#[tokio::test]
async fn questions_above_endpoint_limit_are_split_and_merged() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(half)).await?;
    let beta = Upstream::start(Behaviour::Speak(half)).await?;
    let gateway = gateway(&alpha, &beta, &endpoint("acme/small", "alpha", "0.7", "max_questions = 3")).await?;
    let body = with("acme/small", &json!({"questions": nouls(8)}));
    let reply = gateway.server.decide(&gateway.inference.secret, body).await?;
    let answer = reply.ok()?;
    ensure!(answer["answers"].as_object().is_some_and(|answers| answers.len() == 8), "{answer}");
    ensure!(answer["usage"]["input_tokens"] == 8, "{answer}");
    ensure!(reply.text().contains("\"cost\":0.0000056"), "{answer}");
    let sizes: Vec<usize> = alpha
        .take_requests()
        .iter()
        .map(|request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            body["questions"].as_object().map_or(0, serde_json::Map::len)
        })
        .collect();
    ensure!(sizes.iter().sum::<usize>() == 8 && sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    let id = answer["id"].as_str().context("id")?;
    let record = gateway.instance.json(&["usage", "show", id]).await?;
    ensure!(record["provider_responses"].as_array().is_some_and(|attempts| attempts.len() == 3), "{record}");
    Ok(())
}

#[tokio::test]
async fn unsupported_question_type_goes_to_another_endpoint() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(vendors::system_one)).await?;
    let beta = Upstream::start(Behaviour::Speak(vendors::system_one)).await?;
    let endpoints = endpoint("acme/both", "alpha", "1", "question_types = [\"noul\"]")
        + &endpoint("acme/both", "beta", "1", "question_types = [\"choice\", \"score\"]");
    let gateway = gateway(&alpha, &beta, &endpoints).await?;
    let questions = r#"{"heat":{"type":"score","instructions":"How upset?","criteria":["calm","annoyed","furious"]},
        "refund":{"type":"noul","instructions":"Refund?"},
        "queue":{"type":"choice","instructions":"Who?","criteria":{"billing":"b","hardware":"h","other":null}}}"#;
    let body = format!(r#"{{"model":"acme/both","state":"It smokes.","questions":{questions}}}"#);
    let reply = gateway.server.decide(&gateway.inference.secret, &body).await?;
    let answer = reply.ok()?;
    let text = reply.text();
    let at = |name: &str| text.find(&format!("\"{name}\":{{")).context("an answer");
    ensure!(at("heat")? < at("refund")? && at("refund")? < at("queue")?, "the order of the questions: {text}");
    let provider = answer["provider"].as_str().unwrap_or_default();
    ensure!(provider.contains("Alpha AI") && provider.contains("Beta AI"), "{answer}");

    // A failed sub-request fails the request, unless the client accepts partial answers.
    beta.behave(Behaviour::status(500));
    gateway.server.decide(&gateway.inference.secret, &body).await?.envelope(502)?;
    let partial = body.replacen('{', r#"{"partial":true,"#, 1);
    let answer = gateway.decide(&partial).await?;
    ensure!(answer["answers"]["refund"]["noul"].is_number(), "{answer}");
    ensure!(answer["answers"]["heat"]["type"] == "error", "{answer}");
    ensure!(answer["answers"]["heat"]["error"] == "provider_failure", "{answer}");

    // A question without a capable endpoint is reported before anything is sent.
    alpha.take_requests();
    let boxed = r#"{"model":"acme/both","state":"s","questions":{"b":{"type":"box","instructions":"Where?"}}}"#;
    let error = gateway.server.decide(&gateway.inference.secret, boxed).await?.envelope(400)?;
    ensure!(error["error"]["message"].as_str().is_some_and(|said| said.contains("box")), "{error}");
    ensure!(alpha.take_requests().is_empty(), "it was asked all the same");
    Ok(())
}

#[tokio::test]
async fn evidence_of_a_split_request_names_the_provider_of_each_question() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(vendors::system_one)).await?;
    let beta = Upstream::start(Behaviour::Speak(vendors::system_one)).await?;
    let endpoints = endpoint("acme/both", "alpha", "1", "question_types = [\"noul\"]")
        + &endpoint("acme/both", "beta", "1", "question_types = [\"choice\", \"score\"]");
    let gateway = gateway(&alpha, &beta, &endpoints).await?;
    let questions = json!({
        "heat": {"type": "score", "instructions": "How upset?", "criteria": ["calm", "annoyed", "furious"]},
        "refund": {"type": "noul", "instructions": "Refund?"},
        "queue": {"type": "choice", "instructions": "Who?", "criteria": {"billing": "b", "hardware": "h", "other": null}},
    });
    let preset = json!({"model": "acme/both", "questions": questions});
    std::fs::write(gateway.instance.path().join("split.json"), preset.to_string())?;
    gateway.instance.json(&["preset", "create", "split", "--from", "split.json"]).await?;
    let answer = gateway.decide(r#"{"model":"@preset/split","state":"It smokes.","questions":{}}"#).await?;
    let call = Call::get("/api/v1/evidence?preset=split").key(&gateway.inference.secret);
    let rows = gateway.server.send(&call).await?.ok()?;
    let found: BTreeSet<(&str, &str)> = rows["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["generation_id"] == answer["id"])
        .map(|row| (row["question"].as_str().unwrap_or_default(), row["provider"].as_str().unwrap_or_default()))
        .collect();
    ensure!(found == BTreeSet::from([("heat", "beta"), ("queue", "beta"), ("refund", "alpha")]), "{rows}");
    Ok(())
}

#[tokio::test]
async fn slow_endpoint_is_hedged_and_both_attempts_are_recorded() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let models = "[[models]]\nmodel = \"acme/pair\"\nhedge = true\nhedge_after_ms = 100\n";
    let gateway = gateway(&alpha, &beta, &(pair("acme/pair") + models)).await?;
    let began = Instant::now();
    let answer = gateway.decide(with("acme/pair", &json!({"provider": {"order": ["alpha"]}}))).await?;
    ensure!(began.elapsed() < Duration::from_millis(2_500), "the loser was awaited: {:?}", began.elapsed());
    ensure!(answer["provider"] == "Beta AI", "{answer}");
    alpha.wait_until_abandoned(1).await?;
    let id = answer["id"].as_str().context("id")?;
    let call = Call::get(format!("/api/v1/generation?id={id}")).key(&gateway.inference.secret);
    let generation = gateway.server.send(&call).await?.ok()?;
    let record = gateway.instance.json(&["usage", "show", id]).await?;
    let outcomes: Vec<_> =
        record["provider_responses"].as_array().into_iter().flatten().map(|row| row["outcome"].clone()).collect();
    ensure!(outcomes == [json!("hedge_lost"), json!("completed")], "{record}");
    ensure!(record["provider_responses"][0]["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{record}");
    ensure!(generation["data"]["provider_responses"].as_array().is_some_and(|rows| rows.len() == 2), "{generation}");
    Ok(())
}

#[tokio::test]
async fn identical_concurrent_requests_share_a_call() -> Result<()> {
    let late = || Behaviour::Late(Duration::from_millis(700), ANSWER.to_owned());
    let alpha = Upstream::start(late()).await?;
    let beta = Upstream::start(late()).await?;
    let endpoints = endpoint("acme/shared", "alpha", "1", "") + &endpoint("acme/each", "beta", "1", "");
    let models = "[[models]]\nmodel = \"acme/shared\"\nsingle_flight = \"split_cost\"\n\
                  [[models]]\nmodel = \"acme/each\"\nsingle_flight = \"charge_each\"\n";
    let gateway = gateway(&alpha, &beta, &(endpoints + models)).await?;
    for (model, upstream, shared) in [("acme/shared", &alpha, true), ("acme/each", &beta, false)] {
        let body = with(model, &json!({}));
        let (a, b, c, other) = tokio::join!(
            gateway.decide(&body),
            gateway.decide(&body),
            gateway.decide(&body),
            gateway.decide(with(model, &json!({"state": "Another state."})))
        );
        ensure!(upstream.take_requests().len() == 2, "three were alike and one was not");
        let costs: Vec<String> = [a?, b?, c?].iter().map(|answer| answer["usage"]["cost"].to_string()).collect();
        ensure!(other?["usage"]["cost"] == 0.000_429, "429 tokens at 0.000001");
        let all_whole = costs.iter().all(|cost| cost == "0.000429");
        ensure!(all_whole != shared, "{costs:?}");
        ensure!(!shared || costs.iter().all(|cost| cost == "0.000143"), "a third each: {costs:?}");
    }
    Ok(())
}

#[tokio::test]
async fn fallback_models_are_tried_in_order() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(500)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let endpoints = endpoint("acme/first", "alpha", "0", "") + &endpoint("acme/second", "beta", "0", "");
    let gateway = gateway(&alpha, &beta, &endpoints).await?;
    let answer = gateway.decide(with("acme/first", &json!({"models": ["acme/first", "acme/second"]}))).await?;
    ensure!(answer["model"] == "acme/second", "{answer}");
    let body = with("acme/first", &json!({"models": ["acme/nobody"]}));
    gateway.server.decide(&gateway.inference.secret, body).await?.envelope(404)?;
    Ok(())
}

#[tokio::test]
async fn decision_is_found_in_its_own_workspace_only() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = gateway(&alpha, &beta, &pair("acme/pair")).await?;
    let body = format!(
        r#"{{"model":"Acme/Pair","questions":{QUESTIONS},"state":"s","session_id":"a session","user":"u",
            "trace":{{"trace_id":"t-1"}},"provider":{{"order":["beta"]}}}}"#
    );
    let reply = gateway.server.decide(&gateway.inference.secret, body).await?;
    let answer = reply.ok()?;
    let id = answer["id"].as_str().context("id")?;
    ensure!(reply.header("x-generation-id") == id && reply.header("x-provider-name") == "Beta AI", "{reply:?}");
    let get = |key: &str, id: &str| {
        let call = Call::get(format!("/api/v1/generation?id={id}")).key(key);
        let server = &gateway.server;
        async move { server.send(&call).await }
    };
    let data = get(&gateway.inference.secret, id).await?.ok()?["data"].clone();
    ensure!(data["id"] == id && data["model"] == "acme/pair" && data["provider_name"] == "Beta AI", "{data}");
    ensure!(data["session_id"] == "a session" && data["external_user"] == "u", "{data}");
    ensure!(data["total_cost"] == 0.000_858, "429 tokens at 0.000002: {data}");
    ensure!(data["trace"]["trace_id"] == "t-1", "{data}");
    get(&gateway.management.secret, id).await?.ok()?;
    let workspace = gateway.instance.workspace("other").await?;
    let stranger = gateway.instance.key(&["--name", "stranger", "--workspace", &workspace]).await?;
    let hidden = get(&stranger.secret, id).await?.envelope(404)?;
    let unknown = get(&stranger.secret, "gen-dec-0000").await?.envelope(404)?;
    ensure!(hidden["error"]["message"] == unknown["error"]["message"], "an oracle: {hidden} {unknown}");
    get(&stranger.secret, "").await?.envelope(400)?;
    Ok(())
}

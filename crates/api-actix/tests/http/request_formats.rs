//! Decisions on every path and wire: the same request gets the same answers, each in the format of its client.

use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer};

const ANSWERS: &str = r#"{
    "refund":{"type":"noul","noul":0.97},
    "queue":{"type":"choice","choice":"billing","confidence":0.61,"probabilities":{"billing":0.74,"hardware":0.26}},
    "heat":{"type":"score","score":1.32,"confidence":0.55,"probabilities":{"0":0.06,"1":0.56,"2":0.38}}}"#;

const SYSTEM_ONE: &str = r#"{"model":"acme/judge","state":"It smokes.","questions":{
    "refund":{"type":"noul","instructions":"Refund?"},
    "queue":{"type":"choice","instructions":"Who?","criteria":{"billing":"money","hardware":null}},
    "heat":{"type":"score","instructions":"How upset?","criteria":["calm","annoyed","furious"]}}}"#;

const OPENAI: &str = r#"{"model":"acme/judge",
    "input":[{"role":"user","content":[{"type":"input_text","text":"It smokes."}]}],"questions":[
    {"type":"predicate","name":"refund","instructions":"Refund?"},
    {"type":"choice","name":"queue","instructions":"Who?","choices":[{"value":"billing","description":"money"},{"value":"hardware"}]},
    {"type":"score","name":"heat","instructions":"How upset?","levels":[{"label":"calm"},{"label":"annoyed"},{"label":"furious"}]}]}"#;

const GEMINI: &str = r#"{"model":"models/acme/judge","input":{"type":"text","text":"It smokes."},"questions":{
    "refund":{"type":"noul","instructions":"Refund?"},
    "queue":{"type":"choice","instructions":"Who?","criteria":{"billing":"money","hardware":null}},
    "heat":{"type":"score","instructions":"How upset?","criteria":["calm","annoyed","furious"]}}}"#;

const SGLANG: &str = r#"{"model":"acme/judge","input":"It smokes.","temperature":1.0,"questions":[
    {"id":"refund","type":"yes_no","question":"Refund?"},
    {"id":"queue","type":"choice","question":"Who?","options":[{"name":"billing","description":"money"},{"name":"hardware"}]},
    {"id":"heat","type":"score","question":"How upset?","levels":["calm","annoyed","furious"]}]}"#;

const PATHS: [&str; 5] =
    ["/v1/systemone", "/api/v1/systemone", "/v1/decisions", "/api/v1/decisions", "/v1beta/decisions"];

/// Sends a request to a raw path, without the base path.
async fn post(gateway: &Gateway, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    gateway.send("POST", path, &headers, body.as_bytes()).await
}

async fn ask(gateway: &Gateway, path: &str, body: &str) -> Reply {
    post(gateway, path, &[("Authorization", &Caller::Inference.bearer())], body).await
}

#[tokio::test]
async fn every_wire_gets_same_answers() {
    let provider = domain::testing::ScriptedProvider::new((0..7).map(|_| answer(ANSWERS)));
    let setup = Setup { provider: std::sync::Arc::new(provider.clone()), ..Setup::new().await };
    let gateway = setup.start();
    let mut seen = Vec::new();
    for (path, body) in [
        ("/v1/systemone", SYSTEM_ONE),
        ("/api/v1/systemone", SYSTEM_ONE),
        ("/v1/decisions", SYSTEM_ONE),
        ("/v1/decisions", OPENAI),
        ("/api/v1/decisions", GEMINI),
        ("/v1beta/decisions", GEMINI),
        ("/v1/decisions", SGLANG),
    ] {
        let reply = ask(&gateway, path, body).await;
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.header("x-request-id"), reply.header("x-typesafe-request-id"));
        assert!(reply.header("x-request-id").is_some() && reply.header("x-generation-id").is_some(), "{path}");
        assert_eq!(reply.header("x-provider-name"), Some("The first"));
        seen.push(canonical(&reply.json()));
    }
    assert_eq!(seen[0].1["heat"], 1.32);
    assert!(seen.iter().all(|answers| *answers == seen[0]), "{seen:#?}");
    let calls = provider.calls();
    let states: Vec<_> =
        calls.iter().map(|call| call.provider_input.state.as_ref().unwrap().text().to_owned()).collect();
    assert!(states.iter().all(|state| state == "\"It smokes.\""), "{states:?}");
    let kinds = |index: usize| {
        let typed = calls[index].provider_input.questions.typed.as_deref().unwrap();
        typed.iter().map(|question| (&question.name, &question.instructions, &question.kind)).collect::<Vec<_>>()
    };
    for index in 1..calls.len() {
        assert_eq!(kinds(index), kinds(0), "{index}");
    }
}

/// Returns the total tokens and the answers in order, independent of the wire.
fn canonical(body: &Value) -> (u64, Value) {
    let answers = match &body["answers"] {
        Value::Array(answers) => {
            answers.iter().map(|answer| (answer["name"].as_str().unwrap().to_owned(), answer.clone())).collect()
        }
        Value::Object(answers) => answers.clone(),
        other => panic!("{other}"),
    };
    let value = |answer: &Value| {
        ["noul", "probability", "choice", "score"]
            .iter()
            .find_map(|name| answer.get(name))
            .or_else(|| answer.pointer("/probabilities/yes"))
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    };
    let usage = &body["usage"];
    let tokens = ["input_tokens", "total_input_tokens", "prompt_tokens"].iter().find_map(|name| usage[name].as_u64());
    (tokens.unwrap(), answers.iter().map(|(name, answer)| (name.clone(), value(answer))).collect())
}

#[tokio::test]
async fn contract_paths_accept_one_wire_and_one_header() {
    let gateway = Setup::answering([answer(ANSWERS), answer(ANSWERS)]).await.start();
    for path in ["/api/alpha/decisions", "/api/v1/api/alpha/decisions"] {
        // Opaque questions are forwarded and the answers returned unchanged; another wire's format is an error.
        let reply = ask(&gateway, path, r#"{"model":"acme/judge","questions":["Refund?","Upset?"]}"#).await;
        assert!(String::from_utf8_lossy(&reply.body).starts_with(&format!(r#"{{"answers":{ANSWERS},"model":"#)));
        assert_eq!(reply.header("x-tollgate-questions"), Some("opaque"));
        let message = ask(&gateway, path, OPENAI).await.expect_error(400);
        assert!(message.ends_with("POST /v1/decisions takes an array of questions"), "{message}");
        let bearer = Caller::Inference.bearer();
        let key = bearer.strip_prefix("Bearer ").unwrap();
        post(&gateway, path, &[("x-api-key", key)], SYSTEM_ONE).await.expect_error(401);
        // A key in another header is not read.
        let both = [("Authorization", bearer.as_str()), ("x-api-key", "other")];
        let reply = post(&gateway, path, &both, "{}").await;
        assert_eq!(reply.expect_error(400), "model: is required");
        assert_eq!(reply.header("x-typesafe-request-id"), None);
    }
}

#[tokio::test]
async fn vendor_headers_authenticate() {
    let gateway = Setup::answering((0..15).map(|_| answer(ANSWERS))).await.start();
    let bearer = Caller::Inference.bearer();
    let key = bearer.strip_prefix("Bearer ").unwrap();
    for path in PATHS {
        let body = if path == "/v1beta/decisions" { GEMINI } else { SYSTEM_ONE };
        for name in ["x-goog-api-key", "api-key", "x-api-key"] {
            assert_eq!(post(&gateway, path, &[(name, key)], body).await.status, 200, "{path} {name}");
            for wrong in [[(name, key), ("Authorization", "Bearer other")], [(name, key), (name, "other")]] {
                let reply = post(&gateway, path, &wrong, body).await;
                assert_eq!(reply.expect_error_in_any_format(401), "Invalid API key");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            }
        }
    }
}

#[tokio::test]
async fn unknown_shape_error_names_expected_shapes() {
    let gateway = Setup::new().await.start();
    for path in ["/v1/decisions", "/api/v1/decisions"] {
        for body in ["{}", r#"{"model":"m","input":"x","questions":"?"}"#, r#"{"state":1,"input":1,"questions":{}}"#] {
            let reply = ask(&gateway, path, body).await;
            assert_eq!(reply.status, 400);
            let error = &reply.json()["error"];
            assert!(error["message"].as_str().unwrap().contains("Expected one of"), "{error}");
            assert_eq!((&error["type"], &error["param"]), (&"invalid_request_error".into(), &Value::Null));
        }
    }
}

/// Sends an invalid request on each wire and checks the error format.
#[tokio::test]
async fn request_errors_use_wire_format() {
    let gateway = Setup::new().await.start();
    let system_one = r#"{"model":"m","state":"s","questions":{"q":{"type":"choice","criteria":{"secret":7}}}}"#;
    let detail = json!([{"loc": ["body", "questions", "q", "criteria", "secret"],
        "msg": "must be a string, object or array, not a number", "type": "value_error"}]);
    for (path, status) in [("/v1/systemone", 422), ("/v1/decisions", 422), ("/api/v1/systemone", 400)] {
        let reply = ask(&gateway, path, system_one).await;
        assert_eq!((reply.status, &reply.json()["detail"]), (status, &detail), "{path}");
        assert_eq!(reply.json()["error"]["code"], status);
        assert_eq!(reply.json()["error"]["metadata"]["request_id"], reply.header("x-request-id").unwrap());
    }
    let openai =
        r#"{"model":"m","input":"s","questions":[{"type":"score","instructions":"?","levels":[{"label":"a"}]}]}"#;
    let reply = ask(&gateway, "/v1/decisions", openai).await;
    let error = &reply.json()["error"];
    assert_eq!(
        (reply.status, &error["param"], &error["code"], &error["message"]),
        (
            400,
            &"questions[0].levels".into(),
            &"invalid_request".into(),
            &"questions[0].levels: must have 2 to 10 levels, not 1".into()
        )
    );
    let gemini = r#"{"model":"m","input":"s","questions":{"q":{"type":"noul"}}}"#;
    for path in ["/v1/decisions", "/v1beta/decisions"] {
        let reply = ask(&gateway, path, gemini).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"], &error["status"]), (400, &400.into(), &"INVALID_ARGUMENT".into()));
        let violation = &error["details"][1]["fieldViolations"][0];
        assert_eq!(violation, &json!({"field": "questions.q.instructions", "description": "is required"}));
    }
    let sglang =
        r#"{"model":"m","input":"s","questions":[{"id":"q","type":"yes_no","question":"?"}],"temperature":0.5}"#;
    let reply = ask(&gateway, "/v1/decisions", sglang).await;
    let json = reply.json();
    assert_eq!(
        (reply.status, &json["object"], &json["code"], &json["param"]),
        (400, &"error".into(), &400.into(), &Value::Null)
    );
    assert_eq!(json["message"], "temperature: is not served here other than as 1");
}

#[tokio::test]
async fn shared_member_errors_use_wire_format() {
    let gateway = Setup::new().await.start();
    let with = |body: &str| body.replacen('{', r#"{"trace":[],"#, 1);
    for (path, body, status) in [
        ("/v1/systemone", SYSTEM_ONE, 422),
        ("/v1/decisions", OPENAI, 400),
        ("/v1beta/decisions", GEMINI, 400),
        ("/v1/decisions", SGLANG, 400),
    ] {
        assert_eq!(
            ask(&gateway, path, &with(body)).await.expect_error_in_any_format(status),
            "trace: must be an object"
        );
    }
    let headers = [("Authorization", &*Caller::Inference.bearer()), ("x-session-id", "a"), ("x-session-id", "b")];
    let reply = post(&gateway, "/v1/systemone", &headers, SYSTEM_ONE).await;
    assert_eq!(reply.json()["detail"][0]["loc"], json!(["header", "x-session-id"]));
    assert_eq!(reply.status, 422);
}

//! The error format of each wire.

use std::fmt::Write;
use std::time::Duration;

use domain::money::Usd;
use serde_json::{Map, Value, json};
use wires::client::{ErrorLocation, ErrorResponse};
use wires::{gemini, openai, sglang, system_one};

fn metadata(extra: &Value) -> Map<String, Value> {
    let mut metadata = Map::from_iter([("request_id".to_owned(), json!("req-1"))]);
    metadata.extend(extra.as_object().unwrap().clone());
    metadata
}

#[test]
fn errors_match_snapshots() {
    let member = ErrorLocation::Member("questions[0].choices[\"a b\"].value".to_owned());
    let model = ErrorLocation::Member("model".to_owned());
    let plain = metadata(&json!({}));
    let attempts = metadata(&json!({"provider_name": "Acme", "attempts": [{"provider": "acme"}], "n": 7}));
    let service_metadata = json!({"route": "/v1/systemone"});
    let base = ErrorResponse {
        status: 400,
        message: "The body is not UTF-8",
        location: Some(&ErrorLocation::Body),
        metadata: &plain,
        amounts: &[],
        user_id: None,
        service_metadata: None,
        retry_after: None,
    };
    let cases = [
        ("a body that is none", base.clone()),
        (
            "a member at fault",
            ErrorResponse {
                message: "questions[0].choices[\"a b\"].value: is required",
                location: Some(&member),
                status: 422,
                ..base.clone()
            },
        ),
        (
            "a header at fault",
            ErrorResponse {
                message: "x-session-id is odd",
                location: Some(&ErrorLocation::Header("x-session-id")),
                ..base.clone()
            },
        ),
        ("no key", ErrorResponse { status: 401, message: "Invalid API key", location: None, ..base.clone() }),
        (
            "no such model",
            ErrorResponse { status: 404, message: "Model not found", location: Some(&model), ..base.clone() },
        ),
        (
            "a limit",
            ErrorResponse {
                status: 402,
                message: "Insufficient credits",
                location: None,
                amounts: &[("limit_usd", Usd::from_pico(9_007_199_254_740_993)), ("reserved_usd", Usd::ZERO)],
                ..base.clone()
            },
        ),
        (
            "all overloaded",
            ErrorResponse {
                status: 529,
                message: "Provider \"returned\" error",
                location: None,
                metadata: &attempts,
                amounts: &[],
                user_id: Some("owner-1"),
                service_metadata: Some(("service_metadata", &service_metadata)),
                retry_after: Some(Duration::from_millis(2_500)),
            },
        ),
    ];
    let mut text = String::new();
    for (name, refusal) in &cases {
        writeln!(text, "{name}").unwrap();
        for (wire, body) in [
            ("system-one", system_one::errors::write(refusal)),
            ("openai", openai::client_response::write_error(refusal)),
            ("gemini", gemini::errors::write(refusal)),
            ("sglang", sglang::client_response::write_error(refusal)),
        ] {
            writeln!(text, "  {wire:10} {body}").unwrap();
        }
    }
    insta::assert_snapshot!("failures", text);
}

#[test]
fn every_status_has_message_on_every_wire() {
    let plain = metadata(&json!({}));
    let words = |status: u16| {
        let refusal = ErrorResponse {
            status,
            message: "m",
            location: None,
            metadata: &plain,
            amounts: &[],
            user_id: None,
            service_metadata: None,
            retry_after: None,
        };
        let bodies = [
            system_one::errors::write(&refusal),
            openai::client_response::write_error(&refusal),
            gemini::errors::write(&refusal),
            sglang::client_response::write_error(&refusal),
        ];
        let at = ["/detail/type", "/error/code", "/error/status", "/type"];
        let word = |(body, at): (String, &str)| {
            let body: Value = serde_json::from_str(&body).unwrap();
            body.pointer(at).unwrap().as_str().unwrap().to_owned()
        };
        bodies.into_iter().zip(at).map(word).collect::<Vec<_>>().join(" | ")
    };
    let statuses = [400, 401, 402, 403, 404, 405, 413, 415, 422, 429, 499, 500, 502, 503, 524, 529];
    let text: Vec<String> = statuses.into_iter().map(|status| format!("{status} {}", words(status))).collect();
    insta::assert_snapshot!("words", text.join("\n"));
}

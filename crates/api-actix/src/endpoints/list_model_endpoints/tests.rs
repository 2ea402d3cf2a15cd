use std::sync::Arc;

use domain::pricing::TokenPrices;
use domain::routing::{AttachmentForm, DataPolicy, EndpointLimits, HealthBoard, HealthPolicy, HealthView, Wire};
use serde_json::{Value, json};

use super::*;

fn model() -> Arc<Model> {
    let mut pricing = Pricing::per_token("0.0000000208333333333333".parse().unwrap(), "0.10".parse().unwrap());
    pricing.further = vec![("input_cache_read".to_owned(), "0.01".parse().unwrap())];
    let row = Model::minimal("acme/judge".parse().unwrap(), pricing);
    Arc::new(Model { canonical_slug: "acme/judge-20260901".parse().unwrap(), context_length: None, ..row })
}

fn endpoint() -> Endpoint {
    Endpoint {
        provider_name: "The \"First\"".to_owned(),
        ..Endpoint::new("acme/judge".parse().unwrap(), "first".parse().unwrap(), Wire::OpenAiDecisions, "judge-1")
    }
}

fn unknown() -> HealthView {
    HealthBoard::new(1, HealthPolicy::default()).view(0, Duration::ZERO)
}

fn unthrottled() -> ThrottleView {
    HealthBoard::new(1, HealthPolicy::default()).throttling(0, Duration::ZERO)
}

fn shown(endpoint: Endpoint, health: HealthView, throttling: ThrottleView) -> Value {
    let status = EndpointStatus { endpoint: Arc::new(endpoint), health, throttling };
    let listed = ModelEndpoints { model: model(), endpoints: vec![status] };
    serde_json::to_value(View::new(&listed)).unwrap()["endpoints"][0].clone()
}

#[test]
fn endpoint_view_has_all_members_without_data() {
    let shown = shown(endpoint(), unknown(), unthrottled());
    assert_eq!(
        shown,
        json!({
            "name": "The \"First\" | acme/judge-20260901",
            "model_id": "acme/judge",
            "model_name": "acme/judge",
            "context_length": 0,
            "pricing": {
                "prompt": "0.0000000208333333333333", "completion": "0.10", "image": "0", "request": "0",
                "input_cache_read": "0.01",
            },
            "provider_name": "The \"First\"",
            "independent_questions": false,
            "tag": "first",
            "quantization": "unknown",
            "max_completion_tokens": 0,
            "max_prompt_tokens": null,
            "supported_parameters": [],
            "supports_implicit_caching": false,
            "supports_tool_choice": {"auto": false, "function": false, "none": false, "required": false},
            "supports_diarization": false,
            "native_tools": {},
            "service_tier": null,
            "status": 0,
            "uptime_last_5m": null,
            "uptime_last_30m": null,
            "uptime_last_1d": null,
            "latency_last_30m": null,
            "throughput_last_30m": null,
            "wire": "openai-decisions",
            "upstream_model": "judge-1",
            "question_types": ["noul", "choice", "score"],
            "limits": {
                "max_questions": 400, "max_options": null, "max_levels": null, "max_body_bytes": null,
                "max_input_tokens": null,
            },
            "images": "none",
            "confidence": "computed",
            "zdr": false,
            "data_collection": "allow",
            "health": {
                "throttled": false, "throttled_workspaces": 0, "accept_rate": null, "rejection_probability": 0.0,
                "retry_in_seconds": null, "latency_ms": null,
            },
        })
    );
}

#[test]
fn endpoint_view_shows_configuration_and_health() {
    let endpoint = Endpoint {
        wire: Wire::SystemOne,
        prices: Some(TokenPrices { prompt: "0.5".parse().unwrap(), completion: "0.250".parse().unwrap() }),
        own_limits: EndpointLimits { max_input_tokens: Some(32_000), ..EndpointLimits::default() },
        attachments: AttachmentForm::Assets,
        question_types: Some(vec![QuestionType::Box, QuestionType::Noul]),
        data_policy: DataPolicy { zdr: true, collects: false },
        ..endpoint()
    };
    let percentile = |p50: u64, p99: u64| {
        let [p50, p99] = [p50, p99].map(Duration::from_micros);
        Percentiles { p50, p75: p50, p90: p99, p99 }
    };
    let health = HealthView {
        observations: 7,
        latency: Some(Duration::from_nanos(12_345_678)),
        percentiles: Some(percentile(1_500, 2_000_000)),
        throughput: Some(Percentiles { p50: 1_500, p75: 1_400, p90: 100, p99: 1 }),
        ..unknown()
    };
    let throttling = ThrottleView {
        throttled: true,
        retry_in: Some(Duration::from_millis(4_200)),
        accept_rate: Some(0.876_544),
        rejection_probability: 0.123_456,
        throttled_workspaces: 3,
        ..unthrottled()
    };
    let shown = shown(endpoint, health, throttling);
    assert_eq!(shown["pricing"], json!({"prompt": "0.5", "completion": "0.250", "image": "0", "request": "0"}));
    assert_eq!((&shown["max_prompt_tokens"], &shown["images"]), (&32_000.into(), &"assets".into()));
    assert_eq!(shown["question_types"], json!(["noul", "box"]));
    assert_eq!((&shown["zdr"], &shown["data_collection"]), (&true.into(), &"deny".into()));
    assert_eq!((&shown["status"], &shown["uptime_last_30m"]), (&(-2).into(), &json!(87.65)));
    assert_eq!(shown["latency_last_30m"], json!({"p50": 1.5, "p75": 1.5, "p90": 2000.0, "p99": 2000.0}));
    assert_eq!(shown["throughput_last_30m"], json!({"p50": 1.5, "p75": 1.4, "p90": 0.1, "p99": 0.001}));
    let health = json!({
        "throttled": true, "throttled_workspaces": 3, "accept_rate": 0.8765, "rejection_probability": 0.1235,
        "retry_in_seconds": 5, "latency_ms": 12.346,
    });
    assert_eq!(shown["health"], health);
}

#[test]
fn box_questions_require_media_support() {
    let blind = Endpoint { wire: Wire::SystemOne, ..endpoint() };
    assert_eq!(shown(blind, unknown(), unthrottled())["question_types"], json!(["noul", "choice", "score"]));
}

#[test]
fn status_code_decreases_with_throttled_workspaces() {
    let some = ThrottleView { throttled_workspaces: 1, ..unthrottled() };
    let all = ThrottleView { throttled: true, ..unthrottled() };
    assert_eq!([unthrottled(), some, all].map(|view| status_code(&view)), [0, -1, -2]);
}

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use domain::ids::{DecisionId, GuardrailId, RequestId, WorkspaceId};
use domain::money::Usd;
use domain::pricing::TokenPrices;
use domain::question::{ProviderInput, Questions};
use domain::testing::SequentialIds;
use domain::usage::{AttemptOutcome, AttemptRecord, FilterAction, Finding, UsageOutcome, UsageShare, UsageSource};

use super::trace::trace;
use super::*;

fn record() -> UsageRecord {
    let prices = TokenPrices { prompt: "0.000000042".parse().unwrap(), completion: "0".parse().unwrap() };
    let completed = AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge-1.0".into(),
        part: 0,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::from_millis(30),
        latency: Duration::from_millis(80),
        input_tokens: 429,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        prices,
    };
    let overloaded = AttemptRecord {
        provider: "slow \"quoted\"".into(),
        outcome: AttemptOutcome::Overloaded,
        upstream_status: Some(529),
        began: Duration::from_millis(1),
        latency: Duration::from_millis(29),
        input_tokens: 0,
        output_tokens: 0,
        ..completed.clone()
    };
    UsageRecord {
        id: DecisionId::from_uuid(SequentialIds::uuid(7)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        api_key: "abababab-abab-abab-abab-abababababab".parse().unwrap(),
        request_id: RequestId::from_uuid(SequentialIds::uuid(8)),
        requested_model: "~acme/judge-latest".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 429,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(18_018_000),
        prices,
        share: UsageShare::WHOLE,
        attempts: vec![overloaded, completed].into(),
        guardrails: Vec::new(),
        findings: vec![Finding {
            guardrail_id: GuardrailId::from_uuid(SequentialIds::uuid(9)),
            label: "EMAIL".to_owned(),
            action: FilterAction::Redact,
            path: "state.messages[0]".to_owned(),
            count: 2,
        }],
        charged_at: DateTime::from_timestamp(1_790_000_000, 0).unwrap(),
        session_id: Some("session ✓".to_owned()),
        trace: Some(json(
            r#"{"trace_id":"4BF92F3577B34DA6A3CE929D0E0E4736","parent_span_id":"00f067aa0ba902b7","trace_name":"nightly",
                "span_name":"triage","generation_name":"judge","team":"a \"b\"","retries":3,"weight":0.25,"huge":1e400,
                "deep":{"x":[1]},"dry":true,"nothing":null}"#,
        )),
        user: Some("user-1".to_owned()),
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: DateTime::from_timestamp(1_790_000_000, 123_456_789).unwrap(),
        latency: Duration::from_millis(120),
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn provider_input(state: &str) -> ProviderInput {
    let questions = Questions { json: json(r#"{"q":{"type":"noul","instructions":"Is it \"so\"?"}}"#), typed: None };
    ProviderInput::new(questions, Some(Json::string(state)))
}

/// Parses a body as a destination does.
fn read(body: &Json) -> serde_json::Value {
    serde_json::from_str(body.text()).unwrap()
}

fn spans(body: &Json) -> Vec<serde_json::Value> {
    read(body)["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn attribute<'a>(span: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    span["attributes"].as_array().unwrap().iter().find(|one| one["key"] == key).map(|one| &one["value"])
}

/// Compares, or writes the file if `cargo xtask golden` asks for it. A writing run compares nothing and never counts as
/// a test: `cargo xtask test` removes the variable.
fn same_as_file(name: &str, body: &Json) {
    let text = serde_json::to_string_pretty(&read(body)).unwrap();
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let path = format!("{}/src/otlp/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a test, not the service: it has no configuration")]
    if std::env::var_os("TOLLGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{text}\n")).unwrap();
        return;
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap().trim_end(), "{name}");
}

#[test]
fn completed_request_matches_golden_file() {
    let (provider_input, answers) = (provider_input("the state"), json(r#"{"q":{"type":"noul","noul":0.50}}"#));
    let exchange = TraceContent {
        provider_input: &provider_input,
        answers: Some(&answers),
        outcomes: None,
        redacted_labels: None,
    };
    same_as_file("completed", &trace(&record(), Some(&exchange)));
}

#[test]
fn failed_request_without_metadata_matches_golden_file() {
    let attempts: Arc<[AttemptRecord]> = record().attempts[..1].into();
    let bare = UsageRecord {
        outcome: UsageOutcome::Failed,
        attempts,
        findings: Vec::new(),
        session_id: None,
        trace: None,
        user: None,
        cost: Usd::ZERO,
        ..record()
    };
    same_as_file("failed", &trace(&bare, None));
}

#[test]
fn private_trace_contains_no_text_of_caller() {
    let (provider_input, answers) = (provider_input("the state"), json(r#"{"q":"the answer"}"#));
    let exchange = TraceContent {
        provider_input: &provider_input,
        answers: Some(&answers),
        outcomes: None,
        redacted_labels: None,
    };
    let (whole, private) = (trace(&record(), Some(&exchange)), trace(&record(), None));
    for word in ["the state", "Is it", "the answer"] {
        assert!(whole.text().contains(word) && !private.text().contains(word), "{word}");
    }
    // The spans named by the caller are missing; the others are the same.
    let ids = |body: &Json| spans(body).iter().map(|span| span["spanId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&whole)[2..], ids(&private));
    for key in ["session.id", "gen_ai.conversation.id", "user.id"] {
        assert!(attribute(&spans(&whole)[2], key).is_some() && attribute(&spans(&private)[0], key).is_none(), "{key}");
    }
    assert!(!private.text().contains("trace.metadata"));
    let unlabelled = UsageRecord { session_id: None, user: None, trace: None, ..record() };
    assert_eq!(private, trace(&unlabelled, None));
}

#[test]
fn outcomes_are_content_and_bounded() {
    let (provider_input, stored) =
        (provider_input("s"), json(r#"{"does a@b.example want it?":{"outcome":"accepted"}}"#));
    let record = UsageRecord { outcomes: Some(stored), ..record() };
    assert!(!trace(&record, None).text().contains("a@b.example"), "privacy mode");
    let long = Json::object([("q", Json::string(&"x".repeat(300_000)).text())]);
    for (sent, text, is_cut) in [
        (json(r#"{"[EMAIL]":{"outcome":"accepted"}}"#), Some(r#"{"[EMAIL]":{"outcome":"accepted"}}"#), false),
        (long, None, true),
    ] {
        let content = TraceContent {
            provider_input: &provider_input,
            answers: None,
            outcomes: Some(&sent),
            redacted_labels: None,
        };
        let body = trace(&record, Some(&content));
        let span = spans(&body).into_iter().find(|span| attribute(span, "tollgate.outcomes").is_some()).unwrap();
        let found = attribute(&span, "tollgate.outcomes").unwrap()["stringValue"].as_str().unwrap();
        assert!(text.is_none_or(|text| text == found) && found.len() <= 256 * 1024, "{}", found.len());
        assert_eq!(attribute(&span, "tollgate.outcomes.truncated").is_some(), is_cut);
        assert!(!body.text().contains("a@b.example"), "the names of the record are those of the client");
    }
}

/// Returns the trace for a destination that is not private.
fn public_trace(record: &UsageRecord) -> Json {
    trace(
        record,
        Some(&TraceContent {
            provider_input: &provider_input("the state"),
            answers: None,
            outcomes: None,
            redacted_labels: None,
        }),
    )
}

#[test]
fn spans_are_deterministic_per_request() {
    let ids = |record: &UsageRecord| {
        let spans = spans(&public_trace(record));
        spans.iter().map(|span| span["spanId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&record()), ids(&record()));
    let other = UsageRecord { id: DecisionId::from_uuid(SequentialIds::uuid(70)), ..record() };
    assert!(ids(&other).iter().all(|id| !ids(&record()).contains(id)));
    let mut own = ids(&record());
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), 5, "trace, span, operation and two attempts");
}

fn with_trace(trace: &str) -> UsageRecord {
    UsageRecord { trace: Some(json(trace)), ..record() }
}

#[test]
fn trace_ids_are_taken_or_derived_from_metadata() {
    let trace_id = |text: &str| spans(&public_trace(&with_trace(text)))[0]["traceId"].as_str().unwrap().to_owned();
    let plain = "4bf92f3577b34da6a3ce929d0e0e4736";
    assert_eq!(trace_id(&format!(r#"{{"trace_id":"{plain}"}}"#)), plain);
    // The first bytes of the SHA-256 of `abc`.
    assert_eq!(trace_id(r#"{"trace_id":"abc"}"#), "ba7816bf8f01cfea414140de5dae2223");
    assert_ne!(trace_id(&format!(r#"{{"trace_id":"{}"}}"#, "0".repeat(32))), "0".repeat(32), "zeros are no id");
    let own = trace_id("{}");
    for none in [r#"{"trace_id":null}"#, r#"{"trace_id":""}"#] {
        assert_eq!(trace_id(none), own, "{none}");
    }
    assert_eq!(trace_id(r#"{"trace_id":12}"#), trace_id(r#"{"trace_id":"12"}"#));
    let parent = |text: &str| spans(&public_trace(&with_trace(text)))[0]["parentSpanId"].clone();
    assert_eq!(parent(r#"{"parent_span_id":"00F067AA0BA902B7"}"#), "00f067aa0ba902b7");
    assert_eq!(parent(r#"{"parent_span_id":"abc"}"#), "ba7816bf8f01cfea");
    assert!(parent("{}").is_null());
}

#[test]
fn spans_nest_below_named_parents() {
    for (text, names) in [
        ("{}", &["decisions ~acme/judge-latest"][..]),
        (r#"{"generation_name":"g"}"#, &["g"]),
        (r#"{"span_name":"s","generation_name":"g"}"#, &["s", "g"]),
        (r#"{"trace_name":"t","generation_name":"g"}"#, &["t", "g"]),
        (
            r#"{"trace_name":"t","span_name":"s","generation_name":"g","parent_span_id":"00f067aa0ba902b7"}"#,
            &["t", "s", "g"],
        ),
    ] {
        let spans = spans(&public_trace(&with_trace(text)));
        let depth = names.len();
        assert_eq!(spans.iter().take(depth).map(|span| span["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        for place in 1..depth {
            assert_eq!(spans[place]["parentSpanId"], spans[place - 1]["spanId"], "{text}");
        }
        for attempt in &spans[depth..] {
            assert_eq!(attempt["parentSpanId"], spans[depth - 1]["spanId"], "{text}");
        }
        assert_eq!(spans.len(), depth + 2);
    }
}

#[test]
fn long_content_is_truncated_and_marked() {
    let (provider_input, answers) = (provider_input(&"é".repeat(300_000)), Json::string(&"x".repeat(300_000)));
    let exchange = TraceContent {
        provider_input: &provider_input,
        answers: Some(&answers),
        outcomes: None,
        redacted_labels: None,
    };
    let body = trace(&record(), Some(&exchange));
    assert!(body.text().len() < 700_000, "{}", body.text().len());
    let span = &spans(&body)[2];
    for (content, mark) in
        [("gen_ai.input.messages", "tollgate.input.truncated"), ("gen_ai.output.messages", "tollgate.output.truncated")]
    {
        assert_eq!(attribute(span, mark).unwrap()["boolValue"], true);
        let messages = attribute(span, content).unwrap()["stringValue"].as_str().unwrap();
        let messages: serde_json::Value = serde_json::from_str(messages).unwrap();
        let length = messages[0]["parts"][0]["content"].as_str().unwrap().len();
        assert!((262_143..=262_144).contains(&length), "{length}");
    }
    let (short, answers) = (self::provider_input("short"), json("{}"));
    let exchange =
        TraceContent { provider_input: &short, answers: Some(&answers), outcomes: None, redacted_labels: None };
    assert!(!trace(&record(), Some(&exchange)).text().contains("truncated"));
}

#[test]
fn metadata_is_limited_and_marked() {
    let many: Vec<String> = (0..1_000).map(|n| format!(r#""k{n}":"v""#)).collect();
    let long = format!(r#"{{"long":"{}"}}"#, "x".repeat(1_000_000));
    let name = format!(r#"{{"{}":1}}"#, "n".repeat(100_000));
    for (text, most) in [(format!("{{{}}}", many.join(",")), 64), (long, 1), (name, 0)] {
        let body = public_trace(&with_trace(&text));
        assert!(body.text().len() < 100_000, "{}", body.text().len());
        let span = &spans(&body)[0];
        assert_eq!(attribute(span, "tollgate.trace.truncated").unwrap()["boolValue"], true);
        let keys = span["attributes"].as_array().unwrap().iter();
        assert_eq!(keys.filter(|one| one["key"].as_str().unwrap().starts_with("trace.metadata.")).count(), most);
    }
    let twice = public_trace(&with_trace(r#"{"a":1,"a":"two"}"#));
    assert_eq!(attribute(&spans(&twice)[0], "trace.metadata.a").unwrap()["stringValue"], "two");
}

#[test]
fn names_are_escaped_and_truncated() {
    let text = format!(r#"{{"generation_name":"{}","trace_name":"\"}}]\u0000"}}"#, "n".repeat(1_000));
    let hostile =
        UsageRecord { requested_model: "\"}],".repeat(10_000), outcome: UsageOutcome::Cancelled, ..with_trace(&text) };
    let spans = spans(&public_trace(&hostile));
    assert_eq!(spans[0]["name"], "\"}]\u{0}");
    assert_eq!(spans[1]["name"].as_str().unwrap().len(), 256);
    assert_eq!(spans[1]["status"]["code"], 2);
    assert_eq!(attribute(&spans[1], "error.type").unwrap()["stringValue"], "cancelled");
}

#[test]
fn merged_keeps_order_of_bodies() {
    let other = UsageRecord { id: DecisionId::from_uuid(SequentialIds::uuid(70)), ..record() };
    let bodies = [trace(&record(), None), merged([]), trace(&other, None)];
    let joined = read(&merged(&bodies));
    let elements = joined["resourceSpans"].as_array().unwrap();
    assert_eq!(elements.len(), 2);
    assert_eq!(elements[0], read(&bodies[0])["resourceSpans"][0]);
    assert_eq!(elements[1], read(&bodies[2])["resourceSpans"][0]);
    assert_eq!(merged(&bodies[..1]), bodies[0], "one alone stays as it is");
    assert_eq!(merged([]).text(), r#"{"resourceSpans":[]}"#);
    assert_eq!(merged(&[json("[]"), json("{}")]).text(), r#"{"resourceSpans":[]}"#);
}

async fn make() -> Box<dyn MessageEncoder> {
    Box::new(OtlpMessageEncoder)
}

domain::trace_encoder_contract!(
    #[tokio::test]
    super::make
);

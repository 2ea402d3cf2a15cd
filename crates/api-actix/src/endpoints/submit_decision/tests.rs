use super::request::{session_id, with_session};
use super::*;
use crate::detection;
use crate::http::error::SESSION_ID;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use domain::budget::{BudgetScope, LimitExceeded, ResetInterval};
use domain::decision::{FailedAttempts, FilteringError, RecordQuotaExceeded, SubmitDecisionError};
use domain::error::ErrorKind;
use domain::guardrail::Forbidden;
use domain::guardrail::filter::Blocked;
use domain::ids::{GuardrailId, WorkspaceId};
use domain::json::Json;
use domain::money::{Price, Usd};
use domain::pricing::TokenPrices;
use domain::question::{AnswerRules, Answers, ConfidenceSource, ProviderInput, Questions};
use domain::routing::{
    AttemptError, AttemptFailureKind, FailureCause, ThrottledEndpoint, ThrottledEndpoints, UnknownProvider,
};
use domain::system::TaskError;
use domain::testing::SequentialIds;
use domain::usage::{AttemptOutcome, AttemptRecord, FilterAction, Finding, QuestionOutcomes, UsageSource};
use domain::usage::{QuestionOutcome, QuestionVerdict};
use serde_json::{Value, json};

fn attempt(outcome: AttemptOutcome) -> AttemptRecord {
    let free: Price = "0".parse().unwrap();
    AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge-1".into(),
        part: 0,
        outcome,
        upstream_status: Some(429),
        began: Duration::ZERO,
        latency: Duration::from_millis(12),
        input_tokens: 0,
        output_tokens: 0,
        usage_source: UsageSource::Reported,
        prices: TokenPrices { prompt: free, completion: free },
    }
}

fn decision() -> Decision {
    let questions = Questions { json: Json::parse("\"?\"").unwrap(), typed: None };
    let answers = Json::parse(r#"{"q" : {"type":"noul","noul":0.50}}"#).unwrap();
    let rules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };
    Decision {
        id: "gen-dec-1".parse().unwrap(),
        answers: Answers::check(&questions, &answers, rules).unwrap(),
        provider_input: Arc::new(ProviderInput::new(questions, None)),
        model: "acme/judge".parse().unwrap(),
        provider: "Acmé \"AI\"".to_owned(),
        input_tokens: 429,
        output_tokens: 0,
        usage_source: UsageSource::Reported,
        cost: "0.000018018".parse::<Usd>().unwrap(),
        attempts: vec![attempt(AttemptOutcome::HttpError), attempt(AttemptOutcome::Completed)].into(),
        funnel: vec![("configured", 2)],
        outcomes: QuestionOutcomes::default(),
        findings: Vec::new(),
    }
}

fn body(service_metadata: Option<(&'static str, &Value)>) -> String {
    let decision = decision();
    formats::write(
        &ResponseFormat::Contract,
        &DecisionResponse { decision: &decision, questions: &[], service_metadata },
    )
}

#[test]
fn response_keeps_answer_bytes_and_plain_decimal_cost() {
    assert_eq!(
        body(None),
        concat!(
            r#"{"answers":{"q" : {"type":"noul","noul":0.50}},"model":"acme/judge","#,
            r#""usage":{"input_tokens":429,"output_tokens":0,"cost":0.000018018},"#,
            r#""id":"gen-dec-1","provider":"Acmé \"AI\""}"#
        )
    );
}

#[test]
fn response_headers_are_ascii() {
    let response = respond(&decision(), false, String::new());
    assert_eq!(response.headers().get("x-generation-id").unwrap(), "gen-dec-1");
    assert_eq!(response.headers().get("x-provider-name").unwrap(), "Acm? \"AI\"");
}

#[test]
fn response_includes_service_metadata_on_request() {
    let key = InferenceKey::for_tests(SequentialIds::key(1), WorkspaceId::from_uuid(SequentialIds::uuid(1)));
    let service_metadata = ResponseMetadata::new(&key, "acme/judge").describe_answer(&decision());
    for name in ["service_metadata", "openrouter_metadata"] {
        let body = serde_json::from_str(&body(Some((name, &service_metadata)))).unwrap();
        crate::app::assert_valid("DecisionsResponse", &body);
    }
    let body: Value = serde_json::from_str(&body(Some(("service_metadata", &service_metadata)))).unwrap();
    assert_eq!(body["service_metadata"]["attempt_count"], 2);
    assert_eq!(body["service_metadata"]["attempts"][1]["outcome"], "completed");
    assert_eq!(body["service_metadata"]["routing_funnel"][0]["endpoint_count"], 2);
    assert_eq!(body["service_metadata"]["routing"]["provider"], "Acmé \"AI\"");
}

fn headers(values: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(HeaderName::from_static(SESSION_ID), HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn filter_failures_map_to_status_and_message() {
    let cases = [
        (FilteringError::TaskFailed(TaskError::Panicked), 500, "Internal Server Error"),
        (FilteringError::TaskFailed(TaskError::Stopped), 503, "Service temporarily unavailable"),
        (FilteringError::TimedOut, 524, "Request timed out. Please try again later."),
        (FilteringError::ClientDisconnected, 499, "The client disconnected before the response"),
    ];
    for (why, status, message) in cases {
        let error = api_error(SubmitDecisionError::Filtering(why), 0);
        assert_eq!((error.status().as_u16(), error.text()), (status, message), "{why:?}");
    }
    let full = api_error(SubmitDecisionError::Filtering(FilteringError::TaskFailed(TaskError::QueueFull)), 0);
    let view = full.parts();
    assert_eq!((view.status.as_u16(), view.retry_after), (429, Some(Duration::from_secs(1))));
    assert_eq!((&view.metadata["scope"], &view.metadata["unit"]), (&"workspace".into(), &"queued_scans".into()));
    assert!(full.text().contains("too many large requests of this workspace"), "{}", full.text());
}

#[test]
fn full_usage_records_return_429_until_next_day() {
    let full = RecordQuotaExceeded {
        limit: 1_000,
        used: 1_234,
        resets_at: "2026-01-02T00:00:00Z".parse().unwrap(),
        resets_in: Duration::from_hours(2),
    };
    let error = api_error(SubmitDecisionError::RecordQuotaExceeded(full), 0);
    let view = error.parts();
    assert_eq!((view.status.as_u16(), view.retry_after), (429, Some(Duration::from_hours(2))));
    assert!(error.text().contains("take 1234 of 1000 bytes today"), "{}", error.text());
    let expected = json!({
        "scope": "workspace", "unit": "record_bytes", "limit": 1_000, "used": 1_234, "resets_at": "2026-01-02T00:00:00Z",
    });
    assert_eq!(json!(view.metadata), expected);
}

#[test]
fn body_session_id_overrides_header() {
    let draft = |body: &str, headers: &HeaderMap| {
        let asked = detection::read(Entry::Contract, body, Vec::new(), |_| Ok::<_, ApiError>(())).unwrap();
        with_session(asked.draft, session_id(headers))
    };
    let bad = headers(&[b"\xff", b"twice"]);
    let taken = draft(r#"{"session_id":"s"}"#, &bad).unwrap();
    assert_eq!((taken.session_id.unwrap().text(), taken.session_id_header), ("\"s\"", None));
    for body in ["{}", r#"{"session_id":null}"#] {
        assert_eq!(draft(body, &bad).unwrap_err().status().as_u16(), 400);
        assert_eq!(draft(body, &headers(&[b"\xff"])).unwrap_err().status().as_u16(), 400);
        let taken = draft(body, &headers(&["é".as_bytes()])).unwrap();
        assert_eq!(taken.session_id_header.unwrap(), "é");
    }
}

fn failed(kind: ErrorKind, last: AttemptFailureKind, retry_after: Option<Duration>) -> ApiError {
    failed_with_cause(kind, last, retry_after, None)
}

fn failed_with_cause(
    kind: ErrorKind,
    last: AttemptFailureKind,
    retry_after: Option<Duration>,
    cause: Option<FailureCause>,
) -> ApiError {
    let attempts = vec![attempt(last.outcome())].into();
    let id = "gen-dec-9".parse().unwrap();
    let funnel = vec![("configured", 1)];
    let (findings, causes) = (Vec::new(), [cause].into());
    let provider_name = "Acme".into();
    let (cost, usage_source) = ("0.000018".parse().unwrap(), UsageSource::UpperBound);
    let failed = FailedAttempts {
        id,
        kind,
        provider_name,
        attempts,
        causes,
        cost,
        usage_source,
        retry_after,
        last,
        funnel,
        findings,
    };
    api_error(SubmitDecisionError::Attempts(Box::new(failed)), 1_000)
}

#[test]
fn failed_attempts_include_retry_delay() {
    let wait = Some(Duration::from_millis(6_200));
    let error = failed(ErrorKind::ProviderOverloaded, AttemptFailureKind::Overloaded, wait);
    let view = error.parts();
    assert_eq!((view.status.as_u16(), error.text()), (529, "Provider returned error"));
    assert_eq!(view.metadata["provider_name"], "Acme");
    assert_eq!(view.metadata["retry_after_seconds"], 7);
    assert_eq!(
        view.metadata["attempts"],
        json!([{"provider":"acme","upstream_model":"judge-1","outcome":"overloaded","upstream_status":429,
            "usage_source":"reported","latency_ms":12}])
    );
    assert_eq!(view.metadata["usage_source"], "upper_bound");
    assert_eq!(view.amounts, [("charged_usd", "0.000018".parse().unwrap())]);
    let header = |name: &str| view.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
    assert_eq!(header("retry-after").unwrap(), "7");
    assert_eq!(header("x-generation-id").unwrap(), "gen-dec-9");
}

/// "Provider returned error" is said only of a provider that returned something.
#[test]
fn failure_message_names_the_cause() {
    for (last, cause, expected) in [
        (
            AttemptFailureKind::ConnectFailed,
            Some(FailureCause::CertificateExpired),
            "Provider cannot be reached: acme: the certificate has expired or is not valid yet",
        ),
        (AttemptFailureKind::ConnectFailed, None, "Provider cannot be reached: acme"),
        (AttemptFailureKind::ConnectionLost, None, "Provider sent no response: acme ended the connection"),
        (
            AttemptFailureKind::ProviderAuthFailed,
            Some(FailureCause::AccountExhausted),
            "Provider returned error: acme rejected this gateway's account with 429: the account at the provider has \
             no balance, credit or quota left; the operator must check the account",
        ),
        (AttemptFailureKind::HttpError, None, "Provider returned error"),
        (AttemptFailureKind::InvalidResponse, None, "Provider returned error"),
    ] {
        let error = failed_with_cause(ErrorKind::ProviderFailure, last, None, cause);
        let view = error.parts();
        assert_eq!(error.text(), expected);
        let shown = view.metadata["attempts"][0].get("cause").and_then(|cause| cause.as_str().map(str::to_owned));
        assert_eq!(shown.as_deref(), cause.map(FailureCause::as_str));
    }
}

#[test]
fn rejected_credentials_name_provider_and_status() {
    let error = failed(ErrorKind::ProviderFailure, AttemptFailureKind::ProviderAuthFailed, None);
    assert_eq!(
        error.text(),
        "Provider returned error: acme rejected this gateway's credentials with 429; the operator must check the \
         provider's API key"
    );
    let error = failed(ErrorKind::ProviderFailure, AttemptFailureKind::HttpError, None);
    assert_eq!(error.text(), "Provider returned error");
}

#[test]
fn simulated_failures_match_real_ones_and_are_marked() {
    use ErrorKind as S;
    let statuses = [
        (S::InsufficientCredits, 402),
        (S::Forbidden, 403),
        (S::RateLimited, 429),
        (S::ProviderFailure, 502),
        (S::Unavailable, 503),
        (S::TimedOut, 524),
        (S::ProviderOverloaded, 529),
    ];
    for (simulated, status) in statuses {
        let error = failed(simulated, AttemptFailureKind::Simulated(simulated), None);
        assert_eq!((error.status().as_u16(), error.parts().metadata["simulated"].clone()), (status, true.into()));
    }
    let credits = failed(S::InsufficientCredits, AttemptFailureKind::Simulated(S::InsufficientCredits), None);
    assert_eq!(credits.parts().metadata["scope"], "workspace");
    let amounts: Vec<&str> = credits.parts().amounts.iter().map(|(name, _)| *name).collect();
    assert_eq!(amounts, ["charged_usd", "limit_usd", "spent_usd", "reserved_usd"]);
    assert_eq!(credits.parts().metadata["resets_at"], Value::Null);
    let limited = failed(S::RateLimited, AttemptFailureKind::Simulated(S::RateLimited), None);
    let names: Vec<_> = limited.parts().headers.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert!(names.contains(&name), "{name}");
    }
}

fn overspent(scope: BudgetScope, limit: i64, reserved: i64) -> LimitExceeded {
    LimitExceeded {
        scope,
        guardrail_id: None,
        is_credit: false,
        limit: Usd::from_pico(limit),
        reset: None,
        spent: Usd::from_pico(5),
        reserved: Usd::from_pico(reserved),
        wanted: Usd::from_pico(4),
        resets_at: None,
        is_uncertain: false,
    }
}

#[test]
fn limit_error_names_limit_usage_and_correction() {
    let id = GuardrailId::from_uuid(SequentialIds::uuid(7));
    let daily = |overspent| LimitExceeded {
        reset: Some(ResetInterval::Daily),
        resets_at: Some("2026-11-22T00:00:00Z".parse().unwrap()),
        ..overspent
    };
    let error = |overspent| api_error(SubmitDecisionError::LimitExceeded(overspent), 0);
    let key = error(daily(overspent(BudgetScope::Key, 8, 0)));
    assert_eq!(
        key.text(),
        "Insufficient credits: of the key's daily limit of 0.000000000008 USD, 0.000000000005 USD are spent and 0 USD \
         reserved by requests in flight, and this request may come to 0.000000000004 USD. It resets at \
         2026-11-22T00:00:00Z; the operator of this gateway can raise it with `tollgate key update`"
    );
    let view = key.parts();
    assert_eq!((view.status.as_u16(), &view.metadata["resets_at"]), (402, &json!("2026-11-22T00:00:00Z")));
    assert_eq!((&view.metadata["scope"], view.metadata.get("guardrail_id")), (&json!("key"), None));
    let amounts = [("limit_usd", 8), ("spent_usd", 5), ("reserved_usd", 0)].map(|(name, n)| (name, Usd::from_pico(n)));
    assert_eq!((&view.amounts[..], view.retry_after), (&amounts[..], None));

    let credit = error(LimitExceeded { is_credit: true, ..overspent(BudgetScope::Workspace, 8, 0) });
    assert!(credit.text().contains("of the workspace's credit of"));
    assert!(credit.text().ends_with("can add more with `tollgate workspace credit`"));
    assert_eq!(credit.parts().metadata["resets_at"], Value::Null);
    let budget = error(overspent(BudgetScope::Workspace, 8, 0));
    assert!(budget.text().contains("of the workspace's budget of"), "{}", budget.text());
    assert!(budget.text().ends_with(". The operator of this gateway can raise it with `tollgate workspace budget`"));
    let guardrail = error(daily(LimitExceeded { guardrail_id: Some(id), ..overspent(BudgetScope::Guardrail, 8, 0) }));
    assert!(guardrail.text().contains(&format!("the daily budget of the guardrail {id}")));
    assert_eq!(guardrail.parts().metadata["guardrail_id"], id.to_string());
    let busy = error(overspent(BudgetScope::Key, 10, 2));
    assert_eq!(busy.parts().retry_after, Some(Duration::from_secs(1)));
    assert!(busy.text().ends_with("Try again once requests in flight have ended"));
}

#[test]
fn guardrail_error_names_guardrail_and_rule() {
    let guardrail_id = GuardrailId::from_uuid(SequentialIds::uuid(7));
    let blocked =
        Blocked { guardrail_id, label: "EMAIL".to_owned(), path: "state.from".to_owned(), is_too_large: false };
    let blocked = api_error(SubmitDecisionError::Blocked(blocked), 0);
    assert_eq!((blocked.status().as_u16(), blocked.text()), (403, "Request blocked by content filter: [EMAIL]"));
    assert_eq!(
        Value::Object(blocked.parts().metadata.clone()),
        json!({"guardrail_id": guardrail_id.to_string(), "label": "EMAIL", "path": "state.from"})
    );
    let model = || "acme/judge".parse().unwrap();
    let forbidden = Forbidden { guardrail_id, rule: "allowed_models" };
    let forbidden = api_error(SubmitDecisionError::Forbidden { model: model(), forbidden, funnel: Vec::new() }, 0);
    assert!(forbidden.text().starts_with("acme/judge may not be used with this key"));
    assert_eq!(
        (forbidden.status().as_u16(), Value::Object(forbidden.parts().metadata.clone())),
        (403, json!({"guardrail_id": guardrail_id.to_string(), "rule": "allowed_models", "model": "acme/judge"}))
    );
    let unpriced = api_error(SubmitDecisionError::Unpriced(model()), 0);
    assert_eq!(unpriced.status().as_u16(), 403);
    for key in ["money.unpriced_models", "money.default_usd_per_token"] {
        assert!(unpriced.text().contains(key), "{}", unpriced.text());
    }
}

#[test]
fn filter_findings_appear_in_service_metadata() {
    let guardrail_id = GuardrailId::from_uuid(SequentialIds::uuid(7));
    let label = "EMAIL".to_owned();
    let finding = Finding { guardrail_id, label, action: FilterAction::Redact, path: "state".to_owned(), count: 2 };
    let key = InferenceKey::for_tests(SequentialIds::key(1), WorkspaceId::from_uuid(SequentialIds::uuid(1)));
    let service_metadata =
        ResponseMetadata::new(&key, "acme/judge").describe_answer(&Decision { findings: vec![finding], ..decision() });
    assert_eq!(
        service_metadata["pipeline"],
        json!([{"type": "guardrail", "guardrail_id": guardrail_id.to_string(), "label": "EMAIL", "action": "redact",
            "path": "state", "count": 2}])
    );
}

#[test]
fn routing_errors_name_correction() {
    let unknown = api_error(SubmitDecisionError::UnknownModel { nearest: vec!["acme/judge".into()] }, 0);
    assert_eq!((unknown.status().as_u16(), unknown.parts().metadata["nearest"].clone()), (404, json!(["acme/judge"])));
    let model = || "acme/judge".parse().unwrap();
    assert_eq!(unknown.text(), "Model not found; nearest callable models: acme/judge");
    let nearest = vec!["acme/jury".to_owned(), "acme/judge:free".to_owned()];
    let none = api_error(SubmitDecisionError::NoEndpoint { model: model(), nearest, funnel: vec![("model", 0)] }, 0);
    assert_eq!(none.status().as_u16(), 404);
    let message = "no endpoint is configured for acme/judge; nearest callable models: acme/jury, acme/judge:free";
    assert_eq!(none.text(), message);
    assert_eq!(none.parts().metadata["nearest"], json!(["acme/jury", "acme/judge:free"]));
    assert_eq!(none.parts().metadata["routing_funnel"], json!([{"step":"model","endpoint_count":0}]));
    let excluded = |unknown: Option<UnknownProvider>| {
        let funnel = vec![("only", 0)];
        api_error(SubmitDecisionError::ExcludedByPreferences { model: model(), unknown, funnel }, 0)
    };
    let unwanted = excluded(None);
    assert!(unwanted.parts().metadata.get("nearest").is_none());
    let misspelt = excluded(Some(UnknownProvider::new("typesave", ["typesafe"])));
    assert_eq!(misspelt.parts().metadata["nearest"], json!(["typesafe"]));
    assert_eq!(
        misspelt.text(),
        "no endpoint of acme/judge is left by the provider preferences: \"typesave\" is not a configured provider; \
         nearest: typesafe"
    );
    assert_eq!(
        (unwanted.status().as_u16(), unwanted.parts().metadata["routing_funnel"][0]["step"].clone()),
        (404, "only".into())
    );
    let retry_in = Duration::from_millis(1_500);
    let error = domain::routing::AttemptFailure::from_status(401, None);
    let last_error = AttemptError::from(&error);
    let endpoint =
        ThrottledEndpoint { provider: "typesafe".to_owned(), is_paused: false, last_error: Some(last_error) };
    let endpoints = ThrottledEndpoints::new(endpoint, retry_in);
    let throttled = api_error(SubmitDecisionError::Throttled { model: model(), endpoints, funnel: Vec::new() }, 0);
    assert_eq!((throttled.status().as_u16(), throttled.parts().retry_after), (503, Some(retry_in)));
    assert_eq!(throttled.parts().metadata["retry_after_seconds"], 2);
    assert_eq!(
        throttled.text(),
        "no endpoint of acme/judge is available: typesafe throttled, last failed with 401; retry in 2 s"
    );
    assert_eq!(api_error(SubmitDecisionError::Defect("x"), 0).text(), "Internal Server Error");
    assert_eq!(api_error(SubmitDecisionError::VariablePrice(model()), 0).status().as_u16(), 400);
    assert_eq!(api_error(SubmitDecisionError::ChargeOutOfRange, 0).text(), "Provider returned error");
}

/// Returns the outcomes of questions with these names and verdicts.
fn verdicts<'a>(questions: impl IntoIterator<Item = (&'a str, QuestionVerdict)>) -> QuestionOutcomes {
    let outcome = |(question, verdict): (&str, QuestionVerdict)| QuestionOutcome {
        question: question.to_owned(),
        verdict,
        stage: 1,
        model: "acme/judge".parse().unwrap(),
        threshold: None,
    };
    QuestionOutcomes::new(questions.into_iter().map(outcome).collect())
}

#[test]
fn abstained_questions_are_named_in_a_header_as_far_as_they_fit() {
    use QuestionVerdict::{Abstained, Accepted, Escalated};
    let header = |outcomes: &QuestionOutcomes| abstained(outcomes).map(|value| value.to_str().unwrap().to_owned());
    let some = verdicts([("refund", Abstained), ("a", Accepted), ("is it, é?", Abstained), ("b", Escalated)]);
    assert_eq!(header(&some).as_deref(), Some("refund,is%20it%2C%20%C3%A9%3F"));
    assert_eq!(header(&verdicts([("a", Accepted), ("b", Escalated)])), None);
    let names: Vec<String> = (0..1_000).map(|number| format!("question-{number:04}")).collect();
    let many = header(&verdicts(names.iter().map(|name| (name.as_str(), Abstained)))).unwrap();
    let listed: Vec<&str> = many.split(',').collect();
    assert!(many.len() <= MAX_ABSTAINED_BYTES && many.len() + ",question-0000".len() >= MAX_ABSTAINED_BYTES);
    assert_eq!(listed, names[..listed.len()], "whole names, in their order");
    let long = "q".repeat(MAX_ABSTAINED_BYTES);
    assert_eq!(header(&verdicts([(long.as_str(), Abstained)])), None, "the body names it");
}

//! `POST /api/alpha/decisions`: questions about a state, answered by a model.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Payload;
use async_trait::async_trait;
use domain::api_key::{InferenceKey, Principal};
use domain::decision::{
    CallerPresence, Decision, DecisionDraft, FailedAttempts, InvalidDecision, RoutingFunnel, SubmitDecisionError,
};
use domain::error::ErrorKind;
use domain::json::Json;
use domain::routing::AttemptFailureKind;
use domain::usage::AttemptRecord;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::http::body::JsonBody;
use crate::http::edge::Call;
use crate::http::error::{ApiError, whole_seconds};
use crate::http::json_members::read_members;

const GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");
const PROVIDER_NAME: HeaderName = HeaderName::from_static("x-provider-name");
const SESSION_ID: &str = "x-session-id";

pub(crate) async fn handle(call: &Call<'_>, caller: &Principal, payload: Payload) -> Result<HttpResponse, ApiError> {
    let key = caller.inference()?.clone();
    let body = JsonBody::read(call.request, payload, call.gateway.max_json_bytes).await?;
    let request = draft(body.text()?, call.request.headers())?.check()?;
    drop(body);
    let told = call.wants_metadata().then(|| Told::of(&key, &request.model));
    let left = CancellationToken::new();
    let presence: Arc<dyn CallerPresence> = Arc::new(Presence(left.clone()));
    let submit = Arc::clone(&call.gateway.services.submit_decision);
    let (now, request_id) = (call.gateway.services.clock.now(), call.request_id.clone());
    let work = async move {
        let end = submit.execute(&key, request_id, request, presence).await;
        end.map_err(|error| refusal(error, now.timestamp_millis()))
    };
    // The caller's leaving cancels the provider's call, never the record of it.
    match (call.gateway.afterlife.outlive(work, left).await, told) {
        (Ok(decision), told) => {
            let told = told.map(|told| (call.gateway.wire_names.service_metadata(), told.of_answer(&decision)));
            Ok(view(&decision, told))
        }
        (Err(error), Some(told)) => {
            Err(error.service_metadata("guardrail", told.guardrail).service_metadata("routing", told.routing))
        }
        (Err(error), None) => Err(error),
    }
}

/// The caller is there until the token is cancelled, which dropping the handler does.
struct Presence(CancellationToken);

#[async_trait]
impl CallerPresence for Presence {
    async fn left(&self) {
        self.0.cancelled().await;
    }
}

const MEMBERS: [&str; 11] = [
    "model",
    "questions",
    "state",
    "provider",
    "session_id",
    "trace",
    "user",
    "models",
    "assets",
    "images",
    "partial",
];

fn draft(body: &str, headers: &HeaderMap) -> Result<DecisionDraft, ApiError> {
    let [model, questions, state, provider, session_id, trace, user, models, assets, images, partial] =
        read_members(body, &MEMBERS)?;
    let own = |value: Option<&RawValue>| value.map(Json::from);
    let session_id_header = if session_id.is_some() { None } else { session_id_header(headers)? };
    Ok(DecisionDraft {
        model: own(model),
        questions: own(questions),
        state: own(state),
        provider: own(provider),
        session_id: own(session_id),
        session_id_header,
        trace: own(trace),
        user: own(user),
        models: own(models),
        assets: own(assets),
        images: own(images),
        partial: own(partial),
        ..DecisionDraft::default()
    })
}

/// The header's text; looked at only where the body has none.
fn session_id_header(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(SESSION_ID);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid("x-session-id stands in the request more than once"));
    }
    std::str::from_utf8(value.as_bytes())
        .map(|text| Some(text.to_owned()))
        .map_err(|_| ApiError::invalid("x-session-id is not UTF-8"))
}

impl From<InvalidDecision> for ApiError {
    fn from(error: InvalidDecision) -> Self {
        Self::of(ErrorKind::InvalidRequest).message(error.to_string())
    }
}

/// `now_ms` is in Unix epoch milliseconds.
fn refusal(error: SubmitDecisionError, now_ms: i64) -> ApiError {
    let plain = ApiError::of(error.kind());
    match error {
        SubmitDecisionError::UnknownModel { nearest } => {
            plain.message("There is no model of that name").metadata("nearest", nearest)
        }
        SubmitDecisionError::NotADecisionModel(_)
        | SubmitDecisionError::VariablePrice(_)
        | SubmitDecisionError::OpaqueQuestions(_) => plain.message(error.to_string()),
        SubmitDecisionError::NoEndpoint { ref funnel, .. } => {
            plain.message(error.to_string()).metadata("routing_funnel", funnel_view(funnel))
        }
        SubmitDecisionError::Attempts(failed) => failed_attempts(plain, &failed, now_ms),
        SubmitDecisionError::ChargeOutOfRange => plain.caused_by(error),
        SubmitDecisionError::Store(store) => ApiError::store(store),
    }
}

fn funnel_view(funnel: &RoutingFunnel) -> Vec<Value> {
    funnel.iter().map(|(step, count)| json!({"step": step, "endpoint_count": count})).collect()
}

fn failed_attempts(plain: ApiError, failed: &FailedAttempts, now_ms: i64) -> ApiError {
    let attempts: Vec<Value> = failed.attempts.iter().map(attempt_view).collect();
    let mut error = plain
        .header(GENERATION_ID, failed.id.as_str())
        .metadata("provider_name", failed.provider_name.as_str())
        .metadata("attempts", attempts.clone())
        .service_metadata("attempts", attempts);
    if let Some(wait) = failed.retry_after {
        error = error.retry_after(wait).metadata("retry_after_seconds", whole_seconds(wait));
    }
    if failed.kind == ErrorKind::InvalidRequest {
        error = error.message("Every provider that was tried refused the request as invalid");
    }
    match failed.last {
        AttemptFailureKind::Simulated(_) => simulated(error, failed, now_ms),
        _ => error,
    }
}

/// What a real failure of the kind would carry, and that it is none.
fn simulated(error: ApiError, failed: &FailedAttempts, now_ms: i64) -> ApiError {
    let error = error.metadata("simulated", true);
    match failed.kind {
        ErrorKind::InsufficientCredits => error
            .metadata("scope", "workspace")
            .metadata("limit_usd", "0")
            .metadata("spent_usd", "0")
            .metadata("resets_at", Value::Null),
        ErrorKind::RateLimited => {
            let wait = failed.retry_after.unwrap_or(Duration::from_secs(1));
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            error
                .rate_limit(1, wait, now_ms.saturating_add(wait_ms))
                .metadata("retry_after_seconds", whole_seconds(wait))
        }
        _ => error,
    }
}

fn attempt_view(attempt: &AttemptRecord) -> Value {
    json!({
        "provider": attempt.provider,
        "upstream_model": attempt.upstream_model,
        "outcome": attempt.outcome,
        "upstream_status": attempt.upstream_status,
        "latency_ms": u64::try_from(attempt.latency.as_millis()).unwrap_or(u64::MAX),
    })
}

/// What is told of the handling to those who ask for it.
struct Told {
    guardrail: Value,
    routing: Value,
}

impl Told {
    fn of(key: &InferenceKey, model: &str) -> Self {
        let guardrail = key.guardrail_id().map_or(Value::Null, |id| json!({"id": id.to_string()}));
        Self { guardrail, routing: json!({"requested_model": model}) }
    }

    fn of_answer(mut self, decision: &Decision) -> Value {
        self.routing["model"] = Value::from(decision.model.as_str());
        self.routing["provider"] = Value::from(decision.provider.as_str());
        json!({
            "attempt_count": decision.attempts.len(),
            "guardrail": self.guardrail,
            "routing": self.routing,
            "token_source": decision.token_source.as_str(),
        })
    }
}

fn view(decision: &Decision, told: Option<(&'static str, Value)>) -> HttpResponse {
    let body = body(decision, told);
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(decision.id.as_str()) {
        headers.insert(GENERATION_ID, id);
    }
    let ascii = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
    if let Ok(name) = HeaderValue::from_str(&decision.provider.chars().map(ascii).collect::<String>()) {
        headers.insert(PROVIDER_NAME, name);
    }
    response
}

/// Written by hand, so that the answers go out byte for byte and the cost never becomes a float.
fn body(decision: &Decision, told: Option<(&'static str, Value)>) -> String {
    use std::fmt::Write;
    let string = |text: &str| Value::from(text).to_string();
    let answers = decision.answers.json().text();
    let mut body = String::with_capacity(answers.len() + 320);
    // Writing to a string does not fail.
    let _ = write!(
        body,
        r#"{{"answers":{answers},"model":{},"usage":{{"input_tokens":{},"output_tokens":{},"cost":{}}},"id":{},"provider":{}"#,
        string(decision.model.as_str()),
        decision.input_tokens,
        decision.output_tokens,
        decision.cost,
        string(decision.id.as_str()),
        string(&decision.provider),
    );
    if let Some((name, value)) = told {
        let _ = write!(body, ",\"{name}\":{value}");
    }
    body.push('}');
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Usd;
    use domain::routing::SimulatedFailure;
    use domain::usage::TokenSource;

    fn decision() -> Decision {
        Decision {
            id: "gen-dec-1".parse().unwrap(),
            answers: Json::parse(r#"{"q" : {"type":"noul","noul":0.50}}"#).unwrap(),
            model: "acme/judge".parse().unwrap(),
            provider: "Acmé \"AI\"".to_owned(),
            input_tokens: 429,
            output_tokens: 0,
            token_source: TokenSource::Reported,
            cost: "0.000018018".parse::<Usd>().unwrap(),
            attempts: 2,
        }
    }

    #[test]
    fn answers_leave_byte_for_byte_and_money_in_plain_decimals() {
        assert_eq!(
            body(&decision(), None),
            concat!(
                r#"{"answers":{"q" : {"type":"noul","noul":0.50}},"model":"acme/judge","#,
                r#""usage":{"input_tokens":429,"output_tokens":0,"cost":0.000018018},"#,
                r#""id":"gen-dec-1","provider":"Acmé \"AI\""}"#
            )
        );
    }

    #[test]
    fn headers_name_the_answer_in_ascii() {
        let response = view(&decision(), None);
        assert_eq!(response.headers().get("x-generation-id").unwrap(), "gen-dec-1");
        assert_eq!(response.headers().get("x-provider-name").unwrap(), "Acm? \"AI\"");
    }

    #[test]
    fn what_was_asked_for_is_told_beside_the_answer() {
        let told = Told { guardrail: Value::Null, routing: json!({}) }.of_answer(&decision());
        let body: Value = serde_json::from_str(&body(&decision(), Some(("service_metadata", told)))).unwrap();
        assert_eq!(body["service_metadata"]["attempt_count"], 2);
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
    fn the_body_s_session_id_wins_over_any_header() {
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
        let attempts = vec![AttemptRecord {
            provider: "acme".into(),
            upstream_model: "judge-1".into(),
            outcome: last.as_str().into(),
            upstream_status: Some(429),
            latency: Duration::from_millis(12),
        }];
        let id = "gen-dec-9".parse().unwrap();
        let failed = FailedAttempts { id, kind, provider_name: "Acme".into(), attempts, retry_after, last };
        refusal(SubmitDecisionError::Attempts(failed), 1_000)
    }

    #[test]
    fn failed_attempts_are_told_with_their_waits() {
        let wait = Some(Duration::from_millis(6_200));
        let error = failed(ErrorKind::ProviderOverloaded, AttemptFailureKind::Overloaded, wait);
        let view = error.view();
        assert_eq!((view.status.as_u16(), view.message), (529, "Provider returned error"));
        assert_eq!(view.metadata["provider_name"], "Acme");
        assert_eq!(view.metadata["retry_after_seconds"], 7);
        assert_eq!(
            view.metadata["attempts"],
            json!([{"provider":"acme","upstream_model":"judge-1","outcome":"overloaded","upstream_status":429,"latency_ms":12}])
        );
        let header = |name: &str| view.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        assert_eq!(header("retry-after").unwrap(), "7");
        assert_eq!(header("x-generation-id").unwrap(), "gen-dec-9");
    }

    #[test]
    fn simulated_failures_look_like_real_ones_and_say_what_they_are() {
        use SimulatedFailure as S;
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
            let error = failed(simulated.kind(), AttemptFailureKind::Simulated(simulated), None);
            assert_eq!((error.status().as_u16(), error.view().metadata["simulated"].clone()), (status, true.into()));
        }
        let credits =
            failed(S::InsufficientCredits.kind(), AttemptFailureKind::Simulated(S::InsufficientCredits), None);
        assert_eq!(credits.view().metadata["scope"], "workspace");
        assert_eq!(credits.view().metadata["resets_at"], Value::Null);
        let limited = failed(S::RateLimited.kind(), AttemptFailureKind::Simulated(S::RateLimited), None);
        let names: Vec<_> = limited.view().headers.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn routing_failures_say_what_to_mend() {
        let unknown = refusal(SubmitDecisionError::UnknownModel { nearest: vec!["acme/judge".into()] }, 0);
        assert_eq!(
            (unknown.status().as_u16(), unknown.view().metadata["nearest"].clone()),
            (404, json!(["acme/judge"]))
        );
        let model = || "acme/judge".parse().unwrap();
        let none = refusal(SubmitDecisionError::NoEndpoint { model: model(), funnel: vec![("model", 0)] }, 0);
        assert_eq!(none.status().as_u16(), 404);
        assert_eq!(none.view().metadata["routing_funnel"], json!([{"step":"model","endpoint_count":0}]));
        assert_eq!(refusal(SubmitDecisionError::VariablePrice(model()), 0).status().as_u16(), 400);
        assert_eq!(refusal(SubmitDecisionError::ChargeOutOfRange, 0).view().message, "Provider returned error");
    }
}

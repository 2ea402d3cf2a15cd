//! What a Decisions request that was not answered says.

use std::time::Duration;

use actix_web::http::header::HeaderName;
use domain::decision::{FailedAttempts, RoutingFunnel, SubmitDecisionError};
use domain::error::ErrorKind;
use domain::routing::AttemptFailureKind;
use domain::usage::AttemptRecord;
use serde_json::{Value, json};

use crate::http::error::{ApiError, whole_seconds};
use crate::wires::Place;

const GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");

/// `now_ms` is in Unix epoch milliseconds.
pub(super) fn refusal(error: SubmitDecisionError, now_ms: i64) -> ApiError {
    let plain = ApiError::of(error.kind());
    match error {
        SubmitDecisionError::UnknownModel { nearest } => {
            let place = Place::Member("model".to_owned());
            plain.message("There is no model of that name").metadata("nearest", nearest).place(place)
        }
        SubmitDecisionError::NotADecisionModel(_) | SubmitDecisionError::VariablePrice(_) => {
            plain.message(error.to_string())
        }
        SubmitDecisionError::NoEndpoint { ref funnel, .. }
        | SubmitDecisionError::Incapable { ref funnel, .. }
        | SubmitDecisionError::NothingWanted { ref funnel, .. } => {
            plain.message(error.to_string()).metadata("routing_funnel", funnel_view(funnel))
        }
        SubmitDecisionError::BreakersOpen { retry_in, ref funnel, .. } => plain
            .message(error.to_string())
            .retry_after(retry_in)
            .metadata("retry_after_seconds", whole_seconds(retry_in))
            .metadata("routing_funnel", funnel_view(funnel)),
        SubmitDecisionError::Attempts(failed) => failed_attempts(plain, &failed, now_ms),
        SubmitDecisionError::ChargeOutOfRange | SubmitDecisionError::Defect(_) => plain.caused_by(error),
        SubmitDecisionError::Store(store) => ApiError::store(store),
    }
}

pub(super) fn funnel_view(funnel: &RoutingFunnel) -> Vec<Value> {
    funnel.iter().map(|(step, count)| json!({"step": step, "endpoint_count": count})).collect()
}

fn failed_attempts(plain: ApiError, failed: &FailedAttempts, now_ms: i64) -> ApiError {
    let attempts: Vec<Value> = failed.attempts.iter().map(attempt_view).collect();
    let mut error = plain
        .header(GENERATION_ID, failed.id.as_str())
        .metadata("provider_name", failed.provider_name.as_str())
        .metadata("attempts", attempts.clone())
        .service_metadata("attempts", attempts)
        .service_metadata("routing_funnel", funnel_view(&failed.funnel));
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

pub(super) fn attempt_view(attempt: &AttemptRecord) -> Value {
    json!({
        "provider": attempt.provider,
        "upstream_model": attempt.upstream_model,
        "outcome": attempt.outcome,
        "upstream_status": attempt.upstream_status,
        "latency_ms": u64::try_from(attempt.latency.as_millis()).unwrap_or(u64::MAX),
    })
}

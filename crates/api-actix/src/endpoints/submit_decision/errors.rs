//! The errors of a Decisions request that got no answer, and the service metadata of both ends.

use actix_web::http::header::HeaderName;
use chrono::SecondsFormat;
use domain::api_key::InferenceKey;
use domain::budget::{BudgetScope, LimitExceeded};
use domain::decision::{Decision, FailedAttempts, FilteringError, SubmitDecisionError};
use domain::error::ErrorKind;
use domain::money::Usd;
use domain::routing::{AttemptFailureKind, FailureCause, RoutingFunnel};
use domain::usage::{AttemptRecord, Finding, RejectionReason};
use serde_json::Value;
use wires::client::ErrorLocation;

use crate::endpoints::prelude::*;
use crate::http::access_log::ChargeFields;
use crate::http::error::whole_seconds;

const GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");

/// Maps a use case error to an API error. `now_ms` is in Unix epoch milliseconds. The match names every variant: the text
/// of a new one must not reach clients unseen.
pub(super) fn api_error(error: SubmitDecisionError, now_ms: i64) -> ApiError {
    use SubmitDecisionError as E;
    let rejected = |error: &E| ApiError::from_kind(error.kind()).message(error.to_string());
    match error {
        E::Blocked(ref blocked) => rejected(&error)
            .reason(RejectionReason::ContentFilter)
            .metadata("guardrail_id", blocked.guardrail_id.to_string())
            .metadata("label", blocked.label.as_str())
            .metadata("path", blocked.path.as_str()),
        E::Forbidden { ref model, ref forbidden, ref funnel } => rejected(&error)
            .reason(RejectionReason::Guardrail)
            .metadata("guardrail_id", forbidden.guardrail_id.to_string())
            .metadata("rule", forbidden.rule)
            .metadata("model", model.as_str())
            .service_metadata("routing_funnel", funnel_view(funnel)),
        E::Unpriced(ref model) => rejected(&error).reason(RejectionReason::NoPrice).metadata("model", model.as_str()),
        E::UnknownModel { ref nearest } => {
            rejected(&error).metadata("nearest", nearest.as_slice()).location(ErrorLocation::Member("model".to_owned()))
        }
        E::UnknownPreset { .. } => rejected(&error).location(ErrorLocation::Member("model".to_owned())),
        E::NotADecisionModel(_) | E::VariablePrice(_) => rejected(&error),
        E::NoEndpoint { ref nearest, ref funnel, .. } => {
            rejected(&error).metadata("nearest", nearest.as_slice()).metadata("routing_funnel", funnel_view(funnel))
        }
        E::Unsupported { ref funnel, .. } | E::ExcludedByPreferences { unknown: None, ref funnel, .. } => {
            rejected(&error).metadata("routing_funnel", funnel_view(funnel))
        }
        E::ExcludedByPreferences { unknown: Some(ref unknown), ref funnel, .. } => rejected(&error)
            .metadata("routing_funnel", funnel_view(funnel))
            .metadata("nearest", unknown.nearest.as_slice()),
        E::Throttled { ref endpoints, ref funnel, .. } => rejected(&error)
            .reason(RejectionReason::EndpointsThrottled)
            .retry_after(endpoints.retry_in)
            .metadata("retry_after_seconds", whole_seconds(endpoints.retry_in))
            .metadata("routing_funnel", funnel_view(funnel)),
        E::RecordQuotaExceeded(full) => rejected(&error)
            .reason(RejectionReason::RecordQuotaExceeded)
            .retry_after(full.resets_in)
            .metadata("scope", "workspace")
            .metadata("unit", "record_bytes")
            .metadata("limit", full.limit)
            .metadata("used", full.used)
            .metadata("resets_at", full.resets_at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        E::LimitExceeded(exceeded) => limit_exceeded(&exceeded),
        E::Attempts(failed) => failed_attempts(&failed, now_ms),
        E::Filtering(FilteringError::TaskFailed(lost)) => ApiError::from_task_error(lost),
        E::Filtering(FilteringError::ClientDisconnected | FilteringError::TimedOut)
        | E::ChargeOutOfRange
        | E::Defect(_) => ApiError::from_kind(error.kind()).caused_by(error),
        E::Store(store) => store.into(),
    }
}

/// Returns the reason of a request over a limit for the access log.
fn limit_reason(exceeded: &LimitExceeded) -> RejectionReason {
    match exceeded.scope {
        _ if exceeded.is_credit => RejectionReason::CreditExhausted,
        BudgetScope::Workspace => RejectionReason::WorkspaceBudgetExceeded,
        BudgetScope::Key => RejectionReason::KeyLimitExceeded,
        BudgetScope::Guardrail => RejectionReason::GuardrailBudgetExceeded,
    }
}

/// Returns the error with the exceeded limit, its current usage and the correction.
fn limit_exceeded(exceeded: &LimitExceeded) -> ApiError {
    let resets_at = exceeded.resets_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
    let mut error = ApiError::from_kind(ErrorKind::InsufficientCredits)
        .reason(limit_reason(exceeded))
        .message(limit_message(exceeded))
        .metadata("scope", exceeded.scope.as_str())
        .amount("limit_usd", exceeded.limit)
        .amount("spent_usd", exceeded.spent)
        .amount("reserved_usd", exceeded.reserved)
        .metadata("resets_at", resets_at);
    if let Some(id) = exceeded.guardrail_id {
        error = error.metadata("guardrail_id", id.to_string());
    }
    // Most of the funds held by other requests will be released soon.
    if exceeded.waits_for_others() { error.retry_after(Duration::from_secs(1)) } else { error }
}

fn limit_message(exceeded: &LimitExceeded) -> String {
    let LimitExceeded { limit, spent, reserved, wanted, .. } = exceeded;
    let period = exceeded.reset.map_or(String::new(), |reset| format!("{} ", reset.as_str()));
    let whose = match (exceeded.scope, exceeded.guardrail_id) {
        _ if exceeded.is_credit => "the workspace's credit".to_owned(),
        (BudgetScope::Workspace, _) => format!("the workspace's {period}budget"),
        (BudgetScope::Key, _) => format!("the key's {period}limit"),
        (BudgetScope::Guardrail, Some(id)) => format!("the {period}budget of the guardrail {id}"),
        (BudgetScope::Guardrail, None) => format!("the {period}budget of a guardrail"),
    };
    let helps = match (exceeded.scope, exceeded.resets_at) {
        _ if exceeded.waits_for_others() => "Try again once requests in flight have ended".to_owned(),
        _ if exceeded.is_credit => {
            "The operator of this gateway can add more with `tollgate workspace credit`".to_owned()
        }
        (scope, resets_at) => {
            let command = match scope {
                BudgetScope::Workspace => "tollgate workspace budget",
                BudgetScope::Key => "tollgate key update",
                BudgetScope::Guardrail => "tollgate guardrail update",
            };
            let resets = resets_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
            let resets = resets.map_or(String::new(), |at| format!("It resets at {at}; "));
            let operator = if resets.is_empty() { "The operator" } else { "the operator" };
            format!("{resets}{operator} of this gateway can raise it with `{command}`")
        }
    };
    format!(
        "Insufficient credits: of {whose} of {limit} USD, {spent} USD are spent and {reserved} USD reserved by requests \
         in flight, and this request may come to {wanted} USD. {helps}"
    )
}

/// Lists the findings of content filters, in the format of a request pipeline.
fn pipeline_view(findings: &[Finding]) -> Vec<Value> {
    let stage = |finding: &Finding| {
        json!({
            "type": "guardrail",
            "guardrail_id": finding.guardrail_id.to_string(),
            "label": finding.label,
            "action": finding.action.as_str(),
            "path": finding.path,
            "count": finding.count,
        })
    };
    findings.iter().map(stage).collect()
}

fn funnel_view(funnel: &RoutingFunnel) -> Vec<Value> {
    funnel.iter().map(|(step, count)| json!({"step": step, "endpoint_count": count})).collect()
}

fn failed_attempts(failed: &FailedAttempts, now_ms: i64) -> ApiError {
    let causes = failed.causes.iter().copied().chain(std::iter::repeat(None));
    let attempts: Vec<Value> =
        failed.attempts.iter().zip(causes).map(|(attempt, cause)| failed_attempt_view(attempt, cause)).collect();
    let charge = ChargeFields {
        model: failed.attempts.last().map(|attempt| attempt.model.clone()),
        provider: failed.provider_name.clone(),
        cost: failed.cost,
    };
    let mut error = ApiError::from_kind(failed.kind)
        .reason(RejectionReason::AttemptsFailed)
        .charge(charge)
        .header(GENERATION_ID, failed.id.as_str())
        .metadata("provider_name", failed.provider_name.as_str())
        .metadata("attempts", attempts.clone())
        .amount("charged_usd", failed.cost)
        .metadata("usage_source", failed.usage_source.as_str())
        .service_metadata("attempts", attempts)
        .service_metadata("pipeline", pipeline_view(&failed.findings))
        .service_metadata("routing_funnel", funnel_view(&failed.funnel))
        .service_metadata("usage_source", failed.usage_source.as_str());
    if let Some(wait) = failed.retry_after {
        error = error.retry_after(wait).metadata("retry_after_seconds", whole_seconds(wait));
    }
    if failed.kind == ErrorKind::InvalidRequest {
        error = error.message("Every provider that was tried rejected the request as invalid");
    }
    match failed.last {
        AttemptFailureKind::Simulated(_) => simulated(error, failed, now_ms),
        AttemptFailureKind::MemoryExhausted => error.message(
            "The gateway's memory for requests and answers, or the half of it that is this workspace's, is used up, and \
             the provider's answer was not read; try again when other requests have ended",
        ),
        _ if failed.kind == ErrorKind::ProviderFailure => match provider_failure_message(failed) {
            Some(message) => error.message(message),
            None => error,
        },
        _ => error,
    }
}

/// Returns the message of a request whose last attempt failed for a reason that an operator can mend, or without a
/// response of the provider.
fn provider_failure_message(failed: &FailedAttempts) -> Option<String> {
    let outcome = failed.last.outcome();
    let position = failed.attempts.iter().rposition(|attempt| attempt.outcome == outcome);
    let attempt = position.and_then(|position| failed.attempts.get(position));
    let cause = position.and_then(|position| *failed.causes.get(position)?);
    let provider = attempt.map_or(failed.provider_name.as_str(), |attempt| &*attempt.provider);
    let status = attempt.and_then(|attempt| attempt.upstream_status);
    let status = status.map_or(String::new(), |status| format!(" with {status}"));
    let sentence = cause.map_or(String::new(), |cause| format!(": {}", cause.sentence()));
    match (failed.last, cause) {
        (AttemptFailureKind::ProviderAuthFailed, Some(FailureCause::AccountExhausted)) => Some(format!(
            "Provider returned error: {provider} rejected this gateway's account{status}{sentence}; the operator must \
             check the account"
        )),
        (AttemptFailureKind::ProviderAuthFailed, _) => Some(format!(
            "Provider returned error: {provider} rejected this gateway's credentials{status}; the operator must check \
             the provider's API key"
        )),
        (AttemptFailureKind::ConnectFailed, _) => Some(format!("Provider cannot be reached: {provider}{sentence}")),
        (AttemptFailureKind::ConnectionLost, _) => {
            Some(format!("Provider sent no response: {provider} ended the connection{sentence}"))
        }
        _ => None,
    }
}

/// Adds the details of a real failure and marks the error as simulated.
fn simulated(error: ApiError, failed: &FailedAttempts, now_ms: i64) -> ApiError {
    let error = error.metadata("simulated", true);
    match failed.kind {
        ErrorKind::InsufficientCredits => error
            .metadata("scope", "workspace")
            .amount("limit_usd", Usd::ZERO)
            .amount("spent_usd", Usd::ZERO)
            .amount("reserved_usd", Usd::ZERO)
            .metadata("resets_at", Value::Null),
        ErrorKind::RateLimited => {
            let wait = failed.retry_after.unwrap_or(Duration::from_secs(1));
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            error
                .rate_limit(1, 0, wait, now_ms.saturating_add(wait_ms))
                .metadata("retry_after_seconds", whole_seconds(wait))
        }
        _ => error,
    }
}

fn failed_attempt_view(attempt: &AttemptRecord, cause: Option<FailureCause>) -> Value {
    let mut view = attempt_view(attempt);
    if let (Some(cause), Some(members)) = (cause, view.as_object_mut()) {
        members.insert("cause".to_owned(), cause.as_str().into());
    }
    view
}

fn attempt_view(attempt: &AttemptRecord) -> Value {
    json!({
        "provider": &*attempt.provider,
        "upstream_model": &*attempt.upstream_model,
        "outcome": attempt.outcome.as_str(),
        "upstream_status": attempt.http_status(),
        "usage_source": attempt.usage_source.as_str(),
        "latency_ms": u64::try_from(attempt.latency.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The service metadata of a Decisions request, sent on request.
pub(super) struct ResponseMetadata {
    guardrail: Value,
    routing: Value,
}

impl ResponseMetadata {
    pub(super) fn new(key: &InferenceKey, model: &str) -> Self {
        let guardrail = key.guardrail_id().map_or(Value::Null, |id| json!({"id": id.to_string()}));
        Self { guardrail, routing: json!({"requested_model": model}) }
    }

    pub(super) fn describe_answer(mut self, decision: &Decision) -> Value {
        self.routing["model"] = Value::from(decision.model.as_str());
        self.routing["provider"] = Value::from(decision.provider.as_str());
        json!({
            "attempt_count": decision.attempts.len(),
            "attempts": decision.attempts.iter().map(attempt_view).collect::<Vec<_>>(),
            "guardrail": self.guardrail,
            "pipeline": pipeline_view(&decision.findings),
            "routing": self.routing,
            "routing_funnel": funnel_view(&decision.funnel),
            "usage_source": decision.usage_source.as_str(),
        })
    }

    pub(super) fn add_to_error(self, error: ApiError) -> ApiError {
        error.service_metadata("guardrail", self.guardrail).service_metadata("routing", self.routing)
    }
}

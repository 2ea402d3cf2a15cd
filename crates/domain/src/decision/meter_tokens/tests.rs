//! Tokens that are taken in advance and corrected.

use std::time::Duration;

use super::*;
use crate::api_key::InferenceKey;
use crate::decision::{FailedAttempts, FilteringError, RecordQuotaExceeded};
use crate::error::{ErrorKind, StoreError};
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::{Price, Usd};
use crate::pricing::TokenPrices;
use crate::question::{AnswerRules, Answers, ConfidenceSource, ProviderInput, Questions};
use crate::rate::{MockRateLimiter, RateLimited, RateLimits, RateScope, RateUnit};
use crate::routing::AttemptFailureKind;
use crate::testing::{FixedRateLimiter, SequentialIds};
use crate::usage::{AttemptOutcome, QuestionOutcomes, UsageSource};

/// A body that a hundred tokens are taken for.
const BODY_BYTES: usize = 400;

fn caller() -> Principal {
    let workspace_id = WorkspaceId::from_uuid(SequentialIds::uuid(1));
    Principal::Inference(InferenceKey::for_tests(SequentialIds::key(1), workspace_id))
}

fn decision(input_tokens: u64, output_tokens: u64) -> Decision {
    let questions = Questions { json: Json::parse("\"?\"").unwrap(), typed: None };
    let rules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };
    Decision {
        id: "gen-dec-1".parse().unwrap(),
        answers: Answers::check(&questions, &Json::parse("{}").unwrap(), rules).unwrap(),
        provider_input: Arc::new(ProviderInput::new(questions, None)),
        model: "acme/judge".parse().unwrap(),
        provider: "Acme".to_owned(),
        input_tokens,
        output_tokens,
        usage_source: UsageSource::Reported,
        cost: Usd::ZERO,
        attempts: Arc::default(),
        funnel: Vec::new(),
        findings: Vec::new(),
        outcomes: QuestionOutcomes::default(),
    }
}

fn attempt(input_tokens: u64, output_tokens: u64) -> AttemptRecord {
    AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge".into(),
        part: 0,
        outcome: AttemptOutcome::InvalidResponse,
        upstream_status: None,
        began: Duration::ZERO,
        latency: Duration::ZERO,
        input_tokens,
        output_tokens,
        usage_source: UsageSource::UpperBound,
        prices: TokenPrices { prompt: Price::ZERO, completion: Price::ZERO },
    }
}

fn failed(attempts: Vec<AttemptRecord>) -> SubmitDecisionError {
    SubmitDecisionError::Attempts(Box::new(FailedAttempts {
        id: "gen-dec-1".parse().unwrap(),
        kind: ErrorKind::ProviderFailure,
        provider_name: "Acme".to_owned(),
        attempts: attempts.into(),
        causes: Box::default(),
        cost: Usd::ZERO,
        usage_source: UsageSource::UpperBound,
        retry_after: None,
        last: AttemptFailureKind::InvalidResponse,
        funnel: Vec::new(),
        findings: Vec::new(),
    }))
}

/// The tokens that a request of a hundred estimated ones is corrected to.
async fn used(end: &Result<Decision, SubmitDecisionError>) -> u64 {
    let limiter = FixedRateLimiter::new(u32::MAX);
    let meter = MeterTokens::new(Arc::new(limiter.clone()), DefaultRates::default());
    meter.execute(&caller(), BODY_BYTES).await.unwrap().settle(end);
    let corrections = limiter.corrections();
    let [(100, used)] = corrections[..] else { panic!("one correction of a hundred tokens: {corrections:?}") };
    used
}

#[test]
fn token_estimate_is_one_when_the_body_is_shorter_than_a_token() {
    let estimates = [(0, 1), (1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (400, 100)];
    for (body_bytes, tokens) in estimates {
        assert_eq!(estimate_tokens(body_bytes), tokens, "{body_bytes} bytes");
    }
}

#[tokio::test]
async fn settle_corrects_to_the_tokens_of_the_answer() {
    assert_eq!(used(&Ok(decision(429, 7))).await, 436);
    assert_eq!(used(&Ok(decision(0, 0))).await, 0);
    assert_eq!(used(&Ok(decision(u64::MAX, 1))).await, u64::MAX);
}

#[tokio::test]
async fn settle_corrects_to_the_tokens_of_every_attempt_when_all_failed() {
    assert_eq!(used(&Err(failed(Vec::new()))).await, 0);
    assert_eq!(used(&Err(failed(vec![attempt(20, 3), attempt(0, 0), attempt(5, 0)]))).await, 28);
    assert_eq!(used(&Err(failed(vec![attempt(u64::MAX, 3), attempt(1, 0)]))).await, u64::MAX);
}

#[tokio::test]
async fn settle_keeps_the_estimate_when_the_usage_is_unknown() {
    let store = SubmitDecisionError::Store(StoreError::unavailable("full"));
    for end in [store, SubmitDecisionError::ChargeOutOfRange, SubmitDecisionError::Defect("a defect")] {
        assert_eq!(used(&Err(end)).await, 100);
    }
}

#[tokio::test]
async fn settle_returns_all_tokens_when_no_provider_was_called() {
    let full =
        RecordQuotaExceeded { limit: 1, used: 1, resets_at: chrono::DateTime::UNIX_EPOCH, resets_in: Duration::ZERO };
    let ends = [
        SubmitDecisionError::UnknownModel { nearest: Vec::new() },
        SubmitDecisionError::Filtering(FilteringError::ClientDisconnected),
        SubmitDecisionError::RecordQuotaExceeded(full),
        SubmitDecisionError::NoEndpoint {
            model: "acme/judge".parse().unwrap(),
            nearest: Vec::new(),
            funnel: Vec::new(),
        },
    ];
    for end in ends {
        assert_eq!(used(&Err(end)).await, 0);
    }
}

#[tokio::test]
async fn drop_without_an_end_returns_all_tokens() {
    let limiter = FixedRateLimiter::new(u32::MAX).with_tokens(150);
    let meter = MeterTokens::new(Arc::new(limiter.clone()), DefaultRates::default());
    drop(meter.execute(&caller(), BODY_BYTES).await.unwrap());
    assert_eq!(limiter.corrections(), [(100, 0)]);
    let held = meter.execute(&caller(), BODY_BYTES).await.expect("the tokens are free again");
    let Err(RateLimitError::Exceeded(rejected)) = meter.execute(&caller(), BODY_BYTES).await else {
        panic!("50 tokens are left")
    };
    assert_eq!((rejected.unit, rejected.remaining), (RateUnit::Tokens, 50));
    assert_eq!(limiter.corrections().len(), 1, "a rejected request took none");
    drop(held);
}

#[tokio::test]
async fn execute_counts_callers_by_the_defaults_where_they_have_no_rates() {
    let per_minute = |tokens| RateLimits { requests_per_minute: None, tokens_per_minute: Some(tokens) };
    let mut limiter = MockRateLimiter::new();
    limiter
        .expect_take_tokens()
        .withf(move |subject, tokens| {
            let workspace = subject.workspace.map(|(_, limits)| limits);
            (subject.key, workspace, *tokens) == (per_minute(7), Some(per_minute(9)), 100)
        })
        .once()
        .returning(|_, _| {
            let (scope, unit, retry_after) = (RateScope::Workspace, RateUnit::Tokens, Duration::from_secs(3));
            Err(RateLimited { scope, unit, limit: 9, remaining: 2, retry_after }.into())
        });
    limiter.expect_correct_tokens().never();
    let defaults = DefaultRates { key: per_minute(7), workspace: per_minute(9) };
    let meter = MeterTokens::new(Arc::new(limiter), defaults);
    let Err(RateLimitError::Exceeded(rejected)) = meter.execute(&caller(), BODY_BYTES).await else {
        panic!("the limiter rejects")
    };
    assert_eq!((rejected.scope, rejected.remaining), (RateScope::Workspace, 2));
}

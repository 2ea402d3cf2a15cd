use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::BudgetScope;
use domain::ids::{DecisionId, WorkspaceId};
use domain::money::{Price, Usd};
use domain::observability::OutboxStatus;
use domain::pricing::TokenPrices;
use domain::rate::{RateScope, RateUnit};
use domain::testing::SequentialIds;
use domain::usage::{
    AttemptOutcome, AttemptRecord, QuestionVerdict, UsageOutcome, UsageRecord, UsageShare, UsageSource,
};

use super::*;
use crate::{LabelledValue, MetricKind};

fn metrics() -> PrometheusMetrics {
    PrometheusMetrics::new("1.2.3", ["alpha", "beta"])
}

/// Returns the value of the line with this beginning.
fn value(metrics: &PrometheusMetrics, series: &str) -> Option<String> {
    let text = metrics.text();
    let mut found = text.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned));
    let value = found.next();
    assert_eq!(found.next(), None, "{series} is there twice");
    value
}

fn assert_value(metrics: &PrometheusMetrics, series: &str, expected: &str) {
    assert_eq!(value(metrics, series).as_deref(), Some(expected), "{series} in\n{}", metrics.text());
}

fn prices() -> TokenPrices {
    TokenPrices { prompt: "0.0000001".parse::<Price>().unwrap(), completion: Price::ZERO }
}

fn attempt(provider: &str, outcome: &str, began_ms: u64, ms: u64) -> AttemptRecord {
    AttemptRecord {
        provider: provider.into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge-1".into(),
        part: 0,
        outcome: AttemptOutcome::from_name(outcome),
        upstream_status: None,
        began: Duration::from_millis(began_ms),
        latency: Duration::from_millis(ms),
        input_tokens: 10,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        prices: prices(),
    }
}

fn record(attempts: Vec<AttemptRecord>, share: UsageShare) -> UsageRecord {
    UsageRecord {
        id: DecisionId::from_uuid(SequentialIds::uuid(2)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        api_key: SequentialIds::key(7),
        request_id: "request-1".parse().unwrap(),
        requested_model: "acme/judge".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "alpha".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 20,
        output_tokens: 6,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(2_000_000),
        prices: prices(),
        share,
        attempts: attempts.into(),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: DateTime::<Utc>::UNIX_EPOCH,
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: DateTime::<Utc>::UNIX_EPOCH,
        latency: Duration::from_millis(300),
    }
}

#[test]
fn record_charge_counts_attempts_tokens_and_spend() {
    let metrics = metrics();
    let attempts = vec![attempt("alpha", "http_error", 1, 100), attempt("beta", "completed", 101, 198)];
    metrics.decisions().record_charge(&record(attempts, UsageShare::WHOLE));
    assert_value(&metrics, r#"tollgate_decisions_total{outcome="completed"}"#, "1");
    assert_value(&metrics, r#"tollgate_decisions_total{outcome="failed"}"#, "0");
    assert_value(&metrics, r#"tollgate_attempts_total{provider="alpha",outcome="http_error"}"#, "1");
    assert_value(&metrics, r#"tollgate_attempts_total{provider="beta",outcome="completed"}"#, "1");
    assert_value(&metrics, r#"tollgate_tokens_total{provider="beta",direction="input"}"#, "10");
    assert_value(&metrics, r#"tollgate_tokens_total{provider="beta",direction="output"}"#, "3");
    assert_value(&metrics, r#"tollgate_attempt_cost_usd_total{provider="beta"}"#, "0.000001");
    assert_value(&metrics, "tollgate_spend_usd_total", "0.000002");
    // 300 ms, of which 298 were spent at providers.
    assert_value(&metrics, r#"tollgate_gateway_overhead_seconds_bucket{le="0.001"}"#, "0");
    assert_value(&metrics, r#"tollgate_gateway_overhead_seconds_bucket{le="0.0025"}"#, "1");
    assert_value(&metrics, r#"tollgate_attempt_duration_seconds_bucket{le="0.25",provider="beta"}"#, "1");
}

#[test]
fn questions_of_stages_are_counted_by_their_outcome() {
    let metrics = metrics();
    assert_value(&metrics, r#"tollgate_question_outcomes_total{outcome="escalated"}"#, "0");
    for verdict in [QuestionVerdict::Accepted, QuestionVerdict::Abstained, QuestionVerdict::Accepted] {
        metrics.decisions().record_question_verdict(verdict);
    }
    for (outcome, count) in [("accepted", "2"), ("escalated", "0"), ("abstained", "1")] {
        assert_value(&metrics, &format!(r#"tollgate_question_outcomes_total{{outcome="{outcome}"}}"#), count);
    }
}

#[test]
fn record_charge_counts_shared_call_once() {
    let metrics = metrics();
    for index in 0..3 {
        metrics
            .decisions()
            .record_charge(&record(vec![attempt("alpha", "completed", 1, 9)], UsageShare { index, of: 3 }));
    }
    assert_value(&metrics, r#"tollgate_decisions_total{outcome="completed"}"#, "3");
    assert_value(&metrics, r#"tollgate_attempts_total{provider="alpha",outcome="completed"}"#, "1");
}

#[test]
fn unknown_provider_counts_as_other() {
    let metrics = metrics();
    for number in 0..100 {
        let attempts = vec![attempt(&format!("provider-{number}"), &format!("outcome-{number}"), 1, 1)];
        metrics.decisions().record_charge(&record(attempts, UsageShare::WHOLE));
    }
    assert_value(&metrics, r#"tollgate_attempts_total{provider="other",outcome="other"}"#, "100");
    assert!(!metrics.text().contains("provider-"));
}

#[test]
fn added_provider_has_series_and_known_ones_keep_their_counts() {
    let metrics = metrics();
    let of = |provider: &str| record(vec![attempt(provider, "completed", 1, 1)], UsageShare::WHOLE);
    metrics.add_providers(["later"]);
    metrics.decisions().record_charge(&of("later"));
    metrics.add_providers(["later", "latest"]);
    metrics.decisions().record_charge(&of("later"));
    assert_value(&metrics, r#"tollgate_attempts_total{provider="later",outcome="completed"}"#, "2");
    assert_value(&metrics, r#"tollgate_attempts_total{provider="latest",outcome="completed"}"#, "0");
}

#[test]
fn holds_are_counted_by_result() {
    let metrics = metrics();
    for rejected_by in [None, None, Some(BudgetScope::Workspace), Some(BudgetScope::Guardrail)] {
        metrics.decisions().record_hold(rejected_by, Duration::from_millis(1));
    }
    metrics.decisions().record_guardrail_action("redact");
    metrics.decisions().record_hold_exceeded();
    for (result, limit, count) in [
        ("granted", "none", "2"),
        ("rejected", "workspace", "1"),
        ("rejected", "key", "0"),
        ("rejected", "guardrail", "1"),
    ] {
        let series = format!("tollgate_holds_total{{result=\"{result}\",limit=\"{limit}\"}}");
        assert_value(&metrics, &series, count);
    }
    assert_value(&metrics, "tollgate_hold_duration_seconds_count", "4");
    assert_value(&metrics, r#"tollgate_guardrail_actions_total{action="redact"}"#, "1");
    assert_value(&metrics, r#"tollgate_guardrail_actions_total{action="block"}"#, "0");
    assert_value(&metrics, "tollgate_charges_over_hold_total", "1");
}

#[test]
fn abandoned_requests_are_counted_as_outcome() {
    let metrics = metrics();
    metrics.decisions().record_abandoned_requests(3);
    assert_value(&metrics, r#"tollgate_decisions_total{outcome="abandoned"}"#, "3");
}

#[test]
fn http_metrics_count_responses_operations_and_rate_limits() {
    let metrics = metrics();
    let http = metrics.http();
    http.begin_operation();
    http.begin_operation();
    http.end_operation();
    http.record_response(Some("/models/count"), "GET", 200, Duration::from_micros(700));
    http.record_response(None, "GET", 404, Duration::from_micros(10));
    http.record_rate_limit(RateScope::Workspace, RateUnit::Tokens);
    assert_value(&metrics, "tollgate_requests_in_flight", "1");
    assert_value(&metrics, r#"tollgate_http_requests_total{route="/models/count",method="GET",status="200"}"#, "1");
    assert_value(&metrics, r#"tollgate_http_requests_total{route="none",method="GET",status="404"}"#, "1");
    assert_value(&metrics, r#"tollgate_http_request_duration_seconds_bucket{le="0.001",route="/models/count"}"#, "1");
    assert_value(&metrics, r#"tollgate_rate_limit_rejections_total{scope="workspace",unit="tokens"}"#, "1");
    assert_value(&metrics, r#"tollgate_rate_limit_rejections_total{scope="key",unit="requests"}"#, "0");
}

#[test]
fn outbox_lag_is_age_of_oldest_message() {
    let metrics = metrics();
    let now = DateTime::<Utc>::UNIX_EPOCH + Duration::from_secs(100);
    let oldest = Some(DateTime::<Utc>::UNIX_EPOCH + Duration::from_secs(58));
    metrics.outbox().record_sample(&OutboxStatus { pending: 3, dead: 1, oldest }, now);
    metrics.outbox().record_sample_failure();
    assert_value(&metrics, r#"tollgate_outbox_messages{state="pending"}"#, "3");
    assert_value(&metrics, r#"tollgate_outbox_messages{state="dead"}"#, "1");
    assert_value(&metrics, "tollgate_outbox_lag_seconds", "42");
    assert_value(&metrics, "tollgate_outbox_poll_errors_total", "1");
    metrics.outbox().record_sample(&OutboxStatus::default(), now);
    assert_value(&metrics, "tollgate_outbox_lag_seconds", "0");
}

#[test]
fn samples_are_read_at_each_scrape() {
    let metrics = metrics();
    let hits = Arc::new(AtomicU64::new(5));
    let read = Arc::clone(&hits);
    metrics.watch(MetricSample {
        name: "cache_lookups",
        help: "Look-ups",
        kind: MetricKind::Counter,
        read: Box::new(move || {
            vec![LabelledValue {
                labels: vec![("cache", "a \"b\"\n\\".to_owned())],
                value: read.load(Ordering::Relaxed),
            }]
        }),
    });
    metrics.watch(MetricSample::single("queue", "Waiting", MetricKind::Gauge, || 7));
    assert_value(&metrics, r#"tollgate_cache_lookups_total{cache="a \"b\"\n\\"}"#, "5");
    hits.store(6, Ordering::Relaxed);
    assert_value(&metrics, r#"tollgate_cache_lookups_total{cache="a \"b\"\n\\"}"#, "6");
    assert_value(&metrics, "tollgate_queue", "7");
    assert_value(&metrics, r#"tollgate_build_info{version="1.2.3"}"#, "1");
    assert!(metrics.text().ends_with("# EOF\n"));
}

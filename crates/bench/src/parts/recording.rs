//! The cost of recording metrics, in this process.

use std::time::Duration;

use adapters_metrics::PrometheusMetrics;
use adapters_system::SystemClock;
use anyhow::Result;
use domain::ids::{ApiKeyId, DecisionId, RequestId, WorkspaceId};
use domain::money::{Price, Usd};
use domain::pricing::TokenPrices;
use domain::system::Clock as _;
use domain::usage::{AttemptOutcome, AttemptRecord, UsageOutcome, UsageRecord, UsageShare, UsageSource};
use uuid::Uuid;

use super::bench::Bench;
use crate::clock::now;
use crate::report::Figure;
use crate::statistics::median;

/// Calls per measurement.
const CALLS: u32 = 10_000;

/// Measures the recordings of a request, and one scrape.
pub fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let metrics = PrometheusMetrics::new("0.0.0", ["alpha", "beta"]);
    let decisions = metrics.decisions();
    let record = record()?;
    let calls: [(&str, &dyn Fn()); 5] = [
        ("an HTTP answer", &|| metrics.http().record_response(Some("/a"), "GET", 200, Duration::from_millis(1))),
        ("a request in flight", &|| {
            metrics.http().begin_operation();
            metrics.http().end_operation();
        }),
        ("a charge", &|| decisions.record_charge(&record)),
        ("a hold", &|| decisions.record_hold(None, Duration::from_micros(80))),
        ("a scrape", &|| drop(std::hint::black_box(metrics.text()))),
    ];
    let figures = calls.map(|(name, call)| {
        let rounds = (0..bench.rounds.max(3)).map(|_| nanoseconds(call));
        Figure::single(format!("metrics, {name}"), "ns", median(&rounds.collect::<Vec<_>>()))
    });
    Ok(figures.into())
}

/// Returns the mean time of many calls.
fn nanoseconds(call: &dyn Fn()) -> f64 {
    let began = now();
    (0..CALLS).for_each(|_| call());
    began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

/// Returns the record of a request that one provider answered.
fn record() -> Result<UsageRecord> {
    let prices = TokenPrices { prompt: "0.0000001".parse()?, completion: Price::ZERO };
    let attempt = AttemptRecord {
        provider: "alpha".into(),
        model: "bench/decider".parse()?,
        upstream_model: "decider-1".into(),
        part: 0,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::from_millis(1),
        latency: Duration::from_millis(9),
        input_tokens: 10,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        prices,
    };
    let at = SystemClock::new().now();
    Ok(UsageRecord {
        id: DecisionId::from_uuid(Uuid::from_u128(1)),
        workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(2)),
        api_key: ApiKeyId::from_uuid(Uuid::from_u128(7)),
        request_id: RequestId::from_uuid(Uuid::from_u128(3)),
        requested_model: "bench/decider".to_owned(),
        model: "bench/decider".parse()?,
        provider: "alpha".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 10,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(1_000_000),
        prices,
        share: UsageShare::WHOLE,
        attempts: [attempt].into(),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: at,
        session_id: None,
        trace: None,
        user: None,
        client_address: Some([192, 0, 2, 7].into()),
        preset: None,
        outcomes: None,
        created_at: at,
        latency: Duration::from_millis(10),
    })
}

//! Payers, requests and limits.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::super::Stores;
pub(in super::super) use super::super::samples::limit_workspace;
use super::super::samples::{add_key, add_workspace, audit, guardrail_id, inference_key, key_id, workspace_id};
use crate::api_key::{ApiKey, KeyUpdate, LastKeyRule};
use crate::budget::{
    Hold, HoldRequest, LedgerAudit, LimitExceeded, LimitStatus, Payer, ResetInterval, SpendLimit, UsageCharge,
};
use crate::ids::{DecisionId, RequestId};
use crate::money::{Price, Usd};
use crate::pricing::TokenPrices;
use crate::testing::SequentialIds;
use crate::usage::{AttemptOutcome, AttemptRecord, UsageOutcome, UsageRecord, UsageShare, UsageSource};

pub(in super::super) fn usd(pico: i64) -> Usd {
    Usd::from_pico(pico)
}

pub(in super::super) fn utc(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(in super::super) fn id(number: u64) -> DecisionId {
    DecisionId::from_uuid(SequentialIds::uuid(number))
}

/// Inserts workspaces 1 and 2 with keys 1 and 2, without limits. The clock is at noon on a Wednesday.
pub(in super::super) async fn insert_fixtures(stores: &Stores) {
    stores.clock.set(utc("2026-07-15T12:00:00Z"));
    for number in [1, 2] {
        add_workspace(stores, number).await;
        add_key(stores, &ApiKey { limit: None, ..inference_key(number, number) }).await;
    }
}

/// Returns the payer with key and workspace of that number, without guardrails.
pub(in super::super) fn payer(number: u64) -> Payer {
    Payer { workspace_id: workspace_id(number), api_key: key_id(number), guardrails: Vec::new() }
}

pub(in super::super) fn payer_under(number: u64, guardrails: &[u64]) -> Payer {
    Payer { guardrails: guardrails.iter().copied().map(guardrail_id).collect(), ..payer(number) }
}

/// Returns an attempt with this cost: a token costs a picodollar.
pub(in super::super) fn attempt(pico: i64) -> AttemptRecord {
    AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge".into(),
        part: 0,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::ZERO,
        latency: Duration::from_millis(3),
        input_tokens: u64::try_from(pico).unwrap(),
        output_tokens: 7,
        usage_source: UsageSource::UpperBound,
        prices: TokenPrices { prompt: "0.000000000001".parse().unwrap(), completion: Price::ZERO },
    }
}

pub(in super::super) fn hold_request(number: u64, payer: Payer, pico: i64) -> HoldRequest {
    HoldRequest {
        id: id(number),
        payer,
        amount: usd(pico),
        is_limited: true,
        request_id: RequestId::from_uuid(SequentialIds::uuid(number)),
        requested_model: "~Acme/Judge 'quoted'".to_owned(),
        client_address: None,
        attempts: Arc::new([attempt(pico)]),
        begun: 1,
    }
}

pub(in super::super) fn record(number: u64, payer: Payer, pico: i64, charged_at: DateTime<Utc>) -> UsageRecord {
    UsageRecord {
        id: id(number),
        workspace_id: payer.workspace_id,
        api_key: payer.api_key,
        request_id: RequestId::from_uuid(SequentialIds::uuid(number)),
        requested_model: "acme/judge".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: u64::try_from(pico).unwrap(),
        output_tokens: 7,
        usage_source: UsageSource::Reported,
        cost: usd(pico),
        prices: attempt(0).prices,
        share: UsageShare::WHOLE,
        attempts: Arc::new([attempt(pico)]),
        guardrails: payer.guardrails,
        findings: Vec::new(),
        charged_at,
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: charged_at,
        latency: Duration::from_millis(4),
    }
}

pub(in super::super) async fn reserve(
    stores: &Stores,
    number: u64,
    payer: &Payer,
    pico: i64,
) -> Result<Hold, LimitExceeded> {
    stores.ledger.reserve(hold_request(number, payer.clone(), pico)).await.expect("the ledger answers")
}

/// Charges an amount now.
pub(in super::super) async fn spend(stores: &Stores, number: u64, payer: &Payer, pico: i64) {
    use crate::system::Clock;
    settle(stores, record(number, payer.clone(), pico, stores.clock.now())).await;
}

pub(in super::super) async fn settle(stores: &Stores, record: UsageRecord) {
    let settled = stores.ledger.settle(&UsageCharge::new(record)).await;
    settled.expect("a record is charged");
}

pub(in super::super) async fn limit_statuses(stores: &Stores, payer: &Payer) -> Vec<LimitStatus> {
    stores.limits.limit_statuses(payer).await.expect("the ledger answers")
}

/// Returns the spent and reserved amounts of the payer's only limit.
pub(in super::super) async fn used(stores: &Stores, payer: &Payer) -> (i64, i64) {
    let limit_statuses = limit_statuses(stores, payer).await;
    let [limit] = &limit_statuses[..] else { panic!("there is one limit: {limit_statuses:?}") };
    (limit.spent.pico(), limit.reserved.pico())
}

pub(in super::super) async fn limit_key(stores: &Stores, number: u64, limit: Option<(i64, Option<ResetInterval>)>) {
    let before =
        crate::api_key::ApiKeyRepository::find(&*stores.api_keys, &key_id(number).into()).await.unwrap().unwrap();
    let limit = limit.map(|(pico, reset)| SpendLimit { amount: usd(pico), reset });
    let after = ApiKey { limit, ..before.clone() };
    let updated = stores.api_keys.update(&before, &after, LastKeyRule::Waived, &audit()).await.unwrap();
    assert_eq!(updated, KeyUpdate::Updated);
}

pub(in super::super) async fn audited(stores: &Stores) -> LedgerAudit {
    stores.maintenance.audit().await.expect("the ledger is audited")
}

pub(in super::super) async fn adds_up(stores: &Stores, case: &str) {
    assert_eq!(audited(stores).await.discrepancies, [], "after {case}");
}

use std::time::Duration;

use chrono::DateTime;
use rstest::rstest;

use super::*;
use crate::api_key::{InferenceKey, ManagementKey};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::budget::{Ledger, UsageCharge};
use crate::error::{ErrorKind, StoreError};
use crate::ids::{RequestId, WorkspaceId};
use crate::model::{AliasTarget, Model, Pricing};
use crate::money::{Price, Usd};
use crate::pricing::TokenPrices;
use crate::routing::{Endpoint, Wire};
use crate::testing::{FixedClock, ManualTimer, MemoryCatalogue, MemoryStore, SequentialIds};
use crate::usage::{
    AttemptOutcome, AttemptRecord, MockUsageRepository, UsageOutcome, UsageRepository, UsageShare, UsageSource,
};

fn id() -> DecisionId {
    DecisionId::from_uuid(SequentialIds::uuid(1))
}

fn workspace(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

fn attempt(provider: &str, model: &str) -> AttemptRecord {
    AttemptRecord {
        provider: provider.into(),
        model: model.parse().unwrap(),
        upstream_model: "m".into(),
        part: 0,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::ZERO,
        latency: Duration::from_millis(5),
        input_tokens: 429,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        prices: TokenPrices { prompt: "0.0000000208333333333333".parse().unwrap(), completion: Price::ZERO },
    }
}

fn record() -> UsageRecord {
    UsageRecord {
        id: id(),
        workspace_id: workspace(1),
        api_key: SequentialIds::key(1),
        request_id: RequestId::from_uuid(SequentialIds::uuid(2)),
        requested_model: "acme/judge-1".to_owned(),
        model: "acme/judge-1".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 429,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(8_937_500),
        prices: TokenPrices { prompt: Price::ZERO, completion: Price::ZERO },
        share: UsageShare::WHOLE,
        attempts: vec![attempt("acme", "acme/judge-1")].into(),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: DateTime::UNIX_EPOCH,
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: DateTime::from_timestamp(1_790_000_000, 0).unwrap(),
        latency: Duration::from_millis(7),
    }
}

fn endpoints() -> Arc<EndpointDirectory> {
    let endpoint = |provider: &str, name: &str| Endpoint {
        provider_name: name.to_owned(),
        ..Endpoint::new("acme/judge-1".parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
    };
    Arc::new(EndpointDirectory::new(vec![endpoint("acme", "Acme AI"), endpoint("other", "Other & Co")]))
}

fn catalogue() -> MemoryCatalogue {
    let row = |id: &str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
    let target = AliasTarget { name: "Judge 2".to_owned(), slug: "acme/judge-2".parse().unwrap() };
    let alias = Model { alias_target: Some(target), ..row("~acme/judge-latest") };
    MemoryCatalogue::new(vec![row("acme/judge-1"), row("acme/judge-2"), alias])
}

fn getting(usage: Arc<dyn UsageRepository>) -> GetGeneration {
    let clock = Arc::new(FixedClock::default());
    let records =
        FindRecord::new(usage, MemoryStore::new().limits(), clock, Arc::new(ManualTimer::new(FixedClock::default())));
    GetGeneration::new(records, GenerationNames::new(Arc::new(catalogue()), endpoints()))
}

fn inference(number: u64) -> Principal {
    Principal::Inference(InferenceKey::for_tests(SequentialIds::key(number), workspace(1)))
}

fn management() -> Principal {
    Principal::Management(ManagementKey::for_tests(SequentialIds::key(8)))
}

#[tokio::test]
async fn management_key_reads_records_of_its_workspaces_only() {
    let store = MemoryStore::new();
    let charge = UsageCharge::new(record());
    store.ledger().settle(&charge).await.unwrap();
    let own = charge.record.workspace_id;
    let read = async |workspaces: Option<Vec<WorkspaceId>>| {
        let scope = ManagementScope::try_new(ManagementAccess::Read, workspaces).unwrap();
        let caller = Principal::Management(ManagementKey::for_tests(SequentialIds::key(8)).with_scope(scope));
        getting(store.usage()).execute(&caller, &id()).await.map(drop).map_err(|error| error.kind())
    };
    assert_eq!(read(None).await, Ok(()));
    assert_eq!(read(Some(vec![workspace(77), own])).await, Ok(()));
    assert_eq!(read(Some(vec![workspace(77)])).await, Err(ErrorKind::NotFound));
}

async fn read(record: UsageRecord) -> Generation {
    let store = MemoryStore::new();
    store.ledger().settle(&UsageCharge::new(record)).await.unwrap();
    getting(store.usage()).execute(&management(), &id()).await.unwrap()
}

#[tokio::test]
async fn execute_finds_record_for_its_key_and_management_keys() {
    let store = MemoryStore::new();
    store.ledger().settle(&UsageCharge::new(record())).await.unwrap();
    let get = getting(store.usage());
    for caller in [inference(1), management()] {
        assert_eq!(get.execute(&caller, &id()).await.unwrap().record, record());
    }
    let unknown = DecisionId::from_uuid(SequentialIds::uuid(3));
    for (caller, id) in [(inference(2), id()), (inference(1), unknown.clone()), (management(), unknown)] {
        let error = get.execute(&caller, &id).await.unwrap_err();
        assert!(matches!(error, GetGenerationError::NotFound), "{error:?}");
    }
}

#[tokio::test]
async fn execute_reports_unavailable_store_not_missing_record() {
    let mut usage = MockUsageRepository::new();
    usage.expect_find().returning(|_| Err(StoreError::unavailable("away")));
    let error = getting(Arc::new(usage)).execute(&inference(1), &id()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn execute_returns_configured_provider_names() {
    let attempts = vec![attempt("gone", "acme/judge-1"), attempt("other", "acme/judge-1")];
    let generation =
        read(UsageRecord { provider: "acme,gone".to_owned(), attempts: attempts.into(), ..record() }).await;
    assert_eq!(generation.provider_name_of_all(), "Acme AI, gone");
    assert_eq!(generation.provider_name("other"), "Other & Co");
    assert_eq!(generation.provider_name("gone"), "gone");
}

#[rstest]
#[case::its_own_id("acme/judge-1", None)]
#[case::another_case("Acme/Judge-1", None)]
#[case::a_way_of_routing("acme/judge-1:nitro", None)]
#[case::an_alias_that_moved_on("~acme/judge-latest", Some("acme/judge-1"))]
#[case::a_bare_name("judge-1", Some("acme/judge-1"))]
#[case::a_name_that_nobody_knows_now("acme/judge-0", Some("acme/judge-1"))]
#[case::a_model_that_only_its_fallback_was_tried_for("acme/judge-2", None)]
#[tokio::test]
async fn alias_resolved_is_set_when_name_differs_from_id(#[case] requested: &str, #[case] expected: Option<&str>) {
    let generation = read(UsageRecord { requested_model: requested.to_owned(), ..record() }).await;
    assert_eq!(generation.alias_resolved.as_ref().map(ModelId::as_str), expected);
}

#[rstest]
#[case::the_fallback_answered("acme/judge-2", None)]
#[case::an_alias_with_a_fallback("~acme/judge-latest:floor", Some("acme/judge-2"))]
#[case::a_bare_alias_with_a_fallback("judge-latest", Some("acme/judge-2"))]
#[case::nobody_knows_which("acme/judge-0", None)]
#[tokio::test]
async fn alias_resolved_uses_catalogue_with_fallback_models(#[case] requested: &str, #[case] expected: Option<&str>) {
    let attempts = vec![attempt("acme", "acme/judge-2"), attempt("acme", "acme/judge-1")];
    let generation =
        read(UsageRecord { requested_model: requested.to_owned(), attempts: attempts.into(), ..record() }).await;
    assert_eq!(generation.alias_resolved.as_ref().map(ModelId::as_str), expected);
}

#[test]
fn attempt_has_cost_and_time_span() {
    assert_eq!(attempt("acme", "acme/judge-1").cost().unwrap().to_string(), "0.0000089375");
    let at = |began: u64, latency: u64| AttemptRecord {
        began: Duration::from_millis(began),
        latency: Duration::from_millis(latency),
        ..attempt("acme", "acme/judge-1")
    };
    let record = UsageRecord { attempts: vec![at(20, 50), at(10, 5), at(30, 10)].into(), ..record() };
    assert_eq!(record.time_at_providers(), Some(Duration::from_millis(60)));
    assert_eq!(UsageRecord { attempts: std::sync::Arc::default(), ..record }.time_at_providers(), None);
}

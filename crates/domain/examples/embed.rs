//! Embeds the domain in another program: this file implements every port. It answers one Decisions request and looks up
//! one model. Run it with `cargo run -p domain --example embed`.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::api_key::{Authenticate, GrantScope, KeyGrant, KeyGrants};
use domain::budget::{Hold, HoldRequest, Ledger, LimitExceeded, UsageCharge};
use domain::decision::{
    DecisionDraft, DecisionProvider, DecisionSettings, FilterPorts, NeverDisconnects, NoBroadcast, NoMetrics,
    ProviderAnswer, ProviderCall, RoutingPorts, SubmitDecision, SubmitDecisionPorts, UsagePorts,
};
use domain::error::StoreError;
use domain::guardrail::NoGuardrails;
use domain::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, PresetId, ProcessId, RequestId, WorkspaceId,
};
use domain::json::Json;
use domain::model::{Catalogue, CatalogueSnapshot, Model, Pricing};
use domain::money::Usd;
use domain::pricing::ReportedUsage;
use domain::rate::RateLimits;
use domain::routing::{
    AttemptFailure, AttemptFailureKind, Endpoint, EndpointDirectory, HealthBoard, HealthPolicy, Wire,
};
use domain::secret::{ApiKeyHash, ApiKeySecret};
use domain::system::{Clock, IdGenerator, InlineExecutor, Randomness, TimeSource, Timer};
use domain::usage::{AttemptRecord, UsageFilter, UsageRecord, UsageRepository, UsageSum, UsageSumQuery};
use uuid::Uuid;

/// The machine's time.
struct MachineClock(Instant);

#[expect(clippy::disallowed_methods, reason = "this program's clock")]
impl Clock for MachineClock {
    fn now(&self) -> DateTime<Utc> {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Sleeps with the runtime.
struct RuntimeTimer;

#[async_trait]
impl Timer for RuntimeTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Draws in steps of the golden ratio: even enough to balance a few endpoints.
#[derive(Default)]
struct EvenDraws(AtomicU64);

impl Randomness for EvenDraws {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

/// Sequential ids; a program that runs repeatedly needs unique ones.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl CountedIds {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

impl IdGenerator for CountedIds {
    fn workspace_id(&self) -> WorkspaceId {
        WorkspaceId::from_uuid(self.next())
    }

    fn api_key_id(&self) -> ApiKeyId {
        ApiKeyId::from_uuid(self.next())
    }

    fn guardrail_id(&self) -> GuardrailId {
        GuardrailId::from_uuid(self.next())
    }

    fn document_id(&self) -> DocumentId {
        DocumentId::from_uuid(self.next())
    }

    fn decision_id(&self, _: DateTime<Utc>) -> DecisionId {
        DecisionId::from_uuid(self.next())
    }

    fn request_id(&self, _: DateTime<Utc>) -> RequestId {
        RequestId::from_uuid(self.next())
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::from_uuid(self.next())
    }

    fn preset_id(&self) -> PresetId {
        PresetId::from_uuid(self.next())
    }

    fn destination_id(&self) -> DestinationId {
        DestinationId::from_uuid(self.next())
    }

    fn outbox_id(&self) -> OutboxId {
        OutboxId::from_uuid(self.next())
    }
}

/// A single key, known at the start.
struct OneKey(Arc<KeyGrant>);

#[async_trait]
impl KeyGrants for OneKey {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        Ok((self.0.hash == *hash).then(|| Arc::clone(&self.0)))
    }
}

/// A catalogue that never changes.
struct FixedCatalogue(Arc<CatalogueSnapshot>);

impl Catalogue for FixedCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        Arc::clone(&self.0)
    }
}

/// A "model" that answers yes to every text about money.
struct MoneyJudge;

#[async_trait]
impl DecisionProvider for MoneyJudge {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let state = call.provider_input.state.as_ref().map_or("", Json::text);
        let yes = if state.contains("money") { "0.97" } else { "0.04" };
        let questions = call.provider_input.questions.typed.as_deref().into_iter().flatten();
        let answers: Vec<String> =
            questions.map(|question| format!(r#""{}":{{"type":"noul","noul":{yes}}}"#, question.name)).collect();
        let answers = Json::parse(&format!("{{{}}}", answers.join(",")))
            .map_err(|_| AttemptFailure::new(AttemptFailureKind::InvalidResponse, "the answers are no JSON"))?;
        let usage = Some(ReportedUsage { input_tokens: 42, output_tokens: 0 });
        Ok(ProviderAnswer { answers, usage, sent_bytes: 0 })
    }
}

/// Usage records in memory, lost at the end of the program.
#[derive(Default)]
struct UsageList(Mutex<Vec<UsageRecord>>);

impl UsageList {
    fn records(&self) -> std::sync::MutexGuard<'_, Vec<UsageRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No limits: every hold is granted and none is stored.
#[async_trait]
impl Ledger for UsageList {
    async fn reserve(&self, claim: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        let HoldRequest { id, payer, amount, .. } = claim;
        Ok(Ok(Hold { id, at: DateTime::UNIX_EPOCH, payer, amount }))
    }

    async fn increase(
        &self,
        _: &DecisionId,
        _: Usd,
        _: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        Ok(Ok(()))
    }

    async fn settle(&self, settlement: &UsageCharge) -> Result<(), StoreError> {
        let mut records = self.records();
        if records.iter().all(|kept| kept.id != settlement.record.id) {
            records.push(settlement.record.clone());
        }
        Ok(())
    }

    async fn release(&self, _: &DecisionId) -> Result<(), StoreError> {
        Ok(())
    }
}

/// No workspace has a limit on its records.
#[async_trait]
impl UsageRepository for UsageList {
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        Ok(self.records().iter().find(|record| record.id == *id).cloned())
    }

    async fn list(&self, _: &UsageFilter, _: u64) -> Result<Vec<UsageRecord>, StoreError> {
        Ok(self.records().clone())
    }

    async fn count_read(&self, _: &UsageFilter, limit: u64) -> Result<u64, StoreError> {
        Ok(limit.min(self.records().len() as u64))
    }

    async fn sum(&self, _: &UsageSumQuery, _: u64) -> Result<Vec<UsageSum>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_use(&self, _: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError> {
        Ok(HashMap::new())
    }

    async fn recorded_bytes(&self, _: WorkspaceId) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "this program's clock")]
    let clock: Arc<dyn Clock> = Arc::new(MachineClock(Instant::now()));
    let ids = Arc::new(CountedIds::default());
    let usage = Arc::new(UsageList::default());
    let pricing = Pricing::per_token("0.000000042".parse()?, "0".parse()?);
    let model = Model::minimal("acme/judge".parse()?, pricing);
    let endpoint = Endpoint {
        provider_name: "Acme".to_owned(),
        attempt_timeout: Duration::from_secs(5),
        prompt_overhead_tokens: 0,
        ..Endpoint::new(model.id.clone(), "acme".parse()?, Wire::SystemOne, "judge")
    };
    let endpoints = Arc::new(EndpointDirectory::new(vec![endpoint]));
    let catalogue = Arc::new(FixedCatalogue(Arc::new(CatalogueSnapshot::build(vec![model]))));

    let secret = ApiKeySecret::from_random([7; 32]);
    let scope = GrantScope::Inference {
        workspace_id: ids.workspace_id(),
        workspace_suspended: false,
        owner_id: None,
        guardrail_id: None,
        workspace_guardrail_id: None,
        limited: false,
        rates: RateLimits::default(),
        workspace_rates: RateLimits::default(),
    };
    let id = ids.api_key_id();
    let grant = KeyGrant { id, hash: secret.hash(), disabled: false, expires_at: None, scope };
    let authenticate = Authenticate::new(Arc::new(OneKey(Arc::new(grant))), Arc::clone(&clock));
    let principal = authenticate.execute(secret.expose()).await?;

    let found = catalogue.snapshot().resolve("Acme/Judge:floor").ok_or("the model resolves")?;
    println!("Acme/Judge:floor is {} at {} USD per input token", found.model.id, found.model.pricing.prompt);

    let request = DecisionDraft {
        model: Some(Json::parse(r#""acme/judge""#)?),
        questions: Some(Json::parse(r#"{"refund":{"type":"noul","instructions":"Is a refund asked for?"}}"#)?),
        state: Some(Json::parse(r#""I want my money back.""#)?),
        ..DecisionDraft::default()
    }
    .check()?;
    let health = Arc::new(HealthBoard::new(endpoints.all().len(), HealthPolicy::default()));
    let ports = SubmitDecisionPorts {
        provider: Arc::new(MoneyJudge),
        routing: RoutingPorts { catalogue, endpoints, health, random: Arc::new(EvenDraws::default()) },
        guardrails: FilterPorts {
            policies: Arc::new(NoGuardrails),
            // It serves one request; a service needs threads for large requests.
            workers: Arc::new(InlineExecutor),
        },
        usage: UsagePorts {
            ledger: Arc::clone(&usage) as Arc<dyn Ledger>,
            records: Arc::clone(&usage) as Arc<dyn UsageRepository>,
            ids: Arc::clone(&ids) as Arc<dyn IdGenerator>,
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
        },
        time: TimeSource { clock: Arc::clone(&clock), timer: Arc::new(RuntimeTimer) },
    };
    let submit = SubmitDecision::new(ports, DecisionSettings::new(Duration::from_secs(30)));
    let (key, origin) = (principal.inference()?, ids.request_id(clock.now()).into());
    let decision = submit.execute(key, origin, request, Arc::new(NeverDisconnects)).await?;
    println!("{} answered {} for {} USD", decision.provider, decision.answers.json().text(), decision.cost);
    let kept = usage.records().pop().ok_or("its usage is on record")?;
    println!("{} is on record with {} input tokens", kept.id, kept.input_tokens);
    Ok(())
}

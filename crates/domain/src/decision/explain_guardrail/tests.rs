use std::sync::Arc;

use super::*;
use crate::api_key::{ApiKeyName, LastKeyRule, ManagementKey};
use crate::audit::{AuditDraft, AuditLog};
use crate::authority::{Authority, ManagementAccess, ManagementScope};
use crate::budget::{BudgetScope, HoldRequest, Ledger, MockLedger, SpendLimit};
use crate::change::Change;
use crate::decision::{DecisionDraft, DecisionSettings, MockDecisionProvider, UnpricedModels};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::fixtures::{actor, by, endpoints, guardrail_id, ports, read, rows, store, workspace_id};
use crate::guardrail::{Forbidden, PlacedGuardrail};
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::model::{Model, Pricing};
use crate::money::{Price, Usd};
use crate::preset::fixtures::preset;
use crate::preset::{Preset, PresetConfig, PresetRepository, PresetSave, PresetVersion};
use crate::pricing::TokenPrices;
use crate::rate::RateLimits;
use crate::routing::{DataPolicy, Endpoint, HealthBoard, HealthPolicy};
use crate::system::{InlineExecutor, MockTimer, MockWorkers, TaskError, WorkOwner, Workers};
use crate::testing::{FixedClock, FixedSecrets, MemoryStore, SequentialIds, decision_ports};
use crate::workspace::WorkspaceRepository;

/// The outbound bytes of every attempt.
const OUTBOUND: u64 = 1_000;

struct ExplainFixture {
    store: MemoryStore,
    endpoints: Vec<Endpoint>,
    settings: DecisionSettings,
    health: Arc<HealthBoard>,
    workers: Arc<dyn Workers>,
    rows: Vec<Model>,
}

impl ExplainFixture {
    /// A token of `acme/judge` costs 0.000001 USD at the first provider and twice as much at the second.
    async fn new() -> Self {
        let priced = |endpoint: Endpoint, prompt: &str| {
            let prices = TokenPrices { prompt: prompt.parse().unwrap(), completion: Price::ZERO };
            Endpoint { prices: Some(prices), prompt_overhead_tokens: 24, ..endpoint }
        };
        let mut endpoints = endpoints();
        endpoints[0] = priced(endpoints[0].clone(), "0.000001");
        endpoints[1] = priced(endpoints[1].clone(), "0.000002");
        let settings = DecisionSettings::new(std::time::Duration::from_secs(5));
        let health = Arc::new(HealthBoard::new(endpoints.len(), HealthPolicy::default()));
        let mut rows = rows();
        // The oracle has no price.
        rows[3].pricing = Pricing::unknown();
        Self { store: store().await, endpoints, settings, health, workers: Arc::new(InlineExecutor), rows }
    }

    async fn guardrail(&self, record: &str) -> PlacedGuardrail {
        ports(&self.store).create(&Change::plain(&by()), &read(record).unwrap()).await.unwrap()
    }

    async fn key(&self, number: u64, change: impl FnOnce(ApiKey) -> ApiKey) -> String {
        let secret = FixedSecrets::secret(number);
        let key = change(ApiKey {
            id: SequentialIds::key(number),
            hash: secret.hash(),
            label: secret.label(),
            name: ApiKeyName::try_new("k").unwrap(),
            scope: ApiKeyScope::Inference(workspace_id(900)),
            disabled: false,
            expires_at: None,
            limit: None,
            rates: RateLimits::default(),
            guardrail_id: None,
            users: crate::api_key::KeyUsers::default(),
            previous_secret: None,
            created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            updated_at: None,
        });
        assert!(self.store.api_keys().insert(&key, &audit_draft()).await.unwrap().is_inserted());
        key.hash.to_string()
    }

    async fn try_explain(
        &self,
        id: &str,
        key: Option<&str>,
        request: &DecisionRequest,
    ) -> Result<Explanation, ExplainGuardrailError> {
        let explain = ExplainGuardrail::new(self.ports(self.store.guardrails()), &self.decisions());
        explain.execute(explain.resolve(&Authority::system(), id, key, request.clone()).await?).await
    }

    fn ports(&self, guardrails: Arc<dyn GuardrailRepository>) -> ExplainGuardrailPorts {
        ExplainGuardrailPorts {
            guardrails,
            workspaces: self.store.workspaces(),
            api_keys: self.store.api_keys(),
            presets: self.store.presets(),
            limits: self.store.limits(),
            clock: Arc::new(FixedClock::default()),
        }
    }

    /// A use case whose provider is never called.
    fn decisions(&self) -> SubmitDecision {
        let mut provider = MockDecisionProvider::new();
        provider.expect_outbound_bytes().return_const(OUTBOUND);
        let mut ledger = MockLedger::new();
        ledger.expect_reserve().never();
        let mut ports = decision_ports(&self.store, self.rows.clone(), self.endpoints.clone());
        ports.provider = Arc::new(provider);
        ports.routing.health = Arc::clone(&self.health);
        ports.guardrails.workers = Arc::clone(&self.workers);
        ports.usage.ledger = Arc::new(ledger);
        ports.time.timer = Arc::new(MockTimer::new());
        SubmitDecision::new(ports, self.settings.clone())
    }

    async fn explain(&self, of: &PlacedGuardrail, key: Option<&str>, request: &DecisionRequest) -> Explanation {
        let before = self.store.audit_log().newest(1).await.unwrap();
        let explanation = self.try_explain(&of.guardrail.id.to_string(), key, request).await.unwrap();
        assert_eq!(explanation.allowed, explanation.decided_by.is_none());
        assert_eq!(self.store.audit_log().newest(1).await.unwrap(), before, "nothing was changed");
        explanation
    }
}

fn audit_draft() -> AuditDraft {
    AuditDraft::done(&actor(), "test", "s", Json::object([]))
}

/// A request with this state and provider preferences.
fn asking(model: &str, state: &str, provider: Option<&str>) -> DecisionRequest {
    let json = |text: &str| Some(Json::parse(text).unwrap());
    let draft = DecisionDraft {
        model: Some(Json::string(model)),
        questions: json(r#"{"tone":{"type":"noul","instructions":"is it kind?"}}"#),
        state: json(state),
        provider: provider.and_then(json),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

fn judge() -> DecisionRequest {
    asking("acme/judge", r#""a text""#, None)
}

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn verdicts(explanation: &Explanation) -> Vec<(&str, &str)> {
    explanation
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.endpoint.provider.as_str(), endpoint.verdict.as_str()))
        .collect()
}

fn rule(explanation: &Explanation) -> Option<(&'static str, Option<GuardrailId>)> {
    explanation.decided_by.as_ref().map(|decider| (decider.rule(), decider.guardrail_id()))
}

#[tokio::test]
async fn explain_allows_request_without_rules() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g"}"#).await;
    let request = judge();
    let explanation = fixture.explain(&guardrail, None, &request).await;
    assert!(explanation.allowed);
    assert_eq!(explanation.guardrails, [guardrail.guardrail.id]);
    assert_eq!(explanation.model.as_ref().unwrap().as_str(), "acme/judge");
    assert_eq!(verdicts(&explanation), [("typesafe", "allowed"), ("mirror", "allowed")]);
    assert!(Arc::ptr_eq(explanation.provider_input.as_ref().unwrap(), &request.provider_input));
    assert_eq!(explanation.bound, Some(usd("0.001024")), "of the cheaper one, which is asked first, overhead included");
    assert_eq!((explanation.limits, explanation.bound_fits), (Vec::new(), None), "no key, no limits");
}

#[tokio::test]
async fn explain_resolves_presets_of_the_workspace() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g","ignored_models":["oracle"]}"#).await;
    let stages = r#""stages":[{"model":"acme/judge","accept":{"*":0.9}},{"model":"oracle"}]"#;
    let config = format!(r#"{{{stages},"questions":{{"q":{{"type":"noul","instructions":"?"}}}}}}"#);
    let config = PresetConfig::read(&Json::parse(&config).unwrap()).unwrap();
    let preset = Preset { workspace_id: workspace_id(900), ..preset(7) };
    let version = PresetVersion { number: 1, config, created_by: "system".to_owned(), created_at: preset.created_at };
    let saved = fixture.store.presets().save(None, &preset, Some(&version), &audit_draft()).await.unwrap();
    assert_eq!(saved, PresetSave::Saved);

    let named = |name: &str| DecisionRequest { model: format!("@preset/{name}"), ..judge() };
    let explanation = fixture.explain(&guardrail, None, &named("triage")).await;
    let verdicts: Vec<_> =
        explanation.endpoints.iter().map(|of| (of.model.as_str(), of.verdict == Verdict::Allowed)).collect();
    assert!(verdicts.contains(&("acme/judge", true)) && verdicts.contains(&("rival/oracle", false)), "{verdicts:?}");
    let sent = explanation.provider_input.unwrap();
    assert_eq!(sent.questions.json.text(), version.config.questions.json.text());
    for unknown in ["other", "a\0b"] {
        let error = fixture.try_explain("g", None, &named(unknown)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

#[tokio::test]
async fn explain_names_rule_that_forbids_every_endpoint() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g","ignored_providers":["mirror"]}"#).await;
    let id = guardrail.guardrail.id;
    let explanation = fixture.explain(&guardrail, None, &judge()).await;
    assert!(explanation.allowed, "one is left");
    let forbidden = Forbidden { guardrail_id: id, rule: "ignored_providers" };
    assert_eq!(explanation.endpoints[1].verdict, Verdict::Forbidden(forbidden));
    let other = fixture.guardrail(r#"{"name":"o","ignored_providers":["typesafe"]}"#).await;
    let explanation = fixture.explain(&other, None, &judge()).await;
    assert_eq!(explanation.bound, Some(usd("0.002048")), "of those that may be tried");

    let explanation = fixture.explain(&guardrail, None, &asking("oracle", "\"s\"", None)).await;
    assert_eq!(explanation.decided_by, Some(Decider::Rule(forbidden)));
    assert_eq!((explanation.bound, explanation.bound_fits), (None, None));
    assert!(explanation.decided_by.unwrap().to_string().contains("ignored_providers"));
}

#[tokio::test]
async fn explain_applies_default_guardrail_of_workspace_of_key() {
    let fixture = ExplainFixture::new().await;
    let default = fixture.guardrail(r#"{"name":"d","workspace_default":true,"allowed_models":["oracle"]}"#).await;
    let own = fixture.guardrail(r#"{"name":"g","ignored_models":["oracle"]}"#).await;
    let ids = [default.guardrail.id, own.guardrail.id];
    let explanation = fixture.explain(&own, None, &judge()).await;
    assert_eq!(explanation.guardrails, ids);
    assert_eq!(rule(&explanation), Some(("allowed_models", Some(ids[0]))));
    let explanation = fixture.explain(&own, None, &asking("oracle", "\"s\"", None)).await;
    assert_eq!(rule(&explanation), Some(("ignored_models", Some(ids[1]))));
    let explanation = fixture.explain(&default, None, &asking("oracle", "\"s\"", None)).await;
    assert_eq!((explanation.allowed, explanation.guardrails), (true, vec![ids[0]]), "the default itself counts once");

    // A key of another workspace uses the default guardrail of that one, which is none.
    let moved = |key: ApiKey| ApiKey { scope: ApiKeyScope::Inference(workspace_id(901)), ..key };
    let key = fixture.key(1, moved).await;
    let explanation = fixture.explain(&own, Some(&key), &judge()).await;
    assert_eq!((explanation.allowed, explanation.guardrails), (true, vec![ids[1]]));
}

#[tokio::test]
async fn explain_reports_findings_without_matched_text() {
    let fixture = ExplainFixture::new().await;
    let redacting = r#"{"name":"g","content_filter_builtins":[{"slug":"email","action":"redact"}]}"#;
    let guardrail = fixture.guardrail(redacting).await;
    let about = asking("acme/judge", r#"{"from":"ada@example.org"}"#, None);
    let explanation = fixture.explain(&guardrail, None, &about).await;
    assert!(explanation.allowed);
    assert_eq!(explanation.provider_input.unwrap().state.as_ref().unwrap().text(), r#"{"from":"[EMAIL]"}"#);
    assert_eq!((explanation.findings.len(), explanation.findings[0].label.as_str()), (1, "EMAIL"));

    let blocking = r#"{"name":"b","content_filters":[{"pattern":"ada@","action":"block","label":"ADA"}],
        "ignored_providers":["typesafe","mirror"]}"#;
    let guardrail = fixture.guardrail(blocking).await;
    let explanation = fixture.explain(&guardrail, None, &about).await;
    assert_eq!(
        rule(&explanation),
        Some(("content_filter", Some(guardrail.guardrail.id))),
        "before any endpoint is looked for"
    );
    assert_eq!((explanation.provider_input, explanation.findings.len(), explanation.bound), (None, 0, None));
    assert_eq!(explanation.decided_by.unwrap().to_string(), "Request blocked by content filter: [ADA]");
    assert_eq!(explanation.endpoints.len(), 2, "endpoints are still explained");
}

#[tokio::test]
async fn explain_scans_large_input_on_workers_and_fails_with_them() {
    let about = |bytes: usize| {
        let state = Json::string(&format!("ada@example.org {}", "x".repeat(bytes)));
        asking("acme/judge", state.text(), None)
    };
    for (end, kind) in
        [(Err(TaskError::Panicked), ErrorKind::Internal), (Err(TaskError::Stopped), ErrorKind::Unavailable)]
    {
        let mut workers = MockWorkers::new();
        workers.expect_run().withf(|owner, _| *owner == WorkOwner::System).times(1).returning(move |_, _| end);
        let fixture = ExplainFixture { workers: Arc::new(workers), ..ExplainFixture::new().await };
        let redacting = r#"{"name":"g","content_filter_builtins":[{"slug":"email","action":"redact"}]}"#;
        let guardrail = fixture.guardrail(redacting).await;
        let small = fixture.explain(&guardrail, None, &about(10_000)).await;
        assert_eq!((small.allowed, small.findings.len()), (true, 1), "small inputs are scanned without workers");
        let id = guardrail.guardrail.id.to_string();
        let error = fixture.try_explain(&id, None, &about(200_000)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
    }
    let fixture = ExplainFixture::new().await;
    let blocking = r#"{"name":"b","content_filter_builtins":[{"slug":"email","action":"block"}]}"#;
    let guardrail = fixture.guardrail(blocking).await;
    let explanation = fixture.explain(&guardrail, None, &about(200_000)).await;
    assert_eq!(explanation.decided_by.unwrap().to_string(), "Request blocked by content filter: [EMAIL]");
}

#[tokio::test]
async fn explain_distinguishes_routing_from_guardrail_rules() {
    let mut fixture = ExplainFixture::new().await;
    fixture.endpoints[1].data_policy = DataPolicy { zdr: true, collects: false };
    let guardrail = fixture.guardrail(r#"{"name":"g"}"#).await;
    let only = asking("acme/judge", "\"s\"", Some(r#"{"only":["mirror"],"zdr":true}"#));
    let explanation = fixture.explain(&guardrail, None, &only).await;
    assert_eq!(verdicts(&explanation), [("typesafe", "excluded_by_preferences"), ("mirror", "allowed")]);
    let nobody = asking("acme/judge", "\"s\"", Some(r#"{"only":["nobody"]}"#));
    assert_eq!(rule(&fixture.explain(&guardrail, None, &nobody).await), Some(("preferences", None)));

    let strict = fixture.guardrail(r#"{"name":"s","ignored_providers":["mirror"]}"#).await;
    let explanation = fixture.explain(&strict, None, &only).await;
    assert_eq!(verdicts(&explanation), [("typesafe", "excluded_by_preferences"), ("mirror", "forbidden")]);
    assert_eq!(rule(&explanation), Some(("preferences", None)), "what the guardrail leaves the caller does not want");

    fixture.endpoints[0].own_limits.max_body_bytes = Some(1);
    fixture.endpoints[1].own_limits.max_body_bytes = Some(1);
    let explanation = fixture.explain(&guardrail, None, &judge()).await;
    assert_eq!(verdicts(&explanation), [("typesafe", "unsupported"), ("mirror", "unsupported")]);
    assert_eq!(rule(&explanation), Some(("capability", None)));
    fixture.endpoints.clear();
    assert_eq!(rule(&fixture.explain(&guardrail, None, &judge()).await), Some(("no_endpoint", None)));
}

#[tokio::test]
async fn explain_includes_fallback_models() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g","ignored_models":["acme/judge"]}"#).await;
    let mut request = judge();
    request.fallback_models = vec!["acme/judge-next".to_owned(), "sandbox/decider".to_owned()];
    let explanation = fixture.explain(&guardrail, None, &request).await;
    let models: Vec<&str> = explanation.endpoints.iter().map(|endpoint| endpoint.model.as_str()).collect();
    assert_eq!(models, ["acme/judge", "acme/judge", "sandbox/decider"], "one that is named twice counts once");
    assert!(explanation.allowed);
    assert_eq!(verdicts(&explanation)[2], ("sandbox", "allowed"));
}

#[tokio::test]
async fn explain_returns_status_of_key_limits() {
    let fixture = ExplainFixture::new().await;
    let budget = r#"{"name":"g","limit_usd":0.005,"reset_interval":null}"#;
    let guardrail = fixture.guardrail(budget).await;
    let limit = SpendLimit { amount: usd("0.004"), reset: None };
    let key = fixture.key(1, |key| ApiKey { limit: Some(limit), ..key }).await;
    let explanation = fixture.explain(&guardrail, Some(&key), &judge()).await;
    let statuses: Vec<_> = explanation.limits.iter().map(|found| (found.scope, found.limit, found.spent)).collect();
    let nothing = Usd::ZERO;
    assert_eq!(statuses, [(BudgetScope::Key, usd("0.004"), nothing), (BudgetScope::Guardrail, usd("0.005"), nothing)]);
    assert_eq!((explanation.allowed, explanation.bound_fits), (true, Some(true)));

    let claim = HoldRequest {
        id: crate::ids::DecisionId::from_uuid(uuid::Uuid::from_u128(5)),
        payer: Payer { workspace_id: workspace_id(900), api_key: SequentialIds::key(1), guardrails: Vec::new() },
        amount: usd("0.003"),
        is_limited: true,
        request_id: crate::ids::RequestId::from_uuid(uuid::Uuid::from_u128(6)),
        requested_model: "m".to_owned(),
        client_address: None,
        attempts: Arc::default(),
        begun: 0,
    };
    fixture.store.ledger().reserve(claim).await.unwrap().unwrap();
    let explanation = fixture.explain(&guardrail, Some(&SequentialIds::key(1).to_string()), &judge()).await;
    assert_eq!(
        (explanation.allowed, explanation.bound_fits, rule(&explanation)),
        (false, Some(false), Some(("budget", None)))
    );
    assert_eq!(explanation.limits[0].reserved, usd("0.003"), "nothing more was reserved for the asking");

    let hash = key.parse().unwrap();
    let before = fixture.store.api_keys().find(&hash).await.unwrap().unwrap();
    let lowered = ApiKey { limit: Some(SpendLimit { amount: usd("0.001"), reset: None }), ..before.clone() };
    fixture.store.api_keys().update(&before, &lowered, LastKeyRule::Waived, &audit_draft()).await.unwrap();
    let explanation = fixture.explain(&guardrail, Some(&key), &asking("sandbox/decider", "\"s\"", None)).await;
    assert_eq!(
        (explanation.allowed, explanation.bound_fits),
        (true, Some(true)),
        "what is free is not kept out by any limit"
    );

    let tight = fixture.guardrail(r#"{"name":"t","limit_usd":0.001,"reset_interval":"daily"}"#).await;
    let free = fixture.key(2, |key| key).await;
    let explanation = fixture.explain(&tight, Some(&free), &judge()).await;
    assert_eq!(rule(&explanation), Some(("budget", Some(tight.guardrail.id))));
}

#[tokio::test]
async fn explain_uses_cheaper_endpoint_when_preferred_exceeds_limit() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g"}"#).await;
    let ordered = asking("acme/judge", r#""a text""#, Some(r#"{"order":["mirror"]}"#));
    let dear = fixture.explain(&guardrail, None, &ordered).await.bound.unwrap();
    let cheap = Usd::from_pico(dear.pico() / 2);
    let limited = |amount| move |key| ApiKey { limit: Some(SpendLimit { amount, reset: None }), ..key };
    for (number, limit, expected) in
        [(1, dear, (true, dear)), (2, cheap, (true, cheap)), (3, Usd::from_pico(cheap.pico() - 1), (false, dear))]
    {
        let key = fixture.key(number, limited(limit)).await;
        let explained = fixture.explain(&guardrail, Some(&key), &ordered).await;
        assert_eq!((explained.allowed, explained.bound), (expected.0, Some(expected.1)), "{limit}");
        assert_eq!(explained.bound_fits, Some(expected.0));
    }
}

#[tokio::test]
async fn explain_rejects_unpriced_model_under_limit() {
    let mut fixture = ExplainFixture::new().await;
    let oracle = asking("oracle", "\"s\"", None);
    let (free, limited) = (
        fixture.guardrail(r#"{"name":"g"}"#).await,
        fixture.guardrail(r#"{"name":"l","limit_usd":1,"reset_interval":null}"#).await,
    );
    let explanation = fixture.explain(&free, None, &oracle).await;
    assert_eq!((explanation.allowed, explanation.bound), (true, Some(Usd::ZERO)));
    let explanation = fixture.explain(&limited, None, &oracle).await;
    assert_eq!((verdicts(&explanation), rule(&explanation)), (vec![("mirror", "unpriced")], Some(("unpriced", None))));
    fixture.settings.unpriced = UnpricedModels::Free;
    assert!(fixture.explain(&limited, None, &oracle).await.allowed);
    fixture.settings.unpriced = UnpricedModels::DefaultPrice("0.00001".parse().unwrap());
    let explanation = fixture.explain(&limited, None, &oracle).await;
    assert_eq!((explanation.allowed, explanation.bound), (true, Some(usd("0.01128"))), "by the price that stands in");
}

#[tokio::test]
async fn explain_rejects_unusable_key() {
    let fixture = ExplainFixture::new().await;
    let guardrail = fixture.guardrail(r#"{"name":"g"}"#).await;
    let disabled = fixture.key(1, |key| ApiKey { disabled: true, ..key }).await;
    let now = crate::system::Clock::now(&FixedClock::default());
    let expired = fixture.key(2, |key| ApiKey { expires_at: Some(now), ..key }).await;
    let sound = fixture.key(3, |key| ApiKey { expires_at: Some(now + chrono::TimeDelta::seconds(1)), ..key }).await;
    let of = async |key: &str| rule(&fixture.explain(&guardrail, Some(key), &judge()).await);
    assert_eq!(of(&disabled).await, Some(("key_disabled", None)));
    assert_eq!(of(&expired).await, Some(("key_expired", None)));
    assert_eq!(of(&sound).await, None);
    let before = fixture.store.workspaces().find(workspace_id(900)).await.unwrap().unwrap();
    let after = Workspace { suspended: true, ..before.clone() };
    fixture.store.workspaces().update(&before, &after, &audit_draft()).await.unwrap();
    assert_eq!(of(&sound).await, Some(("workspace_suspended", None)));
}

#[tokio::test]
async fn explain_reports_rejection_before_models_are_resolved() {
    let fixture = ExplainFixture::new().await;
    let blocking = r#"{"name":"b","content_filters":[{"pattern":"hush","action":"block"}]}"#;
    let blocking = fixture.guardrail(blocking).await;
    let open = fixture.guardrail(r#"{"name":"o"}"#).await;
    let disabled = fixture.key(1, |key| ApiKey { disabled: true, ..key }).await;
    let fallback = DecisionRequest { fallback_models: vec!["acme/jugde".to_owned()], ..judge() };
    let hushed = |request: DecisionRequest| DecisionRequest {
        provider_input: asking("acme/judge", r#""hush""#, None).provider_input,
        ..request
    };
    // An unknown model, one without Decisions, and an unknown fallback model.
    for request in [asking("acme/jugde", "\"s\"", None), asking("rival/writer", "\"s\"", None), fallback] {
        let explanation = fixture.explain(&blocking, None, &hushed(request.clone())).await;
        assert_eq!(rule(&explanation), Some(("content_filter", Some(blocking.guardrail.id))));
        assert_eq!(
            (explanation.model, explanation.endpoints.len(), explanation.bound, explanation.provider_input),
            (None, 0, None, None)
        );
        let explanation = fixture.explain(&open, Some(&disabled), &request).await;
        assert_eq!((rule(&explanation), explanation.model), (Some(("key_disabled", None)), None));
        assert!(explanation.provider_input.is_some());
        let both = fixture.explain(&blocking, Some(&disabled), &hushed(request.clone())).await;
        assert_eq!(rule(&both), Some(("key_disabled", None)), "the key is looked at first");
        let id = blocking.guardrail.id.to_string();
        assert!(fixture.try_explain(&id, None, &request).await.is_err(), "nothing refuses it before");
    }
}

#[tokio::test]
async fn explain_keeps_ban_of_removed_model() {
    let mut fixture = ExplainFixture::new().await;
    let banned = fixture.guardrail(r#"{"name":"g","ignored_models":["acme/judge"]}"#).await;
    for row in &mut fixture.rows[..2] {
        row.canonical_slug = "acme/judge-20270101".parse().unwrap();
    }
    let explanation = fixture.explain(&banned, None, &judge()).await;
    assert_eq!(rule(&explanation), Some(("ignored_models", Some(banned.guardrail.id))));
    assert_eq!(verdicts(&explanation), [("typesafe", "forbidden"), ("mirror", "forbidden")]);
}

#[tokio::test]
async fn explain_reports_unknown_guardrail_key_and_model() {
    let fixture = ExplainFixture::new().await;
    let id = fixture.guardrail(r#"{"name":"g"}"#).await.guardrail.id.to_string();
    let manager =
        fixture.key(1, |key| ApiKey { scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED), ..key }).await;
    let kind = async |id: &str, key: Option<&str>, model: &str| {
        fixture.try_explain(id, key, &asking(model, "\"s\"", None)).await.unwrap_err().kind()
    };
    for unknown in ["nonsense", "", "01990000-0000-7000-8000-00000000dead"] {
        assert_eq!(kind(unknown, None, "acme/judge").await, ErrorKind::NotFound);
    }
    for key in ["nonsense", &"a".repeat(64), &manager] {
        assert_eq!(kind(&id, Some(key), "acme/judge").await, ErrorKind::InvalidRequest, "{key}");
    }
    assert_eq!(kind(&id, None, "rival/writer").await, ErrorKind::InvalidRequest);
    let error = fixture.try_explain(&id, None, &asking("acme/jugde", "\"s\"", None)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(matches!(error, ExplainGuardrailError::UnknownModel { nearest } if nearest[0] == "acme/judge"));
    assert_ne!(id, guardrail_id(77).to_string());
}

#[tokio::test]
async fn explain_is_unavailable_when_store_fails() {
    let fixture = ExplainFixture::new().await;
    let mut guardrails = crate::guardrail::MockGuardrailRepository::new();
    guardrails.expect_find_named().returning(|_, _| Err(StoreError::unavailable("away")));
    let explain = ExplainGuardrail::new(fixture.ports(Arc::new(guardrails)), &fixture.decisions());
    let id = guardrail_id(1).to_string();
    let error = explain.resolve(&Authority::system(), &id, None, judge()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// A guardrail or a key of a workspace that the caller does not see is unknown to it.
#[tokio::test]
async fn explain_hides_guardrails_and_keys_of_other_workspaces() {
    let fixture = ExplainFixture::new().await;
    let id = fixture.guardrail(r#"{"name":"g"}"#).await.guardrail.id.to_string();
    let moved = |key: ApiKey| ApiKey { scope: ApiKeyScope::Inference(workspace_id(901)), ..key };
    let (own, foreign) = (fixture.key(1, |key| key).await, fixture.key(2, moved).await);
    let explain = ExplainGuardrail::new(fixture.ports(fixture.store.guardrails()), &fixture.decisions());
    let run = async |workspace: u64, key: &str| {
        let scope = ManagementScope::try_new(ManagementAccess::Read, Some(vec![workspace_id(workspace)])).unwrap();
        let by = ManagementKey::for_tests(SequentialIds::key(9)).with_scope(scope).authority(actor());
        explain.resolve(&by, &id, Some(key), judge()).await.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(run(900, &own).await, Ok(()));
    assert_eq!(run(900, &foreign).await, Err(ExplainGuardrailError::UnknownKey.to_string()));
    assert_eq!(run(901, &foreign).await, Err("guardrail not found".to_owned()));
}

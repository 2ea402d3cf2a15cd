//! Spending limits and guardrails, as a client sees them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::api_key::{ApiKey, ApiKeyRepository, LastKeyRule};
use domain::audit::{Actor, AuditDraft};
use domain::budget::{ResetInterval, SpendLimit};
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::error::StoreError;
use domain::guardrail::{
    BuiltinContentFilter, BuiltinFilter, Guardrail, GuardrailName, GuardrailPolicies, GuardrailRepository,
    GuardrailRules, MockGuardrailPolicies, PlacedGuardrail, Policy,
};
use domain::json::Json;
use domain::model::{Model, Pricing};
use domain::money::Usd;
use domain::pricing::ReportedUsage;
use domain::question::QuestionKind;
use domain::routing::AttemptFailure;
use domain::testing::add_credit;
use domain::testing::{FixedSecrets, MemoryCatalogue};
use domain::usage::FilterAction;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer, guardrail, now, workspace};

const BODY: &str = r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.5}}"#;

fn audit_draft() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]))
}

/// Starts a gateway whose caller has this weekly limit in picodollars.
async fn limited(limit: i64) -> Gateway {
    let setup = Setup::answering([answer(ANSWERS), answer(ANSWERS)]).await;
    let hash = FixedSecrets::secret(Caller::Inference as u64).hash();
    let before = setup.store.api_keys().find(&hash.into()).await.unwrap().unwrap();
    let limit = Some(SpendLimit { amount: Usd::from_pico(limit), reset: Some(ResetInterval::Weekly) });
    let after = ApiKey { limit, ..before.clone() };
    setup.store.api_keys().update(&before, &after, LastKeyRule::Waived, &audit_draft()).await.unwrap();
    setup.start()
}

/// Returns the metadata of an error without the request id.
fn metadata(reply: &Reply) -> Value {
    let mut metadata = reply.json()["error"]["metadata"].clone();
    metadata.as_object_mut().unwrap().remove("request_id");
    metadata
}

#[tokio::test]
async fn key_cannot_exceed_its_limit() {
    // 429 tokens cost 18,018,000 picodollars; the upper bound of the request is over one million more.
    let gateway = limited(19_000_000).await;
    assert_eq!(gateway.decide(BODY).await.status, 200);
    let refused = gateway.decide(BODY).await;
    let message = refused.expect_error(402);
    assert!(message.starts_with("Insufficient credits: of the key's weekly limit of 0.000019 USD"), "{message}");
    assert!(message.contains("tollgate key update"), "{message}");
    let text = String::from_utf8(refused.body.clone()).unwrap();
    assert!(text.contains(r#""limit_usd":0.000019,"#) && text.contains(r#""spent_usd":0.000018018"#), "{text}");
    let metadata = metadata(&refused);
    assert_eq!((&metadata["scope"], &metadata["reserved_usd"]), (&json!("key"), &json!(0)));
    assert_eq!(metadata["resets_at"], "2026-01-05T00:00:00Z", "on Monday");
    assert_eq!((metadata.get("guardrail_id"), refused.header("retry-after")), (None, None));
}

#[tokio::test]
async fn exhausted_credit_error_names_operator() {
    let setup = Setup::answering([answer(ANSWERS)]).await;
    add_credit(&*setup.store.workspaces(), workspace(1), Usd::from_pico(5), &audit_draft()).await.unwrap();
    let gateway = setup.start();
    let refused = gateway.decide(BODY).await;
    assert!(refused.expect_error(402).contains("tollgate workspace credit"));
    let text = String::from_utf8(refused.body.clone()).unwrap();
    assert!(text.contains(r#""limit_usd":0.000000000005,"#), "no digit passes through a float: {text}");
    let metadata = metadata(&refused);
    assert_eq!((&metadata["scope"], &metadata["resets_at"]), (&json!("workspace"), &Value::Null));
}

#[tokio::test]
async fn every_wire_reports_exceeded_limit() {
    let gateway = limited(1).await;
    for (path, body) in wires() {
        let reply = ask(&gateway, path, body).await;
        assert!(reply.expect_error_in_any_format(402).starts_with("Insufficient credits"), "{path}");
        let text = String::from_utf8(reply.body).unwrap();
        assert!(text.contains("limit_usd") && text.contains("0.000000000001"), "{path}: {text}");
    }
}

async fn ask(gateway: &Gateway, path: &str, body: &str) -> Reply {
    let bearer = Caller::Inference.bearer();
    let headers = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    let headers = [&headers[..], &[("x-tollgate-metadata", "enabled")]].concat();
    gateway.send("POST", path, &headers, body.as_bytes()).await
}

/// Returns the same questions on each wire, with email addresses in the content and the names.
fn wires() -> [(&'static str, &'static str); 4] {
    [
        (
            "/v1/systemone",
            r#"{"model":"acme/judge","state":{"from":"eve@example.com"},"questions":{
                "is eve@example.com angry":{"type":"noul","instructions":"?"},
                "who":{"type":"choice","criteria":{"adam@example.com":null,"other":null}}}}"#,
        ),
        (
            "/v1/decisions",
            r#"{"model":"acme/judge","input":"from eve@example.com","questions":[
                {"type":"predicate","name":"is eve@example.com angry","instructions":"?"},
                {"type":"choice","name":"who","instructions":"?","choices":[{"value":"adam@example.com"},{"value":"other"}]}]}"#,
        ),
        (
            "/v1beta/decisions",
            r#"{"model":"models/acme/judge","input":{"type":"text","text":"from eve@example.com"},"questions":{
                "is eve@example.com angry":{"type":"noul","instructions":"?"},
                "who":{"type":"choice","instructions":"?","criteria":{"adam@example.com":null,"other":null}}}}"#,
        ),
        (
            "/v1/decisions",
            r#"{"model":"acme/judge","input":"from eve@example.com","questions":[
                {"id":"is eve@example.com angry","type":"yes_no","question":"?"},
                {"id":"who","type":"choice","question":"?","options":[{"name":"adam@example.com"},{"name":"other"}]}]}"#,
        ),
    ]
}

fn ruled(rules: GuardrailRules) -> Guardrail {
    Guardrail {
        id: guardrail(),
        workspace_id: workspace(1),
        name: GuardrailName::try_new("g").unwrap(),
        budget: None,
        rules,
        version: 1,
        created_at: now(),
        updated_at: None,
    }
}

fn emails(action: FilterAction) -> GuardrailRules {
    let content_filter_builtins = vec![BuiltinContentFilter::new(BuiltinFilter::Email, action)];
    GuardrailRules { content_filter_builtins, ..GuardrailRules::default() }
}

fn policies(guardrail: Guardrail) -> Arc<dyn GuardrailPolicies> {
    let policy = Arc::new(Policy::compile(vec![guardrail]).unwrap());
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(move |_| Ok(Some(Arc::clone(&policy))));
    Arc::new(policies)
}

/// A provider that answers yes to each question, selects the first option, and stores its calls.
#[derive(Clone, Default)]
struct FirstOptionProvider(Arc<Mutex<Vec<ProviderCall>>>);

#[async_trait]
impl DecisionProvider for FirstOptionProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let typed = call.provider_input.questions.typed.as_deref().into_iter().flatten();
        let answers: Vec<(String, String)> = typed
            .map(|question| {
                let answer = match &question.kind {
                    QuestionKind::Choice { options } => {
                        format!(r#"{{"type":"choice","choice":{}}}"#, Json::string(&options[0].name).text())
                    }
                    _ => r#"{"type":"noul","noul":1}"#.to_owned(),
                };
                (question.name.clone(), answer)
            })
            .collect();
        let answers = Json::object(answers.iter().map(|(name, answer)| (name.as_str(), answer.as_str())));
        self.0.lock().unwrap().push(call);
        let usage = Some(ReportedUsage { input_tokens: 1, output_tokens: 0 });
        Ok(ProviderAnswer { answers, usage, sent_bytes: 1 })
    }
}

#[tokio::test]
async fn every_wire_restores_names_redacted_for_provider() {
    let provider = FirstOptionProvider::default();
    let gateway = Setup {
        provider: Arc::new(provider.clone()),
        policies: policies(ruled(emails(FilterAction::Redact))),
        ..Setup::new().await
    };
    let gateway = gateway.start();
    for (path, body) in wires() {
        let reply = ask(&gateway, path, body).await;
        let text = String::from_utf8(reply.body.clone()).unwrap();
        assert_eq!(reply.status, 200, "{path}: {text}");
        assert!(text.contains("is eve@example.com angry") && text.contains("adam@example.com"), "{path}: {text}");
        assert!(!text.contains("[EMAIL") || reply.json()["service_metadata"].is_object(), "{path}: {text}");
        let json = reply.json();
        let answers = json["answers"].to_string();
        assert!(!answers.contains("EMAIL"), "{path}: {answers}");
        let stages = json["service_metadata"]["pipeline"].as_array().unwrap();
        assert!(!stages.is_empty(), "{path}: {text}");
        for stage in stages {
            assert_eq!((&stage["type"], &stage["action"]), (&json!("guardrail"), &json!("redact")));
            assert_eq!((&stage["label"], &stage["guardrail_id"]), (&json!("EMAIL"), &json!(guardrail().to_string())));
        }
    }
    let calls = provider.0.lock().unwrap();
    assert_eq!(calls.len(), 4);
    for call in calls.iter() {
        let seen = format!("{:?}", call.provider_input);
        assert!(!seen.contains("example.com"), "{seen}");
    }
}

#[tokio::test]
async fn blocked_content_returns_403_with_path_and_no_text() {
    let policies = policies(ruled(emails(FilterAction::Block)));
    let gateway = Setup { policies, ..Setup::answering([]).await }.start();
    let reply = gateway
        .decide(r#"{"model":"acme/judge","state":{"from":"eve@example.com"},"questions":{"q":{"type":"noul","instructions":"?"}}}"#)
        .await;
    assert_eq!(reply.expect_error(403), "Request blocked by content filter: [EMAIL]");
    let guardrail_id = guardrail().to_string();
    assert_eq!(metadata(&reply), json!({"guardrail_id": guardrail_id, "label": "EMAIL", "path": "state.from"}));
    for (path, body) in wires() {
        let reply = ask(&gateway, path, body).await;
        assert!(reply.expect_error_in_any_format(403).contains("[EMAIL]"), "{path}");
        assert!(!String::from_utf8(reply.body).unwrap().contains("example.com"), "{path}");
    }
    assert_eq!(gateway.decide(BODY).await.status, 502, "what holds no address goes on its way");
}

#[tokio::test]
async fn forbidden_provider_returns_403_with_rule() {
    let rules = GuardrailRules { allowed_providers: Some(vec!["third".to_owned()]), ..GuardrailRules::default() };
    let gateway = Setup { policies: policies(ruled(rules)), ..Setup::answering([]).await }.start();
    let reply = gateway.decide(BODY).await;
    assert!(reply.expect_error(403).starts_with("acme/judge may not be used with this key"));
    let guardrail_id = guardrail().to_string();
    assert_eq!(
        metadata(&reply),
        json!({"guardrail_id": guardrail_id, "rule": "allowed_providers", "model": "acme/judge"})
    );
}

#[tokio::test]
async fn exceeded_guardrail_budget_returns_402_with_id() {
    let budget = Some(SpendLimit { amount: Usd::from_pico(7), reset: Some(ResetInterval::Daily) });
    let guardrail = Guardrail { budget, ..ruled(GuardrailRules::default()) };
    let setup = Setup::answering([]).await;
    let stored = setup.store.guardrails().find(guardrail.id).await.unwrap().unwrap();
    let changed = Guardrail { budget, version: stored.version + 1, ..stored.clone() };
    let [before, after] = [stored, changed].map(|guardrail| PlacedGuardrail { guardrail, workspace_default: false });
    assert!(setup.store.guardrails().update(&before, &after, &audit_draft()).await.unwrap());
    let gateway = Setup { policies: policies(guardrail), ..setup }.start();
    let reply = gateway.decide(BODY).await;
    assert!(reply.expect_error(402).contains("the daily budget of the guardrail"));
    let metadata = metadata(&reply);
    assert_eq!(metadata["guardrail_id"], super::gateway::guardrail().to_string());
    assert_eq!((&metadata["scope"], &metadata["resets_at"]), (&json!("guardrail"), &json!("2026-01-02T00:00:00Z")));
}

#[tokio::test]
async fn unpriced_model_returns_403_for_limited_key_with_correction() {
    let setup = Setup::answering([answer(ANSWERS)]).await;
    add_credit(&*setup.store.workspaces(), workspace(1), Usd::from_pico(1 << 40), &audit_draft()).await.unwrap();
    let row = Model::minimal("acme/judge".parse().unwrap(), Pricing::unknown());
    let gateway = Setup { catalogue: Arc::new(MemoryCatalogue::new(vec![row])), ..setup }.start();
    let reply = gateway.decide(BODY).await;
    let message = reply.expect_error(403);
    assert!(message.contains("input_usd_per_million_tokens") && message.contains("money.unpriced_models"), "{message}");
    assert_eq!(metadata(&reply), json!({"model": "acme/judge"}));
    let unlimited = gateway.post_json(Caller::OfOtherWorkspace, "/api/alpha/decisions", BODY).await;
    assert_eq!((unlimited.status, &unlimited.json()["usage"]["cost"]), (200, &json!(0)));
}

#[tokio::test]
async fn unavailable_guardrails_return_503_and_send_nothing() {
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(|_| Err(StoreError::unavailable("db-7")));
    let provider = FirstOptionProvider::default();
    let setup = Setup { policies: Arc::new(policies), provider: Arc::new(provider.clone()), ..Setup::new().await };
    let reply = setup.start().decide(BODY).await;
    reply.expect_error(503);
    assert!(reply.header("retry-after").is_some() && provider.0.lock().unwrap().is_empty());
}

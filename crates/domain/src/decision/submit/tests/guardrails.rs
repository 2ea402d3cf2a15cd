//! Guardrails of keys: routing, filters and budgets.

use super::fixture::*;
use super::*;
use crate::budget::{ResetInterval, SpendLimit};
use crate::decision::{MockBroadcast, MockMetrics, TraceContent};
use crate::guardrail::{
    BuiltinContentFilter, BuiltinFilter, Guardrail, GuardrailName, GuardrailRules, MockGuardrailPolicies,
};
use crate::ids::GuardrailId;
use crate::usage::FilterAction;

pub(super) fn guardrail(rules: GuardrailRules) -> Guardrail {
    Guardrail {
        id: GuardrailId::from_uuid(SequentialIds::uuid(77)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(900)),
        name: GuardrailName::try_new("g").unwrap(),
        budget: None,
        rules,
        version: 1,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

pub(super) fn under(guardrail: Guardrail) -> (GatewaySetup, Arc<Policy>) {
    let policy = Arc::new(Policy::compile(vec![guardrail]).unwrap());
    let mut policies = MockGuardrailPolicies::new();
    let found = Arc::clone(&policy);
    policies.expect_find().returning(move |_| Ok(Some(Arc::clone(&found))));
    let endpoints = vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")];
    (GatewaySetup { policies: Arc::new(policies), ..GatewaySetup::new(endpoints) }, policy)
}

pub(super) fn emails(action: FilterAction) -> GuardrailRules {
    let content_filter_builtins = vec![BuiltinContentFilter::new(BuiltinFilter::Email, action)];
    GuardrailRules { content_filter_builtins, ..GuardrailRules::default() }
}

const QUESTIONS: &str = r#"{"is eve@example.com angry":{"type":"noul","instructions":"?"},
    "who":{"type":"choice","criteria":{"adam@example.com":null,"other":null}}}"#;

pub(super) fn about(state: &str) -> DecisionRequest {
    let mut request = request_with(QUESTIONS);
    let provider_input = (*request.provider_input).clone();
    request.provider_input = Arc::new(ProviderInput { state: Some(Json::string(state)), ..provider_input });
    request
}

#[tokio::test(start_paused = true)]
async fn sent_input_is_filtered_input() {
    let (mut setup, policy) = under(guardrail(emails(FilterAction::Redact)));
    let expected = policy.filter(&about("from eve@example.com").provider_input).unwrap();
    let filtered = Arc::clone(&expected.provider_input);
    let mut broadcaster = MockBroadcast::new();
    broadcaster.expect_messages().times(1).returning(move |_, exchange: &TraceContent<'_>| {
        assert_eq!(exchange.provider_input, &*filtered, "destinations receive the sent input");
        let answers = exchange.answers.unwrap().text();
        assert!(answers.contains("is [EMAIL] angry") && !answers.contains("example.com"), "{answers}");
        assert_eq!(exchange.redacted_labels.and_then(|labels| labels.user.as_deref()), Some("u of [EMAIL]"));
        Vec::new()
    });
    broadcaster.expect_takes_labels().times(1).return_const(true);
    setup.broadcaster = Arc::new(broadcaster);
    let gateway = setup.build();
    let request = DecisionRequest { user: Some("u of eve@example.com".to_owned()), ..about("from eve@example.com") };
    let pending = gateway.send(request).await;
    let sent = gateway.call(0).provider_input;
    assert_eq!(sent, expected.provider_input);
    let bytes = format!("{}{}", sent.questions.json.text(), sent.state.as_ref().unwrap().text());
    assert!(!bytes.contains("example.com") && bytes.contains("[EMAIL]"), "{bytes}");
    assert!(!format!("{sent:?}").contains("example.com"), "nor elsewhere in it");
    gateway.answer(0, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(decision.provider_input, about("from eve@example.com").provider_input, "surfaces answer what was asked");
    let answers = decision.answers.json().text();
    assert!(
        answers.contains("is eve@example.com angry") && answers.contains(r#""choice":"adam@example.com""#),
        "{answers}"
    );
    assert!(!decision.findings.is_empty());
    let record = gateway.record();
    assert_eq!((&record.findings, record.guardrails), (&decision.findings, policy.ids()));
    assert!(record.findings.iter().all(|finding| finding.action == FilterAction::Redact));
}

#[tokio::test(start_paused = true)]
async fn blocked_request_is_not_sent() {
    let (mut setup, policy) = under(guardrail(emails(FilterAction::Block)));
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().times(1).with(mockall::predicate::eq("block")).return_const(());
    setup.metrics = Arc::new(metrics);
    let gateway = setup.build();
    let error = gateway.send(about("from eve@example.com")).await.end().await.unwrap_err();
    let SubmitDecisionError::Blocked(blocked) = &error else { panic!("a filter blocks it: {error}") };
    assert_eq!((blocked.guardrail_id, blocked.label.as_str()), (policy.ids()[0], "EMAIL"));
    assert!(!format!("{error} {blocked:?}").contains("example.com"));
    assert_eq!((error.kind(), gateway.upstreams().len(), gateway.records().len()), (ErrorKind::Forbidden, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn flagged_request_is_sent_unchanged_with_findings() {
    let (mut setup, _) = under(guardrail(emails(FilterAction::Flag)));
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().times(1..).with(mockall::predicate::eq("flag")).return_const(());
    metrics.expect_record_charge().return_const(());
    setup.metrics = Arc::new(metrics);
    let gateway = setup.build();
    let pending = gateway.send(about("from eve@example.com")).await;
    assert_eq!(gateway.call(0).provider_input, about("from eve@example.com").provider_input);
    gateway.fail(0, InvalidResponse).await;
    gateway.fail(1, InvalidResponse).await;
    let error = pending.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("both have failed: {error}") };
    assert_eq!(failed.findings, gateway.record().findings);
    assert_eq!(failed.findings[0].action, FilterAction::Flag);
}

#[tokio::test(start_paused = true)]
async fn forbidden_provider_is_not_tried() {
    let rules = GuardrailRules { ignored_providers: Some(vec!["one".to_owned()]), ..GuardrailRules::default() };
    let (setup, _) = under(guardrail(rules));
    let gateway = setup.build();
    let pending = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["b"]);
    gateway.fail(0, InvalidResponse).await;
    let error = pending.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("it has failed: {error}") };
    assert_eq!(failed.attempts.len(), 1, "not as a fallback either");
    assert_eq!(failed.funnel, [("model", 2), ("price", 2), ("guardrail", 1)]);
}

#[tokio::test(start_paused = true)]
async fn request_is_forbidden_with_rule_when_no_endpoint_is_permitted() {
    let rules = GuardrailRules { allowed_providers: Some(vec!["three".to_owned()]), ..GuardrailRules::default() };
    let (setup, policy) = under(guardrail(rules));
    let gateway = setup.build();
    let error = gateway.send(nouls(1)).await.end().await.unwrap_err();
    let SubmitDecisionError::Forbidden { model, forbidden, funnel } = &error else {
        panic!("it is forbidden: {error}")
    };
    assert_eq!((model.as_str(), forbidden.rule), ("acme/judge", "allowed_providers"));
    assert_eq!((forbidden.guardrail_id, funnel.last()), (policy.ids()[0], Some(&("guardrail", 0))));
    assert_eq!((error.kind(), gateway.upstreams().len()), (ErrorKind::Forbidden, 0));
}

#[tokio::test(start_paused = true)]
async fn guardrail_budget_limits_key_without_limit() {
    let budget = Some(SpendLimit { amount: Usd::from_pico(1), reset: Some(ResetInterval::Daily) });
    let (mut setup, policy) = under(Guardrail { budget, ..guardrail(GuardrailRules::default()) });
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().times(1).returning(move |claim| {
        assert_eq!(claim.payer.guardrails, policy.ids());
        Err(StoreError::unavailable("away"))
    });
    setup.ledger = Some(Arc::new(ledger));
    let gateway = setup.build();
    assert_eq!(gateway.send(nouls(1)).await.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn request_is_unavailable_when_guardrails_cannot_be_read() {
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(|_| Err(StoreError::unavailable("away")));
    let setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]);
    let gateway = GatewaySetup { policies: Arc::new(policies), ..setup }.build();
    let error = gateway.send(nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), gateway.upstreams().len()), (ErrorKind::Unavailable, 0));
}

#[tokio::test(start_paused = true)]
async fn requests_with_equal_redacted_input_share_call_and_keep_own_names() {
    let (mut setup, _) = under(guardrail(emails(FilterAction::Redact)));
    let options = crate::decision::ModelOptions { single_flight: SingleFlightMode::ChargeEach, ..Default::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    let gateway = setup.build();
    let question = |name: &str| request_with(&format!(r#"{{"is {name} angry":{{"type":"noul","instructions":"?"}}}}"#));
    let first = gateway.send(question("eve@example.com")).await;
    let second = gateway.send(question("adam@example.com")).await;
    assert_eq!(gateway.upstreams().len(), 1);
    gateway.answer(0, 1).await;
    let first = first.end().await.unwrap();
    let second = second.end().await.unwrap();
    assert!(first.answers.json().text().contains("is eve@example.com angry"));
    assert!(second.answers.json().text().contains("is adam@example.com angry"));
}

//! What the key's guardrails let through is what is routed and sent.

use super::stage::*;
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

pub(super) fn under(guardrail: Guardrail) -> (Plan, Arc<Policy>) {
    let policy = Arc::new(Policy::compile(vec![guardrail]).unwrap());
    let mut policies = MockGuardrailPolicies::new();
    let found = Arc::clone(&policy);
    policies.expect_find().returning(move |_| Ok(Some(Arc::clone(&found))));
    let endpoints = vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")];
    (Plan { policies: Arc::new(policies), ..Plan::new(endpoints) }, policy)
}

pub(super) fn emails(action: FilterAction) -> GuardrailRules {
    let content_filter_builtins = vec![BuiltinContentFilter { slug: BuiltinFilter::Email, action }];
    GuardrailRules { content_filter_builtins, ..GuardrailRules::default() }
}

const QUESTIONS: &str = r#"{"is eve@example.com angry":{"type":"noul","instructions":"?"},
    "who":{"type":"choice","criteria":{"adam@example.com":null,"other":null}}}"#;

pub(super) fn about(state: &str) -> DecisionRequest {
    let mut request = asking(QUESTIONS);
    let provider_input = (*request.provider_input).clone();
    request.provider_input = Arc::new(ProviderInput { state: Some(Json::string(state)), ..provider_input });
    request
}

#[tokio::test]
async fn what_is_sent_is_byte_for_byte_what_was_filtered() {
    let (mut plan, policy) = under(guardrail(emails(FilterAction::Redact)));
    let expected = policy.filter(&about("from eve@example.com").provider_input).unwrap();
    let told = Arc::clone(&expected.provider_input);
    let mut broadcaster = MockBroadcast::new();
    broadcaster.expect_messages().times(1).returning(move |_, exchange: &TraceContent<'_>| {
        assert_eq!(exchange.provider_input, &*told, "others are told of what was sent");
        let answers = exchange.answers.unwrap().text();
        assert!(answers.contains("is [EMAIL] angry") && !answers.contains("example.com"), "{answers}");
        assert_eq!(exchange.redacted_labels.and_then(|labels| labels.user.as_deref()), Some("u of [EMAIL]"));
        Vec::new()
    });
    broadcaster.expect_takes_labels().times(1).return_const(true);
    plan.broadcaster = Arc::new(broadcaster);
    let world = plan.build();
    let request = DecisionRequest { user: Some("u of eve@example.com".to_owned()), ..about("from eve@example.com") };
    let asked = world.ask(request).await;
    let sent = world.call(0).provider_input;
    assert_eq!(sent, expected.provider_input);
    let bytes = format!("{}{}", sent.questions.json.text(), sent.state.as_ref().unwrap().text());
    assert!(!bytes.contains("example.com") && bytes.contains("[EMAIL]"), "{bytes}");
    assert!(!format!("{sent:?}").contains("example.com"), "nor elsewhere in it");
    world.answer(0, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(decision.provider_input, about("from eve@example.com").provider_input, "surfaces answer what was asked");
    let answers = decision.answers.json().text();
    assert!(
        answers.contains("is eve@example.com angry") && answers.contains(r#""choice":"adam@example.com""#),
        "{answers}"
    );
    assert!(!decision.findings.is_empty());
    let record = world.record();
    assert_eq!((&record.findings, record.guardrails), (&decision.findings, policy.ids()));
    assert!(record.findings.iter().all(|finding| finding.action == FilterAction::Redact));
}

#[tokio::test]
async fn what_is_blocked_goes_nowhere() {
    let (mut plan, policy) = under(guardrail(emails(FilterAction::Block)));
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().times(1).with(mockall::predicate::eq("block")).return_const(());
    plan.metrics = Arc::new(metrics);
    let world = plan.build();
    let error = world.ask(about("from eve@example.com")).await.end().await.unwrap_err();
    let SubmitDecisionError::Blocked(blocked) = &error else { panic!("a filter blocks it: {error}") };
    assert_eq!((blocked.guardrail_id, blocked.label.as_str()), (policy.ids()[0], "EMAIL"));
    assert!(!format!("{error} {blocked:?}").contains("example.com"));
    assert_eq!((error.kind(), world.upstreams().len(), world.records().len()), (ErrorKind::Forbidden, 0, 0));
}

#[tokio::test]
async fn what_is_flagged_is_sent_as_it_is_and_told() {
    let (mut plan, _) = under(guardrail(emails(FilterAction::Flag)));
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().times(1..).with(mockall::predicate::eq("flag")).return_const(());
    metrics.expect_record_charge().return_const(());
    plan.metrics = Arc::new(metrics);
    let world = plan.build();
    let asked = world.ask(about("from eve@example.com")).await;
    assert_eq!(world.call(0).provider_input, about("from eve@example.com").provider_input);
    world.fail(0, InvalidResponse).await;
    world.fail(1, InvalidResponse).await;
    let error = asked.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("both have failed: {error}") };
    assert_eq!(failed.findings, world.record().findings);
    assert_eq!(failed.findings[0].action, FilterAction::Flag);
}

#[tokio::test]
async fn what_a_guardrail_forbids_is_not_asked() {
    let rules = GuardrailRules { ignored_providers: Some(vec!["one".to_owned()]), ..GuardrailRules::default() };
    let (plan, _) = under(guardrail(rules));
    let world = plan.build();
    let asked = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["b"]);
    world.fail(0, InvalidResponse).await;
    let error = asked.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("it has failed: {error}") };
    assert_eq!(failed.attempts.len(), 1, "not as a fallback either");
    assert_eq!(failed.funnel, [("model", 2), ("price", 2), ("guardrail", 1)]);
}

#[tokio::test]
async fn where_nothing_is_left_the_rule_is_named() {
    let rules = GuardrailRules { allowed_providers: Some(vec!["three".to_owned()]), ..GuardrailRules::default() };
    let (plan, policy) = under(guardrail(rules));
    let world = plan.build();
    let error = world.ask(nouls(1)).await.end().await.unwrap_err();
    let SubmitDecisionError::Forbidden { model, forbidden, funnel } = &error else {
        panic!("it is forbidden: {error}")
    };
    assert_eq!((model.as_str(), forbidden.rule), ("acme/judge", "allowed_providers"));
    assert_eq!((forbidden.guardrail_id, funnel.last()), (policy.ids()[0], Some(&("guardrail", 0))));
    assert_eq!((error.kind(), world.upstreams().len()), (ErrorKind::Forbidden, 0));
}

#[tokio::test]
async fn a_guardrail_s_budget_limits_a_key_that_has_no_limit() {
    let budget = Some(SpendLimit { amount: Usd::from_pico(1), reset: Some(ResetInterval::Daily) });
    let (mut plan, policy) = under(Guardrail { budget, ..guardrail(GuardrailRules::default()) });
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().times(1).returning(move |claim| {
        assert_eq!(claim.payer.guardrails, policy.ids());
        Err(StoreError::unavailable("away"))
    });
    plan.ledger = Some(Arc::new(ledger));
    let world = plan.build();
    assert_eq!(world.ask(nouls(1)).await.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn where_nobody_knows_the_guardrails_nothing_is_sent() {
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(|_| Err(StoreError::unavailable("away")));
    let plan = Plan::new(vec![endpoint("acme/judge", "one", "a")]);
    let world = Plan { policies: Arc::new(policies), ..plan }.build();
    let error = world.ask(nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), world.upstreams().len()), (ErrorKind::Unavailable, 0));
}

#[tokio::test]
async fn requests_that_only_their_secrets_tell_apart_share_a_call_and_keep_their_own_names() {
    let (mut plan, _) = under(guardrail(emails(FilterAction::Redact)));
    let options = crate::decision::ModelOptions { single_flight: SingleFlightMode::ChargeEach, ..Default::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    let world = plan.build();
    let question = |name: &str| asking(&format!(r#"{{"is {name} angry":{{"type":"noul","instructions":"?"}}}}"#));
    let first = world.ask(question("eve@example.com")).await;
    let second = world.ask(question("adam@example.com")).await;
    assert_eq!(world.upstreams().len(), 1);
    world.answer(0, 1).await;
    let first = first.end().await.unwrap();
    let second = second.end().await.unwrap();
    assert!(first.answers.json().text().contains("is eve@example.com angry"));
    assert!(second.answers.json().text().contains("is adam@example.com angry"));
}

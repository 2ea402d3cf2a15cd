//! Presets with stages under guardrails, limits of money, and limits of sub-requests.

use super::fixture::{GatewaySetup, TestGateway, at_price};
use super::guardrails::{emails, guardrail, under};
use super::recording_ledger::{LedgerCall, RecordingLedger, key, usd};
use super::*;
use crate::decision::MockMetrics;
use crate::guardrail::GuardrailRules;
use crate::preset::PresetConfig;
use crate::usage::{FilterAction, QuestionVerdict};

use mockall::predicate::eq;

use QuestionVerdict::{Abstained, Accepted, Escalated};

/// Two stages with a threshold of 0.8 each, and these questions.
fn staged(otherwise: &str, questions: &str) -> DecisionRequest {
    let stages = r#""stages":[{"model":"acme/small","accept":{"*":0.8}},{"model":"acme/large","accept":{"*":0.8}}]"#;
    let text = format!(r#"{{{stages},"otherwise":"{otherwise}","questions":{questions}}}"#);
    let config = PresetConfig::read(&Json::parse(&text).unwrap()).unwrap();
    let state = Some(Json::string("from eve@example.com"));
    DecisionRequest {
        model: config.models[0].clone(),
        fallback_models: config.models[1..].to_vec(),
        provider_input: Arc::new(ProviderInput::new(config.questions, state)),
        cascade: config.cascade,
        ..request("acme/small")
    }
}

const TWO: &str = r#"{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"?"}}"#;

fn endpoints() -> Vec<Endpoint> {
    vec![endpoint("acme/small", "one", "s"), endpoint("acme/large", "two", "l")]
}

/// Ends an attempt with probabilities of yes, for ten tokens.
async fn say(gateway: &TestGateway, attempt: usize, answers: &[(&str, &str)]) {
    let noul = |number: &str| format!(r#"{{"type":"noul","noul":{number}}}"#);
    let answers: Vec<(&str, String)> = answers.iter().map(|(name, number)| (*name, noul(number))).collect();
    let answers = Json::object(answers.iter().map(|(name, answer)| (*name, answer.as_str())));
    let usage = Some(ReportedUsage { input_tokens: 10, output_tokens: 0 });
    gateway.finish(attempt, Ok(ProviderAnswer { answers, usage, sent_bytes: 400 })).await;
}

fn outcomes(decision: &Decision) -> Vec<(&str, QuestionVerdict, usize)> {
    decision.outcomes.all().iter().map(|of| (of.question.as_str(), of.verdict, of.stage)).collect()
}

#[rstest]
#[case::first("acme/small", &["l"], Accepted, 2)]
#[case::second("acme/large", &["s"], Escalated, 1)]
#[tokio::test(start_paused = true)]
async fn stage_that_a_guardrail_forbids_is_skipped(
    #[case] model: &str,
    #[case] asked: &[&str],
    #[case] verdict: QuestionVerdict,
    #[case] stage: usize,
) {
    let rules = GuardrailRules { ignored_models: Some(vec![model.to_owned()]), ..GuardrailRules::default() };
    let (policies, _) = under(guardrail(rules));
    let gateway = GatewaySetup { policies: policies.policies, ..GatewaySetup::new(endpoints()) }.build();
    let pending = gateway.send(staged("answer", TWO)).await;
    let doubtful = if stage == 1 { "0.6" } else { "0.95" };
    say(&gateway, 0, &[("a", "0.9"), ("b", doubtful)]).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(outcomes(&decision), [("a", Accepted, stage), ("b", verdict, stage)]);
    assert_eq!(gateway.upstreams(), asked);
}

#[tokio::test(start_paused = true)]
async fn stages_whose_models_are_all_forbidden_are_not_asked() {
    let allowed_models = Some(vec!["acme/other".to_owned()]);
    let (policies, _) = under(guardrail(GuardrailRules { allowed_models, ..GuardrailRules::default() }));
    let gateway = GatewaySetup { policies: policies.policies, ..GatewaySetup::new(endpoints()) }.build();
    let error = gateway.send(staged("answer", TWO)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), gateway.upstreams().len()), (ErrorKind::Forbidden, 0));
}

#[tokio::test(start_paused = true)]
async fn every_stage_gets_the_filtered_input_and_outcomes_have_the_original_names() {
    let (policies, _) = under(guardrail(emails(FilterAction::Redact)));
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().return_const(());
    metrics.expect_record_charge().return_const(());
    for verdict in [Accepted, Abstained] {
        metrics.expect_record_question_verdict().times(1).with(eq(verdict)).return_const(());
    }
    let mut setup = GatewaySetup { policies: policies.policies, ..GatewaySetup::new(endpoints()) };
    (setup.metrics, setup.endpoints[1].independent_questions) = (Arc::new(metrics), true);
    let gateway = setup.build();
    let name = "is eve@example.com angry";
    let questions =
        format!(r#"{{"a":{{"type":"noul","instructions":"?"}},"{name}":{{"type":"noul","instructions":"?"}}}}"#);
    let pending = gateway.send(staged("abstain", &questions)).await;
    say(&gateway, 0, &[("a", "0.9"), ("is [EMAIL] angry", "0.6")]).await;
    say(&gateway, 1, &[("is [EMAIL] angry", "0.7")]).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(outcomes(&decision), [("a", Accepted, 1), (name, Abstained, 2)]);
    assert!(decision.answers.json().text().contains(name), "{}", decision.answers.json().text());
    for attempt in 0..2 {
        let sent = gateway.call(attempt).provider_input;
        let bytes = format!("{}{}", sent.questions.json.text(), sent.state.as_ref().unwrap().text());
        assert!(bytes.contains("from [EMAIL]") && !bytes.contains("example.com"), "{attempt}: {bytes}");
    }
    assert_eq!(gateway.call(1).provider_input.questions.count(), 1, "the open question");
}

#[tokio::test(start_paused = true)]
async fn stage_uses_a_cheaper_endpoint_if_the_preferred_exceeds_a_limit() {
    let request = DecisionRequest {
        preferences: crate::routing::RoutingPreferences {
            order: ["one", "two", "three"].map(str::to_owned).into(),
            ..crate::routing::RoutingPreferences::default()
        },
        ..staged("answer", TWO)
    };
    let each = i64::try_from(request.provider_input.len_bytes()).unwrap() + 20;
    // One picodollar a token for the first stage, and three or one for the second.
    let ledger = RecordingLedger::new(None, &[Some(4 * each - 1), Some(4 * each)]).await;
    let [small, large] = [("acme/small", "one", "s"), ("acme/large", "two", "l")].map(|(m, p, u)| endpoint(m, p, u));
    let cheap = at_price(endpoint("acme/large", "three", "c"), "0.000000000001");
    let endpoints = vec![at_price(small, "0.000000000001"), at_price(large, "0.000000000003"), cheap];
    let setup = GatewaySetup { ledger: Some(Arc::clone(&ledger) as Arc<dyn Ledger>), ..GatewaySetup::new(endpoints) };
    let gateway = setup.build();
    for (number, attempts, upstream) in [(1, [0, 1], "c"), (2, [2, 3], "l")] {
        let pending = gateway.send_with(key(number), request.clone()).await;
        let held = if number == 1 { 2 * each } else { 4 * each };
        assert_eq!(ledger.spent_and_held(number).await, (0, held));
        say(&gateway, attempts[0], &[("a", "0.9"), ("b", "0.6")]).await;
        say(&gateway, attempts[1], &[("a", "0.9"), ("b", "0.9")]).await;
        assert_eq!(outcomes(&pending.end().await.unwrap()), [("a", Accepted, 1), ("b", Accepted, 2)]);
        assert_eq!(gateway.upstreams()[attempts[1]], upstream);
    }
    assert!(ledger.calls().starts_with(&[LedgerCall::Rejected(usd(4 * each)), LedgerCall::Held(usd(2 * each))]));
}

#[tokio::test(start_paused = true)]
async fn failed_sub_requests_are_replaced_in_each_stage() {
    // In each stage 64 calls of two questions are planned, and one call that fails is replaced by two.
    let questions: Vec<String> =
        (0..128).map(|number| format!(r#""q{number}":{{"type":"noul","instructions":"?"}}"#)).collect();
    let request = staged("answer", &format!("{{{}}}", questions.join(",")));
    let mut endpoints = Vec::new();
    for (model, large, small) in [("acme/small", "one", "two"), ("acme/large", "three", "four")] {
        for (provider, most) in [(large, 2), (small, 1)] {
            let mut endpoint = endpoint(model, provider, provider);
            endpoint.own_limits.max_questions = Some(most);
            endpoints.push(endpoint);
        }
    }
    let mut setup = GatewaySetup::new(endpoints);
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let order = ["one", "two", "three", "four"].map(str::to_owned).into();
    let preferences = crate::routing::RoutingPreferences { order, ..crate::routing::RoutingPreferences::default() };
    let pending = gateway.send(DecisionRequest { preferences, ..request }).await;
    for stage in 0..2 {
        let first = stage * 66;
        gateway.fail(first, InvalidResponse).await;
        for attempt in first + 1..first + 66 {
            let input = gateway.call(attempt).provider_input;
            let names: Vec<&str> =
                input.questions.typed.as_deref().unwrap().iter().map(|question| question.name.as_str()).collect();
            let answers: Vec<(&str, &str)> = names.into_iter().map(|name| (name, "0.6")).collect();
            say(&gateway, attempt, &answers).await;
        }
    }
    let decision = pending.end().await.unwrap();
    assert!(outcomes(&decision).iter().all(|(_, verdict, stage)| (*verdict, *stage) == (Escalated, 2)));
    let smaller = |provider: &str| gateway.upstreams().iter().filter(|upstream| *upstream == provider).count();
    assert_eq!(["one", "two", "three", "four"].map(smaller), [64, 2, 64, 2]);
}

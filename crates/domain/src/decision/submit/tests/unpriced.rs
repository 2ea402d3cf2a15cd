//! Models without a price.

use super::fixture::*;
use super::recording_ledger::{LedgerCall, RecordingLedger, bound, key, setup, usd};
use super::*;
use crate::decision::UnpricedModels;

/// A setup whose only model has no price.
fn unpriced(ledger: &Arc<RecordingLedger>, rule: UnpricedModels) -> GatewaySetup {
    let mut setup = setup(ledger);
    setup.rows[0].pricing = Pricing::unknown();
    for endpoint in &mut setup.endpoints {
        endpoint.prices = None;
    }
    setup.settings.unpriced = rule;
    setup
}

#[tokio::test(start_paused = true)]
async fn unpriced_model_is_rejected_for_limited_key() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let gateway = unpriced(&ledger, UnpricedModels::Reject).build();
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), gateway.upstreams().len(), ledger.calls().len()), (ErrorKind::Forbidden, 0, 0));
    let message = error.to_string();
    assert!(message.contains("acme/judge") && message.contains("input_usd_per_million_tokens"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn unpriced_model_is_free_when_configured() {
    let ledger = RecordingLedger::new(None, &[Some(1)]).await;
    let gateway = unpriced(&ledger, UnpricedModels::Free).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 30).await;
    assert_eq!(pending.end().await.unwrap().cost, Usd::ZERO);
}

#[tokio::test(start_paused = true)]
async fn unpriced_model_is_charged_default_price_for_input_and_output() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let gateway = unpriced(&ledger, UnpricedModels::DefaultPrice(price("0.000000000002"))).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 2 * bound(&nouls(1))));
    let answers = answers_to(&gateway.call(0).provider_input);
    let usage = Some(ReportedUsage { input_tokens: 10, output_tokens: 5 });
    gateway.finish(0, Ok(ProviderAnswer { answers, usage, sent_bytes: 9 })).await;
    assert_eq!(pending.end().await.unwrap().cost, usd(30));
    assert_eq!(ledger.records().await[0].prices.completion, price("0.000000000002"), "the record says by which price");
}

#[tokio::test(start_paused = true)]
async fn unpriced_model_is_free_for_unlimited_key() {
    for rule in [UnpricedModels::Reject, UnpricedModels::Free, UnpricedModels::DefaultPrice(price("1"))] {
        let ledger = RecordingLedger::new(None, &[None]).await;
        let gateway = unpriced(&ledger, rule).build();
        let key = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
        let pending = gateway.send_with(key, nouls(1)).await;
        gateway.answer(0, 30).await;
        assert_eq!(pending.end().await.unwrap().cost, Usd::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn model_with_zero_price_is_not_unpriced() {
    let ledger = RecordingLedger::new(None, &[Some(1)]).await;
    let mut setup = unpriced(&ledger, UnpricedModels::Reject);
    setup.rows[0].pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 30).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.calls(), [LedgerCall::Held(Usd::ZERO), LedgerCall::Charged(Usd::ZERO)]);
}

#[tokio::test(start_paused = true)]
async fn priced_fallback_model_is_used_instead_of_unpriced_one() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let mut setup = unpriced(&ledger, UnpricedModels::Reject);
    setup.endpoints.push(at_price(endpoint("acme/other", "three", "c"), "0.000000000001"));
    setup.rows.push(row("acme/other"));
    let gateway = setup.build();
    let pending =
        gateway.send_with(key(1), DecisionRequest { fallback_models: vec!["acme/other".into()], ..nouls(1) }).await;
    gateway.answer(0, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(decision.model.as_str(), "acme/other");
    assert!(decision.funnel.contains(&("unpriced", 1)), "{:?}", decision.funnel);
}

#[tokio::test(start_paused = true)]
async fn limited_request_does_not_join_free_call_of_unpriced_model() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let mut setup = unpriced(&ledger, UnpricedModels::Reject);
    setup.endpoints[1] = at_price(setup.endpoints[1].clone(), "0.000000000001");
    let options = crate::decision::ModelOptions { single_flight: SingleFlightMode::ChargeEach, ..Default::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    let gateway = setup.build();
    let free = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
    let request = || {
        let mut request = nouls(1);
        request.preferences.order = vec!["one".to_owned()];
        request
    };
    let _free = gateway.send_with(free, request()).await;
    let _limited = gateway.send_with(key(1), request()).await;
    assert_eq!(gateway.upstreams(), ["a", "b"]);
}

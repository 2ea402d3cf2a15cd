//! Fallback models.

use super::fixture::*;
use super::*;

fn setup_models(models: &[(&str, &str)]) -> GatewaySetup {
    GatewaySetup::new(models.iter().map(|(model, name)| endpoint(model, name, name)).collect())
}

fn falling_back(models: &[&str]) -> DecisionRequest {
    DecisionRequest { fallback_models: models.iter().map(|model| (*model).to_owned()).collect(), ..nouls(1) }
}

const THREE: [(&str, &str); 4] = [("acme/judge", "a"), ("acme/judge", "b"), ("acme/second", "c"), ("acme/third", "d")];

#[tokio::test(start_paused = true)]
async fn fallback_models_are_tried_in_order() {
    let gateway = setup_models(&THREE).build();
    let pending = gateway.send(falling_back(&["acme/third", "acme/second"])).await;
    for attempt in 0..3 {
        gateway.fail(attempt, InvalidResponse).await;
    }
    gateway.answer(3, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(gateway.upstreams(), ["a", "b", "d", "c"]);
    assert_eq!(decision.model.as_str(), "acme/second");
    let record = gateway.record();
    assert_eq!((record.requested_model.as_str(), record.model.as_str()), ("acme/judge", "acme/second"));
    let models: Vec<&str> = record.attempts.iter().map(|attempt| attempt.model.as_str()).collect();
    assert_eq!(models, ["acme/judge", "acme/judge", "acme/third", "acme/second"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_fallback_model_is_rejected_before_any_attempt() {
    let gateway = setup_models(&THREE).build();
    let rejected = gateway.send(falling_back(&["acme/second", "acme/thrid"])).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::NotFound);
    let SubmitDecisionError::UnknownModel { nearest } = rejected else { panic!("one is unknown") };
    assert_eq!(nearest[0], "acme/third");
    assert!(gateway.upstreams().is_empty() && gateway.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn model_with_several_names_is_tried_once() {
    let gateway = setup_models(&THREE).build();
    let pending = gateway.send(falling_back(&["Acme/Judge", "second", "acme/second", "acme/judge:floor"])).await;
    for attempt in 0..3 {
        gateway.fail(attempt, InvalidResponse).await;
    }
    assert!(pending.end().await.is_err());
    assert_eq!(gateway.upstreams(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn model_without_endpoint_is_skipped() {
    let mut setup = setup_models(&[("acme/second", "c")]);
    setup.rows.push(row("acme/judge"));
    let gateway = setup.build();
    let pending = gateway.send(falling_back(&["acme/second"])).await;
    gateway.answer(0, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(decision.model.as_str(), "acme/second");
    assert_eq!(decision.funnel, [("model", 1), ("price", 1)]);
}

#[tokio::test(start_paused = true)]
async fn fallback_model_keeps_sort_of_its_variant() {
    let mut setup = setup_models(&[("acme/judge", "a"), ("acme/second", "dear"), ("acme/second", "cheap")]);
    setup.endpoints[1] = at_price(setup.endpoints[1].clone(), "2");
    setup.endpoints[2] = at_price(setup.endpoints[2].clone(), "1");
    // A random draw would choose the expensive endpoint.
    let gateway = setup.build();
    let pending = gateway.send(falling_back(&["acme/second:floor"])).await;
    gateway.fail(0, InvalidResponse).await;
    assert_eq!(gateway.upstreams(), ["a", "cheap"]);
    drop(pending);
}

#[tokio::test(start_paused = true)]
async fn provider_that_rejected_is_not_tried_for_fallback_model() {
    let gateway = setup_models(&[("acme/judge", "a"), ("acme/second", "a"), ("acme/third", "b")]).build();
    let pending = gateway.send(falling_back(&["acme/second", "acme/third"])).await;
    gateway.fail(0, RejectedByProvider).await;
    assert_eq!(gateway.upstreams(), ["a", "b"]);
    gateway.answer(1, 1).await;
    pending.end().await.unwrap();
}

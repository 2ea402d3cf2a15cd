//! Models to go on with where the first gives no answer.

use super::stage::*;
use super::*;

fn of(models: &[(&str, &str)]) -> Plan {
    Plan::new(models.iter().map(|(model, name)| endpoint(model, name, name)).collect())
}

fn falling_back(models: &[&str]) -> DecisionRequest {
    DecisionRequest { fallback_models: models.iter().map(|model| (*model).to_owned()).collect(), ..nouls(1) }
}

const THREE: [(&str, &str); 4] = [("acme/judge", "a"), ("acme/judge", "b"), ("acme/second", "c"), ("acme/third", "d")];

#[tokio::test]
async fn models_are_tried_in_order_and_the_one_that_answered_is_told() {
    let world = of(&THREE).build();
    let asked = world.ask(falling_back(&["acme/third", "acme/second"])).await;
    for attempt in 0..3 {
        world.fail(attempt, InvalidResponse).await;
    }
    world.answer(3, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(world.upstreams(), ["a", "b", "d", "c"]);
    assert_eq!(decision.model.as_str(), "acme/second");
    let record = world.record();
    assert_eq!((record.requested_model.as_str(), record.model.as_str()), ("acme/judge", "acme/second"));
    let models: Vec<&str> = record.attempts.iter().map(|attempt| attempt.model.as_str()).collect();
    assert_eq!(models, ["acme/judge", "acme/judge", "acme/third", "acme/second"]);
}

#[tokio::test]
async fn an_unknown_one_is_told_before_anything_is_asked() {
    let world = of(&THREE).build();
    let refused = world.ask(falling_back(&["acme/second", "acme/thrid"])).await.end().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let SubmitDecisionError::UnknownModel { nearest } = refused else { panic!("one is unknown") };
    assert_eq!(nearest[0], "acme/third");
    assert!(world.upstreams().is_empty() && world.records().is_empty());
}

#[tokio::test]
async fn a_model_under_several_names_is_tried_once() {
    let world = of(&THREE).build();
    let asked = world.ask(falling_back(&["Acme/Judge", "second", "acme/second", "acme/judge:floor"])).await;
    for attempt in 0..3 {
        world.fail(attempt, InvalidResponse).await;
    }
    assert!(asked.end().await.is_err());
    assert_eq!(world.upstreams(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_model_that_nobody_serves_is_passed_over() {
    let mut plan = of(&[("acme/second", "c")]);
    plan.rows.push(row("acme/judge"));
    let world = plan.build();
    let asked = world.ask(falling_back(&["acme/second"])).await;
    world.answer(0, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(decision.model.as_str(), "acme/second");
    assert_eq!(decision.funnel, [("model", 1), ("price", 1)]);
}

#[tokio::test]
async fn a_fallback_keeps_the_sort_that_its_own_name_asks_for() {
    let mut plan = of(&[("acme/judge", "a"), ("acme/second", "dear"), ("acme/second", "cheap")]);
    plan.endpoints[1] = at_price(plan.endpoints[1].clone(), "2");
    plan.endpoints[2] = at_price(plan.endpoints[2].clone(), "1");
    // A draw of the last place would prefer the dear one, were it drawn at all.
    let world = plan.build();
    let asked = world.ask(falling_back(&["acme/second:floor"])).await;
    world.fail(0, InvalidResponse).await;
    assert_eq!(world.upstreams(), ["a", "cheap"]);
    drop(asked);
}

#[tokio::test]
async fn who_refused_is_not_asked_for_another_model_either() {
    let world = of(&[("acme/judge", "a"), ("acme/second", "a"), ("acme/third", "b")]).build();
    let asked = world.ask(falling_back(&["acme/second", "acme/third"])).await;
    world.fail(0, Refused).await;
    assert_eq!(world.upstreams(), ["a", "b"]);
    world.answer(1, 1).await;
    asked.end().await.unwrap();
}

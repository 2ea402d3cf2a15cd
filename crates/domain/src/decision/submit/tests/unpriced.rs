//! Models that nobody has named a price for.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::decision::UnpricedModels;

/// The one model has no price at all.
fn unpriced(books: &Arc<Books>, rule: UnpricedModels) -> Plan {
    let mut plan = plan(books);
    plan.rows[0].pricing = Pricing::unknown();
    for endpoint in &mut plan.endpoints {
        endpoint.prices = None;
    }
    plan.settings.unpriced = rule;
    plan
}

#[tokio::test]
async fn a_limited_key_is_refused() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let world = unpriced(&books, UnpricedModels::Reject).build();
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), world.upstreams().len(), books.entries().len()), (ErrorKind::Forbidden, 0, 0));
    let message = error.to_string();
    assert!(message.contains("acme/judge") && message.contains("prompt_price"), "{message}");
}

#[tokio::test]
async fn it_can_be_free() {
    let books = Books::new(None, &[Some(1)]).await;
    let world = unpriced(&books, UnpricedModels::Free).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 30).await;
    assert_eq!(asked.end().await.unwrap().cost, Usd::ZERO);
}

#[tokio::test]
async fn it_can_be_charged_another_price_both_ways() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let world = unpriced(&books, UnpricedModels::DefaultPrice(price("0.000000000002"))).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(books.standing(1).await, (0, 2 * bound(&nouls(1))));
    let answers = answers_to(&world.call(0).provider_input);
    let usage = Some(ReportedUsage { input_tokens: 10, output_tokens: 5 });
    world.finish(0, Ok(ProviderAnswer { answers, usage, sent_bytes: 9 })).await;
    assert_eq!(asked.end().await.unwrap().cost, usd(30));
    assert_eq!(books.records().await[0].prices.completion, price("0.000000000002"), "the record says by which price");
}

#[tokio::test]
async fn who_is_not_limited_has_it_for_nothing_whatever_is_configured() {
    for rule in [UnpricedModels::Reject, UnpricedModels::Free, UnpricedModels::DefaultPrice(price("1"))] {
        let books = Books::new(None, &[None]).await;
        let world = unpriced(&books, rule).build();
        let key = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
        let asked = world.ask_with(key, nouls(1)).await;
        world.answer(0, 30).await;
        assert_eq!(asked.end().await.unwrap().cost, Usd::ZERO);
    }
}

#[tokio::test]
async fn a_price_of_zero_is_a_price() {
    let books = Books::new(None, &[Some(1)]).await;
    let mut plan = unpriced(&books, UnpricedModels::Reject);
    plan.rows[0].pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 30).await;
    asked.end().await.unwrap();
    assert_eq!(books.entries(), [Entry::Reserved(Usd::ZERO), Entry::Settled(Usd::ZERO)]);
}

#[tokio::test]
async fn another_model_with_a_price_stands_in() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let mut plan = unpriced(&books, UnpricedModels::Reject);
    plan.endpoints.push(at_price(endpoint("acme/other", "three", "c"), "0.000000000001"));
    plan.rows.push(row("acme/other"));
    let world = plan.build();
    let asked =
        world.ask_with(key(1), DecisionRequest { fallback_models: vec!["acme/other".into()], ..nouls(1) }).await;
    world.answer(0, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(decision.model.as_str(), "acme/other");
    assert!(decision.funnel.contains(&("unpriced", 1)), "{:?}", decision.funnel);
}

#[tokio::test]
async fn who_is_limited_has_no_share_in_what_is_free_to_others() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let mut plan = unpriced(&books, UnpricedModels::Reject);
    plan.endpoints[1] = at_price(plan.endpoints[1].clone(), "0.000000000001");
    let options = crate::decision::ModelOptions { single_flight: SingleFlightMode::ChargeEach, ..Default::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    let world = plan.build();
    let free = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
    let request = || {
        let mut request = nouls(1);
        request.preferences.order = vec!["one".to_owned()];
        request
    };
    let _free = world.ask_with(free, request()).await;
    let _limited = world.ask_with(key(1), request()).await;
    assert_eq!(world.upstreams(), ["a", "b"]);
}

//! The order of candidates with preferences.

use super::*;
use crate::routing::{PercentileBounds, SortBy};
use rstest::rstest;

#[expect(clippy::unnecessary_wraps, reason = "as preferences hold it")]
fn sort(by: SortBy) -> Option<Sort> {
    Some(Sort { by, across_models: false })
}

fn answered(millis: u64, tokens: u64) -> Observation {
    Observation::Succeeded { latency: Duration::from_millis(millis), tokens }
}

#[test]
fn order_puts_named_providers_first_and_others_by_price() {
    let mut fixture =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.order = slugs(&["b", "nobody", "a"]));
    // The order does not depend on draws.
    for draw in [0, u64::MAX / 2, u64::MAX] {
        fixture.draws = vec![draw; 4];
        assert_eq!(fixture.names(), ["b", "a", "c"]);
    }
    fixture.preferences.order = slugs(&["a"]);
    fixture.draws = vec![u64::MAX; 4];
    assert_eq!(fixture.names(), ["a", "c", "b"]);
}

#[test]
fn order_sorts_endpoints_of_named_provider_by_price() {
    let mut fixture = SelectionFixture::of_three().with_preferences(|preferences| preferences.order = slugs(&["a"]));
    fixture.models[0].0.push(changed(candidate(3, "a", "1e-6"), |endpoint| endpoint.upstream_model = "a-cheap".into()));
    fixture.draws = vec![u64::MAX; 4];
    assert_eq!(fixture.names(), ["a-cheap", "a", "c", "b"]);
}

#[test]
fn order_keeps_named_provider_first_after_recent_failure() {
    let fixture = SelectionFixture::of_three().with_preferences(|preferences| preferences.order = slugs(&["a"]));
    fixture.report(0, failed(), NOW);
    fixture.report(2, failed(), NOW);
    assert_eq!(fixture.names(), ["a", "b", "c"], "among the rest it does");
}

#[test]
fn order_without_fallbacks_selects_only_first_provider() {
    let fixture = SelectionFixture::of_three().with_preferences(|preferences| {
        preferences.order = slugs(&["b", "a"]);
        preferences.allow_fallbacks = false;
    });
    assert_eq!(fixture.choose().funnel, [("order", 2)]);
    assert_eq!(fixture.names(), ["b"]);
    fixture.reject_credentials(1);
    let outcome = fixture.choose();
    let Err(NoCandidates::Throttled(endpoints)) = outcome.chosen else {
        panic!("the first alone, and it is throttled")
    };
    assert_eq!(endpoints.retry_in, HealthPolicy::default().auth_backoff);
    assert_eq!(outcome.funnel, [("order", 2), ("health", 0)]);
}

#[test]
fn order_without_fallbacks_fails_when_provider_does_not_exist() {
    let fixture = SelectionFixture::of_three().with_preferences(|preferences| {
        preferences.order = slugs(&["nobody"]);
        preferences.allow_fallbacks = false;
    });
    assert_eq!(fixture.choose().chosen, Err(NoCandidates::Preferences));
    assert_eq!(fixture.choose().funnel, [("order", 0)]);
}

#[test]
fn no_fallbacks_selects_only_first_healthy_candidate() {
    let mut fixture = SelectionFixture::of_three().with_preferences(|preferences| preferences.allow_fallbacks = false);
    assert_eq!(fixture.names(), ["c"], "the cheapest is the first drawn");
    fixture.reject_credentials(2);
    assert_eq!(fixture.names(), ["b"]);
    assert!(fixture.choose().chosen.unwrap().rejected.is_empty(), "no other candidate may be tried");
    fixture.preferences.sort = sort(SortBy::Price);
    assert!(matches!(fixture.choose().chosen, Err(NoCandidates::Throttled(_))), "a sort selects the first candidate");
}

#[rstest]
#[case(SortBy::Price, ["c", "b", "a"])]
#[case(SortBy::Latency, ["b", "a", "c"])]
#[case(SortBy::Throughput, ["a", "b", "c"])]
fn sort_orders_by_each_metric(#[case] by: SortBy, #[case] expected: [&str; 3]) {
    let mut fixture = SelectionFixture::of_three().with_preferences(|preferences| preferences.sort = sort(by));
    fixture.report(0, answered(200, 2000), NOW);
    fixture.report(1, answered(100, 100), NOW);
    fixture.draws = vec![u64::MAX; 4];
    assert_eq!(fixture.names(), expected, "c has no measurements");
}

#[test]
fn sort_compares_output_prices_when_input_prices_are_equal() {
    let mut fixture =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.sort = sort(SortBy::Price));
    for (candidate, completion) in fixture.models[0].0.iter_mut().zip(["2e-6", "1e-6", "3e-6"]) {
        candidate.prices = TokenPrices { prompt: price("1e-6"), completion: price(completion) };
    }
    assert_eq!(fixture.names(), ["b", "a", "c"]);
}

#[test]
fn client_sort_overrides_sort_of_model() {
    let of = |model: &str, candidate: Candidate| Candidate { model: model.parse().unwrap(), ..candidate };
    let mut fixture = SelectionFixture::of_three();
    let second = vec![of("acme/other", candidate(3, "dear", "5e-6")), of("acme/other", candidate(4, "cheap", "4e-6"))];
    fixture.models.push((second, sort(SortBy::Price)));
    fixture.draws = vec![u64::MAX; 8];
    assert_eq!(fixture.names(), ["a", "c", "b", "cheap", "dear"], "the first model is balanced, the second is not");
    fixture.models[0].1 = sort(SortBy::Price);
    fixture.report(3, answered(1, 1), NOW);
    fixture.preferences.sort = sort(SortBy::Latency);
    assert_eq!(fixture.names(), ["a", "b", "c", "dear", "cheap"]);
}

#[test]
fn models_are_tried_in_order_unless_sorted_across() {
    let mut fixture = SelectionFixture::of_three();
    let other: ModelId = "acme/other".parse().unwrap();
    fixture.models.push((vec![Candidate { model: other, ..candidate(3, "d", "1.5e-6") }], None));
    fixture.preferences.sort = sort(SortBy::Price);
    assert_eq!(fixture.names(), ["c", "b", "a", "d"]);
    fixture.preferences.sort = Some(Sort { by: SortBy::Price, across_models: true });
    assert_eq!(fixture.names(), ["c", "d", "b", "a"]);
    fixture.models[0].0.clear();
    assert_eq!(fixture.names(), ["d"], "a model without endpoints leaves the others");
}

#[rstest]
#[case::p50(PercentileBounds { p50: Some(150), ..PercentileBounds::default() })]
#[case::p75(PercentileBounds { p75: Some(150), ..PercentileBounds::default() })]
#[case::p90(PercentileBounds { p90: Some(150), ..PercentileBounds::default() })]
#[case::p99(PercentileBounds { p99: Some(150), ..PercentileBounds::default() })]
fn preferred_max_latency_orders_slower_endpoints_last(#[case] bounds: PercentileBounds) {
    let mut fixture =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.preferred_max_latency = bounds);
    fixture.report(2, answered(200, 100), NOW);
    fixture.report(1, answered(100, 100), NOW);
    assert_eq!(fixture.names(), ["b", "a", "c"], "an endpoint without measurements is not slow");
    fixture.preferences.order = slugs(&["c"]);
    assert_eq!(fixture.names(), ["b", "a", "c"], "named providers, too");
    fixture.preferences.sort = sort(SortBy::Price);
    assert_eq!(fixture.names(), ["b", "a", "c"]);
}

#[test]
fn preferred_min_throughput_orders_slower_endpoints_last() {
    let bounds = PercentileBounds { p90: Some(500_000), ..PercentileBounds::default() };
    let fixture =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.preferred_min_throughput = bounds);
    // 100 tokens in 200 ms are 500 a second, and half of that is less than wanted.
    fixture.report(2, answered(200, 50), NOW);
    fixture.report(1, answered(200, 110), NOW);
    assert_eq!(fixture.names(), ["b", "a", "c"]);
}

//! The filters of preferences, and the steps of the funnel.

use super::*;
use rstest::rstest;

fn policy(zdr: bool, collects: bool) -> impl FnOnce(&mut Endpoint) {
    move |endpoint| endpoint.data_policy = DataPolicy { zdr, collects }
}

#[test]
fn choose_keeps_all_candidates_without_preferences() {
    let outcome = SelectionFixture::of_three().choose();
    assert!(outcome.funnel.is_empty());
    assert_eq!(outcome.chosen.unwrap().candidates.len(), 3);
}

#[test]
fn only_and_ignore_filter_by_slug() {
    let fixture = SelectionFixture::of_three()
        .with_preferences(|preferences| preferences.only = Some(slugs(&["c", "a", "nobody"])));
    let outcome = fixture.choose();
    assert_eq!(outcome.funnel, [("only", 2)]);
    assert_eq!(outcome.names(), ["c", "a"]);

    let fixture = SelectionFixture::of_three().with_preferences(|preferences| preferences.ignore = slugs(&["c"]));
    let outcome = fixture.choose();
    assert_eq!(outcome.funnel, [("ignore", 2)]);
    assert_eq!(outcome.names(), ["b", "a"]);
}

#[test]
fn data_policy_preferences_filter_candidates() {
    let three = || {
        vec![
            changed(candidate(0, "keeps", "1e-6"), policy(false, true)),
            changed(candidate(1, "trusted", "2e-6"), policy(false, false)),
            changed(candidate(2, "zdr", "3e-6"), policy(true, true)),
        ]
    };
    let fixture =
        SelectionFixture::new(three()).with_preferences(|preferences| preferences.deny_data_collection = true);
    let outcome = fixture.choose();
    assert_eq!(outcome.funnel, [("data_policy", 2)]);
    assert_eq!(outcome.names(), ["trusted", "zdr"]);
    assert_eq!(SelectionFixture::new(three()).with_preferences(|preferences| preferences.zdr = true).names(), ["zdr"]);
    let unknown = SelectionFixture::new(vec![candidate(0, "unknown", "1e-6")])
        .with_preferences(|preferences| preferences.deny_data_collection = true);
    assert_eq!(unknown.choose().chosen, Err(NoCandidates::Preferences), "an unknown data policy is not trusted");
}

#[test]
fn quantizations_filter_candidates() {
    let mut fixture = SelectionFixture::of_three()
        .with_preferences(|preferences| preferences.quantizations = Some(vec![Quantization::Fp8]));
    fixture.models[0].0[1] = changed(candidate(1, "b", "2e-6"), |endpoint| endpoint.quantization = Quantization::Fp8);
    assert_eq!(fixture.choose().funnel, [("quantizations", 1)]);
    assert_eq!(fixture.names(), ["b"]);
    fixture.preferences.quantizations = Some(vec![Quantization::Unknown]);
    assert_eq!(fixture.names(), ["c", "a"]);
    fixture.preferences.quantizations = Some(Vec::new());
    assert_eq!(fixture.choose().chosen, Err(NoCandidates::Preferences));
}

#[rstest]
#[case::at_the_bound("0.042", "0.000000042", true)]
#[case::a_hair_above("0.042", "0.000000042000000001", false)]
#[case::a_hair_below("0.042", "0.000000041999999999", true)]
#[case::in_other_notation("4.2e-2", "4.2e-8", true)]
#[case::no_float_would_tell("0.3", "0.0000003", true)]
#[case::and_here_neither("0.30000000000000000", "0.000000300000000000000001", false)]
#[case::free("0", "0", true)]
#[case::nothing_is_free("0", "0.000000000000000000000001", false)]
fn max_price_compares_exactly(#[case] max: &str, #[case] prompt: &str, #[case] stays: bool) {
    let of = |bound: MaxPrice, prices: TokenPrices| {
        let priced = Candidate { prices, ..candidate(0, "a", "1") };
        SelectionFixture::new(vec![priced]).with_preferences(|preferences| preferences.max_price = bound).choose()
    };
    let max = price(max);
    let input = of(
        MaxPrice { prompt: Some(max), completion: None },
        TokenPrices { prompt: price(prompt), completion: price("9") },
    );
    assert_eq!(input.chosen.is_ok(), stays);
    assert_eq!(input.funnel, [("max_price", usize::from(stays))]);
    let output = of(
        MaxPrice { prompt: None, completion: Some(max) },
        TokenPrices { prompt: price("9"), completion: price(prompt) },
    );
    assert_eq!(output.chosen.is_ok(), stays);
}

#[test]
fn require_parameters_excludes_endpoints_without_native_support() {
    let mut fixture =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.require_parameters = true);
    fixture.request = request(r#"{"n":{"type":"noul","instructions":"?","criteria":{"true":"a","false":"b"}}}"#);
    let wires = [Wire::OpenAiDecisions, Wire::ChatCompletions, Wire::GeminiDecisions];
    for (candidate, wire) in fixture.models[0].0.iter_mut().zip(wires) {
        *candidate = changed(candidate.clone(), |endpoint| endpoint.wire = wire);
    }
    assert_eq!(fixture.choose().funnel, [("require_parameters", 1)]);
    assert_eq!(fixture.names(), ["c"], "its wire has fields for true and false criteria");
    fixture.request = request(r#"{"n":{"type":"noul","criteria":{"true":"a","false":"b"}}}"#);
    assert_eq!(fixture.choose().chosen, Err(NoCandidates::Preferences), "no instructions to ask by");
}

#[test]
fn funnel_contains_each_step_in_order() {
    let mut fixture =
        SelectionFixture::new((0..8).map(|index| candidate(index, &format!("p{index}"), "1e-6")).collect());
    let all: Vec<String> = (0..8).map(|index| format!("p{index}")).collect();
    for (place, candidate) in fixture.models[0].0.iter_mut().enumerate() {
        *candidate = changed(candidate.clone(), policy(place != 0, false));
    }
    fixture.models[0].0[3] =
        changed(fixture.models[0].0[3].clone(), |endpoint| endpoint.quantization = Quantization::Int4);
    fixture.models[0].0[4].prices.prompt = price("1");
    fixture.models[0].0[5] = changed(fixture.models[0].0[5].clone(), |endpoint| {
        endpoint.wire = Wire::ChatCompletions;
    });
    fixture.models[0].0[6] =
        changed(fixture.models[0].0[6].clone(), |endpoint| endpoint.question_types = Some(Vec::new()));
    fixture.reject_credentials(7);
    fixture.preferences = RoutingPreferences {
        zdr: true,
        only: Some(all.into_iter().filter(|slug| slug != "p1").collect()),
        ignore: slugs(&["p2"]),
        quantizations: Some(vec![Quantization::Unknown]),
        max_price: MaxPrice { prompt: Some(price("1")), completion: None },
        require_parameters: true,
        ..RoutingPreferences::default()
    };
    let outcome = fixture.choose();
    let steps = [
        ("data_policy", 7),
        ("only", 6),
        ("ignore", 5),
        ("quantizations", 4),
        ("max_price", 3),
        ("require_parameters", 2),
        ("capability", 1),
        ("health", 0),
    ];
    assert_eq!(outcome.funnel, steps);
    assert!(matches!(outcome.chosen, Err(NoCandidates::Throttled(_))));
}

#[test]
fn choose_distinguishes_no_endpoint_from_excluded_endpoints() {
    let nothing = SelectionFixture::new(Vec::new())
        .with_preferences(|preferences| preferences.only = Some(slugs(&["a"])))
        .choose();
    assert_eq!((nothing.chosen, nothing.funnel), (Err(NoCandidates::NoEndpoint), RoutingFunnel::new()));
    let emptied =
        SelectionFixture::of_three().with_preferences(|preferences| preferences.only = Some(Vec::new())).choose();
    assert_eq!((emptied.chosen, emptied.funnel), (Err(NoCandidates::Preferences), vec![("only", 0)]));
}

#[test]
fn choose_excludes_endpoints_that_support_no_question() {
    let mut fixture = SelectionFixture::of_three();
    fixture.request = request(r#"{"s":{"type":"score","criteria":["a","b"]},"n":{"type":"noul","instructions":"?"}}"#);
    let of_types = |types: &[QuestionType]| {
        let types = types.to_vec();
        move |endpoint: &mut Endpoint| endpoint.question_types = Some(types)
    };
    fixture.models[0].0[0] = changed(candidate(0, "a", "3e-6"), of_types(&[QuestionType::Choice]));
    fixture.models[0].0[1] = changed(candidate(1, "b", "2e-6"), of_types(&[QuestionType::Noul]));
    fixture.models[0].0[2] = changed(candidate(2, "c", "1e-6"), of_types(&[QuestionType::Score]));
    assert_eq!(fixture.choose().funnel, [("capability", 2)]);
    assert_eq!(fixture.names(), ["c", "b"], "each takes a part of it");
    fixture.preferences.allow_fallbacks = false;
    assert_eq!(
        fixture.choose().chosen,
        Err(NoCandidates::Unsupported(UnsupportedQuestions::QuestionType(QuestionType::Score))),
        "no single endpoint supports all questions"
    );
    fixture.models[0].0[0] = candidate(0, "a", "3e-6");
    assert_eq!(fixture.names(), ["a"], "the only candidate supports all questions");
}

#[test]
fn choose_reports_size_when_state_exceeds_every_limit() {
    let mut fixture = SelectionFixture::of_three();
    for candidate in &mut fixture.models[0].0 {
        *candidate = changed(candidate.clone(), |endpoint| endpoint.own_limits.max_body_bytes = Some(2));
    }
    assert_eq!(fixture.choose().chosen, Err(NoCandidates::Unsupported(UnsupportedQuestions::Size)));
    assert_eq!(fixture.choose().funnel, [("capability", 0)]);
}

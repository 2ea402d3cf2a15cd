//! Properties of every choice.

use super::*;
use crate::money::Price;
use crate::routing::SortBy;
use proptest::prelude::*;

fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let one = (0_u8..4, 0_u32..4, any::<(bool, bool)>(), 0_usize..3);
    prop::collection::vec(one, 1..8).prop_map(|list| {
        let made = list.into_iter().enumerate().map(|(index, (provider, cents, (zdr, collects), format))| {
            let made = candidate(index, &format!("p{provider}"), &format!("{cents}e-6"));
            changed(made, |endpoint| {
                endpoint.data_policy = DataPolicy { zdr, collects };
                endpoint.quantization = Quantization::ALL[format];
                endpoint.upstream_model = index.to_string().into();
            })
        });
        made.collect()
    })
}

fn any_list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0_u8..5).prop_map(|provider| format!("p{provider}")), 0..4)
}

fn any_preferences() -> impl Strategy<Value = RoutingPreferences> {
    let sorts = prop_oneof![
        Just(None),
        (prop::sample::select(vec![SortBy::Price, SortBy::Latency, SortBy::Throughput]), any::<bool>())
            .prop_map(|(by, across_models)| Some(Sort { by, across_models })),
    ];
    let formats =
        prop::option::of(prop::collection::vec((0_usize..3).prop_map(|place| Quantization::ALL[place]), 0..3));
    let prices = prop::option::of((0_u32..4).prop_map(|cents| price(&cents.to_string())));
    let lists = (any_list(), prop::option::of(any_list()), any_list());
    (lists, sorts, formats, prices, any::<(bool, bool)>(), prop::bool::weighted(0.8)).prop_map(
        |((order, only, ignore), sort, quantizations, prompt, (zdr, deny), allow_fallbacks)| RoutingPreferences {
            order,
            only,
            ignore,
            sort,
            quantizations,
            zdr,
            deny_data_collection: deny,
            allow_fallbacks,
            max_price: MaxPrice { prompt, completion: None },
            ..RoutingPreferences::default()
        },
    )
}

/// A second implementation of the filters, for one candidate.
fn wanted(preferences: &RoutingPreferences, candidate: &Candidate) -> bool {
    let endpoint = &candidate.endpoint;
    let slug = endpoint.provider.to_string();
    let cheap = |max: Price| candidate.prices.prompt.times(1_000_000).unwrap() <= max.times(1).unwrap();
    (!preferences.zdr || endpoint.data_policy.zdr)
        && (!preferences.deny_data_collection || endpoint.data_policy.zdr || !endpoint.data_policy.collects)
        && preferences.only.as_ref().is_none_or(|only| only.contains(&slug))
        && !preferences.ignore.contains(&slug)
        && preferences.quantizations.as_ref().is_none_or(|formats| formats.contains(&endpoint.quantization))
        && preferences.max_price.prompt.is_none_or(cheap)
        && (preferences.allow_fallbacks || preferences.order.is_empty() || preferences.order.contains(&slug))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(1000, ProptestConfig::default().cases)))]

    #[test]
    fn choose_returns_each_matching_candidate_once(
        candidates in any_candidates(),
        preferences in any_preferences(),
        draws in prop::collection::vec(any::<u64>(), 4),
        throttled in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut fixture = SelectionFixture::new(candidates.clone());
        // The last ones are of another model.
        let second = fixture.models[0].0.split_off(candidates.len() / 2);
        fixture.models.push((second, None));
        fixture.preferences = preferences.clone();
        fixture.draws = draws;
        for index in throttled.iter().enumerate().filter(|(_, throttled)| **throttled).map(|(index, _)| index) {
            fixture.reject_credentials(index);
        }
        let allowed: Vec<usize> =
            candidates.iter().filter(|candidate| wanted(&preferences, candidate)).map(|c| c.endpoint.index).collect();
        let well: Vec<usize> = allowed.iter().copied().filter(|index| !throttled[*index]).collect();
        let outcome = fixture.choose();
        prop_assert!(outcome.funnel.windows(2).all(|steps| steps[1].1 <= steps[0].1), "a funnel only narrows");
        match outcome.chosen {
            Ok(chosen) => {
                let mut tried: Vec<usize> = chosen.candidates.iter().map(|c| c.endpoint.index).collect();
                prop_assert!(!tried.is_empty());
                tried.sort_unstable();
                if preferences.allow_fallbacks {
                    prop_assert_eq!(&tried, &well, "nothing is lost, doubled or let in");
                    prop_assert_eq!(chosen.rejected.len(), allowed.len() - well.len());
                } else {
                    prop_assert_eq!(tried.len(), 1);
                    prop_assert!(well.contains(&tried[0]));
                }
            }
            Err(NoCandidates::Preferences) => prop_assert!(allowed.is_empty()),
            Err(NoCandidates::Throttled(_)) => {
                prop_assert!(!allowed.is_empty());
                prop_assert!(well.is_empty() || !preferences.allow_fallbacks);
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}

//! Valid answers pass however they are rounded; deviations beyond rounding are rejected.

use super::*;
use crate::question::answer::members::as_number;
use crate::question::{argmax, expectation};
use proptest::prelude::*;

/// Generates a distribution and the number of decimals that it is rounded to.
fn any_distribution(most: usize) -> impl Strategy<Value = (Vec<f64>, u32)> {
    (prop::collection::vec(0.0_f64..1.0, 1..=most), 1_u32..=8).prop_filter_map(
        "it has some weight",
        |(weights, decimals)| {
            let sum: f64 = weights.iter().sum();
            (sum > 0.01).then(|| (weights.iter().map(|weight| weight / sum).collect(), decimals))
        },
    )
}

fn round(number: f64, decimals: u32) -> f64 {
    format!("{number:.*}", decimals as usize).parse().unwrap()
}

fn choice_of(options: usize) -> Questions {
    let options: Vec<String> = (0..options).map(|option| format!("\"{option}\":null")).collect();
    read(&format!(r#"{{"q":{{"type":"choice","criteria":{{{}}}}}}}"#, options.join(",")))
}

fn score_of(levels: usize) -> Questions {
    read(&format!(r#"{{"q":{{"type":"score","criteria":[{}]}}}}"#, vec!["\"l\""; levels].join(",")))
}

fn distribution(rounded: &[f64]) -> String {
    let entries: Vec<String> =
        rounded.iter().enumerate().map(|(place, number)| format!("\"{place}\":{number}")).collect();
    format!("{{{}}}", entries.join(","))
}

fn choice(rounded: &[f64], chosen: usize) -> String {
    format!(r#"{{"q":{{"type":"choice","choice":"{chosen}","probabilities":{}}}}}"#, distribution(rounded))
}

fn score(rounded: &[f64], score: f64) -> String {
    format!(r#"{{"q":{{"type":"score","score":{score},"probabilities":{}}}}}"#, distribution(rounded))
}

fn passes(questions: &Questions, answers: &str, decimals: u32) -> bool {
    let rules = AnswerRules { decimals, ..COMPUTED };
    Answers::check(questions, &Json::parse(answers).unwrap(), rules).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(500, ProptestConfig::default().cases)))]

    #[test]
    fn check_accepts_valid_choice_and_rejects_shifted_one(
        (exact, decimals) in any_distribution(40),
        place in any::<prop::sample::Index>(),
    ) {
        let questions = choice_of(exact.len());
        let rounded: Vec<f64> = exact.iter().map(|number| round(*number, decimals)).collect();
        let chosen = argmax(&exact).unwrap();
        prop_assert!(passes(&questions, &choice(&rounded, chosen), decimals));

        // Twice the highest rounding error, on one entry.
        let slack = as_number(exact.len()) * 10_f64.powi(-i32::try_from(decimals).unwrap()) + 1e-5;
        let mut off = rounded.clone();
        let place = place.index(off.len());
        off[place] += if off[place] + slack <= 1.0 { slack } else { -slack };
        prop_assert!(off[place] < 0.0 || !passes(&questions, &choice(&off, argmax(&off).unwrap()), decimals));

        let least = rounded.iter().copied().fold(f64::INFINITY, f64::min);
        let unlikely = rounded.iter().position(|number| *number <= least).unwrap();
        if rounded[unlikely] < rounded[chosen] {
            prop_assert!(!passes(&questions, &choice(&rounded, unlikely), decimals));
        }
    }

    #[test]
    fn check_accepts_valid_score_and_rejects_shifted_one((exact, decimals) in any_distribution(10), up in any::<bool>()) {
        let questions = score_of(exact.len());
        let rounded: Vec<f64> = exact.iter().map(|number| round(*number, decimals)).collect();
        let expected = round(expectation(&exact), decimals);
        prop_assert!(passes(&questions, &score(&rounded, expected), decimals));
        let levels = as_number(exact.len());
        let slack = (levels * levels + 2.0) * 10_f64.powi(-i32::try_from(decimals).unwrap()) + 1e-5;
        let off = if up { expected + slack } else { expected - slack };
        prop_assert!(!passes(&questions, &score(&rounded, off), decimals));
    }

    #[test]
    fn check_never_panics(text in r#"(\{|\}|\[|\]|"type"|"choice"|"probabilities"|"x"|:|,|1e999|-1|0\.5|null){0,24}"#) {
        let whole = format!("{{\"c\":{{\"type\":\"choice\",{text}}}}}");
        for text in [text, whole] {
            if let Ok(json) = Json::parse(&text) {
                let _ = Answers::check(&only("c"), &json, COMPUTED);
            }
        }
    }
}

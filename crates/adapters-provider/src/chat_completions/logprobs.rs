//! Conversion of first-token log-probabilities to label probabilities.

use wires::chat::provider_response::TokenProbability;

use super::labels::{label_index, trim_token};

/// The label probabilities from the first token.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelProbabilities {
    /// The weight of each label, not yet divided by their sum.
    pub weights: Vec<f64>,
    /// The probability that the model writes any label: the sum over all tokens that are a label.
    pub mass: f64,
}

/// Sums the spellings of each label. A label that is missing among the tokens gets the smaller of the smallest listed
/// probability and the unlisted probability.
pub fn read(tokens: &[TokenProbability], labels: &[char]) -> LabelProbabilities {
    let mut seen: Vec<Option<f64>> = vec![None; labels.len()];
    let (mut listed, mut least) = (0.0, 1.0_f64);
    for TokenProbability { token, probability } in tokens {
        listed += probability;
        least = least.min(*probability);
        if let Some(place) = label_index(token, labels) {
            *seen[place].get_or_insert(0.0) += probability;
        }
    }
    let mass: f64 = seen.iter().flatten().sum();
    let unseen = least.min(1.0 - listed).max(0.0);
    LabelProbabilities {
        weights: seen.into_iter().map(|weight| weight.unwrap_or(unseen)).collect(),
        mass: mass.min(1.0),
    }
}

/// Returns true if the likeliest token opens a tag, as reasoning models do.
pub fn opens_tag(tokens: &[TokenProbability]) -> bool {
    let likeliest = tokens.iter().max_by(|a, b| a.probability.total_cmp(&b.probability));
    likeliest.is_some_and(|likeliest| trim_token(&likeliest.token).starts_with('<'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(listed: &[(&str, f64)]) -> Vec<TokenProbability> {
        let token = |(token, probability): &(&str, f64)| TokenProbability {
            token: (*token).to_owned(),
            probability: *probability,
        };
        listed.iter().map(token).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn read_sums_spellings_of_a_label() {
        let listed = tokens(&[("A", 0.4), (" A", 0.2), ("b", 0.15), ("Ġa", 0.1), ("The", 0.1), ("▁B", 0.05)]);
        let reading = read(&listed, &['A', 'B']);
        assert!(close(reading.weights[0], 0.7) && close(reading.weights[1], 0.2), "{reading:?}");
        assert!(close(reading.mass, 0.9), "{reading:?}");
    }

    #[test]
    fn read_bounds_probability_of_unlisted_label() {
        let least = read(&tokens(&[("A", 0.6), ("B", 0.1)]), &['A', 'B', 'C']);
        assert!(close(least.weights[2], 0.1), "{least:?}");
        let left = read(&tokens(&[("A", 0.6), ("B", 0.375)]), &['A', 'B', 'C']);
        assert!(close(left.weights[2], 0.025), "{left:?}");
        assert!(close(left.mass, 0.975), "what is unseen is not counted");
        let over = read(&tokens(&[("A", 0.7), ("B", 0.4)]), &['A', 'B', 'C']);
        assert!(close(over.weights[2], 0.0) && close(over.mass, 1.0), "{over:?}");
    }

    #[test]
    fn opens_tag_detects_reasoning() {
        assert!(opens_tag(&tokens(&[("A", 0.1), ("<think>", 0.9)])));
        assert!(!opens_tag(&tokens(&[("A", 0.9), ("<think>", 0.1)])));
        assert!(!opens_tag(&[]));
    }

    proptest! {
        #[test]
        fn read_returns_probabilities_for_any_tokens(
            listed in prop::collection::vec(("[ \u{120}]?[a-cA-C]|.{0,3}", 0.0_f64..=1.0), 0..30),
        ) {
            let listed: Vec<TokenProbability> = listed
                .into_iter()
                .map(|(token, probability)| TokenProbability { token, probability: probability / 30.0 })
                .collect();
            let reading = read(&listed, &['A', 'B', 'C']);
            prop_assert!((0.0..=1.0).contains(&reading.mass));
            prop_assert!(reading.weights.iter().all(|weight| (0.0..=1.0).contains(weight)));
        }
    }
}

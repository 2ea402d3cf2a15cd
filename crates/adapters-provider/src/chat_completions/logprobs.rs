//! Conversion of first-token log-probabilities to label probabilities.

use super::labels::{bare, place_of};

/// A candidate for the first token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenProbability {
    /// Its text.
    pub token: String,
    /// From 0 to 1.
    pub probability: f64,
}

/// The label probabilities from the first token.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelReading {
    /// The weight of each label, not yet divided by their sum.
    pub weights: Vec<f64>,
    /// The probability that the model writes any label: the sum over all tokens that are a label.
    pub mass: f64,
}

/// Sums the spellings of each label. A label that is missing among the tokens gets the smaller of the smallest listed
/// probability and the unlisted probability.
pub fn read(tokens: &[TokenProbability], labels: &[char]) -> LabelReading {
    let mut seen: Vec<Option<f64>> = vec![None; labels.len()];
    let (mut told, mut least) = (0.0, 1.0_f64);
    for TokenProbability { token, probability } in tokens {
        told += probability;
        least = least.min(*probability);
        if let Some(place) = place_of(token, labels) {
            *seen[place].get_or_insert(0.0) += probability;
        }
    }
    let mass: f64 = seen.iter().flatten().sum();
    let unseen = least.min(1.0 - told).max(0.0);
    LabelReading { weights: seen.into_iter().map(|weight| weight.unwrap_or(unseen)).collect(), mass: mass.min(1.0) }
}

/// Returns true if the likeliest token opens a tag, as reasoning models do.
pub fn opens_a_tag(tokens: &[TokenProbability]) -> bool {
    let likeliest = tokens.iter().max_by(|a, b| a.probability.total_cmp(&b.probability));
    likeliest.is_some_and(|likeliest| bare(&likeliest.token).starts_with('<'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(told: &[(&str, f64)]) -> Vec<TokenProbability> {
        let token = |(token, probability): &(&str, f64)| TokenProbability {
            token: (*token).to_owned(),
            probability: *probability,
        };
        told.iter().map(token).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn spellings_of_a_label_are_summed() {
        let told = tokens(&[("A", 0.4), (" A", 0.2), ("b", 0.15), ("Ġa", 0.1), ("The", 0.1), ("▁B", 0.05)]);
        let reading = read(&told, &['A', 'B']);
        assert!(close(reading.weights[0], 0.7) && close(reading.weights[1], 0.2), "{reading:?}");
        assert!(close(reading.mass, 0.9), "{reading:?}");
    }

    #[test]
    fn an_unseen_label_gets_what_can_be_left_for_it() {
        let least = read(&tokens(&[("A", 0.6), ("B", 0.1)]), &['A', 'B', 'C']);
        assert!(close(least.weights[2], 0.1), "{least:?}");
        let left = read(&tokens(&[("A", 0.6), ("B", 0.375)]), &['A', 'B', 'C']);
        assert!(close(left.weights[2], 0.025), "{left:?}");
        assert!(close(left.mass, 0.975), "what is unseen is not counted");
        let over = read(&tokens(&[("A", 0.7), ("B", 0.4)]), &['A', 'B', 'C']);
        assert!(close(over.weights[2], 0.0) && close(over.mass, 1.0), "{over:?}");
    }

    #[test]
    fn a_model_that_thinks_is_seen() {
        assert!(opens_a_tag(&tokens(&[("A", 0.1), ("<think>", 0.9)])));
        assert!(!opens_a_tag(&tokens(&[("A", 0.9), ("<think>", 0.1)])));
        assert!(!opens_a_tag(&[]));
    }

    proptest! {
        #[test]
        fn weights_are_probabilities(
            told in prop::collection::vec(("[ \u{120}]?[a-cA-C]|.{0,3}", 0.0_f64..=1.0), 0..30),
        ) {
            let told: Vec<TokenProbability> = told
                .into_iter()
                .map(|(token, probability)| TokenProbability { token, probability: probability / 30.0 })
                .collect();
            let reading = read(&told, &['A', 'B', 'C']);
            prop_assert!((0.0..=1.0).contains(&reading.mass));
            prop_assert!(reading.weights.iter().all(|weight| (0.0..=1.0).contains(weight)));
        }
    }
}

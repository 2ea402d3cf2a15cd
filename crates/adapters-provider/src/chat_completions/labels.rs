//! The labels of options, the tokens that a model may write for them, and the probabilities of these tokens.

use domain::question::QuestionKind;
use wires::chat::provider_response::TokenProbability;

/// Most labels of one call: a label must be a single token that is no beginning of another label.
pub const MAX_LABELS: usize = 26;

/// The labelling scheme of a question's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// `A`, `B` and so on, by the position among the offered options.
    Letters,
    /// `0` to `9`, the number of the level.
    Digits,
}

impl Labels {
    /// Returns the scheme for a kind of question.
    pub fn of(kind: &QuestionKind) -> Self {
        match kind {
            QuestionKind::Score { .. } => Self::Digits,
            QuestionKind::Noul { .. } | QuestionKind::Choice { .. } | QuestionKind::Box => Self::Letters,
        }
    }

    /// Returns the label of each outcome in `offered`, in order. Supports at most 26 outcomes, and levels below 10.
    pub fn label(self, offered: &[usize]) -> Vec<char> {
        let sign = |first: u8, place: usize| char::from(first.saturating_add(u8::try_from(place).unwrap_or(u8::MAX)));
        match self {
            Self::Letters => (0..offered.len()).map(|place| sign(b'A', place)).collect(),
            Self::Digits => offered.iter().map(|level| sign(b'0', *level)).collect(),
        }
    }

    /// Returns the word for one label in the prompt.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Letters => "letter",
            Self::Digits => "digit",
        }
    }
}

/// Returns the most outcomes that one call can compare when the server reports this many probabilities.
pub fn capacity(top_logprobs: usize) -> usize {
    top_logprobs.clamp(2, MAX_LABELS)
}

/// Returns the index in `labels` of the label that a token writes. Ignores case and surrounding spaces, also as
/// tokenizers spell them (`Ġ` and `▁` for a space, `Ċ` for a line feed).
pub fn label_index(token: &str, labels: &[char]) -> Option<usize> {
    let mut signs = trim_token(token).chars();
    let (sign, rest) = (signs.next()?, signs.next());
    let sign = sign.to_ascii_uppercase();
    if rest.is_none() { labels.iter().position(|label| *label == sign) } else { None }
}

/// Returns the token without surrounding spaces.
pub(super) fn trim_token(token: &str) -> &str {
    token.trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, 'Ġ' | '▁' | 'Ċ'))
}

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn label_index_accepts_every_spelling() {
        let labels = Labels::Letters.label(&[4, 9, 2]);
        assert_eq!(labels, ['A', 'B', 'C']);
        for token in ["B", "b", " B", " b", "Ġb", "▁B", "B\n", "BĊ", "\tb "] {
            assert_eq!(label_index(token, &labels), Some(1), "{token:?}");
        }
        for token in ["", " ", "BB", "B.", "D", "ß", "▁", "0", "Be"] {
            assert_eq!(label_index(token, &labels), None, "{token:?}");
        }
    }

    #[test]
    fn labels_of_levels_are_their_digits() {
        assert_eq!(Labels::Digits.label(&[0, 3, 9]), ['0', '3', '9']);
        assert_eq!(label_index(" 9", &['0', '3', '9']), Some(2));
    }

    #[test]
    fn capacity_is_limited_to_single_letters() {
        assert_eq!([0, 2, 20, 26, 255].map(capacity), [2, 2, 20, 26, 26]);
        let all = Labels::Letters.label(&(0..MAX_LABELS).collect::<Vec<_>>());
        assert_eq!(all.last(), Some(&'Z'));
    }

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

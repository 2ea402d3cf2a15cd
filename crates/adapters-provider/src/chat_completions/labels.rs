//! The labels of options, and the tokens that a model may write for them.

use domain::question::QuestionKind;

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

#[cfg(test)]
mod tests {
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
}

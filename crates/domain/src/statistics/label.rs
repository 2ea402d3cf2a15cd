//! Labels as JSON.

use thiserror::Error;

use super::Decision;
use crate::json::Json;
use crate::question::QuestionKind;

/// The most valid labels that an error names.
const MAX_NAMED: usize = 20;
/// The longest label that an error shows, in characters.
const MAX_SHOWN: usize = 64;

/// A value is no label of its question.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{label} is not a label of this question; valid: {valid}")]
pub struct InvalidLabel {
    label: String,
    valid: String,
}

impl Decision {
    /// Reads a label: `true` or `false`, an option as it is named in the question, or the number of a level from 0.
    ///
    /// # Errors
    /// The question does not have the label; the error names the valid ones.
    pub fn from_label(kind: &QuestionKind, label: &Json) -> Result<Self, InvalidLabel> {
        let labels = labels_of(kind);
        let position = labels.iter().position(|valid| is_same(valid, label));
        let found = position.and_then(|position| match kind {
            QuestionKind::Noul { .. } => Some(Self::Noul(position == 0)),
            QuestionKind::Choice { .. } => Some(Self::Choice(position)),
            QuestionKind::Score { .. } => Some(Self::Score(position)),
            QuestionKind::Box => None,
        });
        found.ok_or_else(|| {
            let named: Vec<&str> = labels.iter().take(MAX_NAMED).map(Json::text).collect();
            let rest = labels.len().saturating_sub(MAX_NAMED);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let valid = if named.is_empty() { "none".to_owned() } else { format!("{}{more}", named.join(", ")) };
            InvalidLabel { label: label.text().chars().take(MAX_SHOWN).collect(), valid }
        })
    }
}

/// Returns the labels of a question, in the order of their positions.
fn labels_of(kind: &QuestionKind) -> Vec<Json> {
    let word = |word: &str| Json::parse(word).unwrap_or_else(|_| Json::string(word));
    match kind {
        QuestionKind::Noul { .. } => vec![word("true"), word("false")],
        QuestionKind::Choice { options } => {
            let label = |boolean: Option<bool>, name: &str| {
                boolean.map_or_else(|| Json::string(name), |boolean| word(&boolean.to_string()))
            };
            options.iter().map(|option| label(option.boolean, &option.name)).collect()
        }
        QuestionKind::Score { levels } => (0..levels.len()).map(|level| word(&level.to_string())).collect(),
        QuestionKind::Box => Vec::new(),
    }
}

/// Compares two labels: strings by their characters, others by their text.
fn is_same(valid: &Json, label: &Json) -> bool {
    match valid.as_string() {
        Some(name) => label.as_string() == Some(name),
        None => valid.text() == label.text(),
    }
}

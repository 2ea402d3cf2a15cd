//! Labels as JSON.

use thiserror::Error;

use super::Decision;
use crate::json::Json;
use crate::question::{ChoiceOption, QuestionKind};

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
    /// Reads a label: `true` or `false`, an option as it is named in the question, or the number of a level from 0. A
    /// table has strings only, so each may be a string. Spreadsheets and data frames write `TRUE`, `True` and `1.0`: the
    /// case of a boolean is ignored, and zeros after the point of a level. Options are exact.
    ///
    /// # Errors
    /// The question does not have the label; the error names the valid ones.
    pub fn from_label(kind: &QuestionKind, label: &Json) -> Result<Self, InvalidLabel> {
        let text = label.as_string().unwrap_or_else(|| label.text().to_owned());
        let found = match kind {
            QuestionKind::Noul { .. } => boolean_of(&text).map(Self::Noul),
            QuestionKind::Choice { options } => find_option(options, label).map(Self::Choice),
            QuestionKind::Score { levels } => level_of(&text, levels.len()).map(Self::Score),
            QuestionKind::Box => None,
        };
        found.ok_or_else(|| {
            let labels = labels_of(kind);
            let named: Vec<&str> = labels.iter().take(MAX_NAMED).map(Json::text).collect();
            let rest = labels.len().saturating_sub(MAX_NAMED);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let valid = if named.is_empty() { "none".to_owned() } else { format!("{}{more}", named.join(", ")) };
            InvalidLabel { label: label.text().chars().take(MAX_SHOWN).collect(), valid }
        })
    }

    /// Returns the decision as [`Self::from_label`] reads it; `None` if the question does not have it.
    pub fn to_label(self, kind: &QuestionKind) -> Option<Json> {
        match (self, kind) {
            (Self::Noul(yes), QuestionKind::Noul { .. }) => Some(word(if yes { "true" } else { "false" })),
            (Self::Choice(place), QuestionKind::Choice { options }) => options.get(place).map(label_of),
            (Self::Score(level), QuestionKind::Score { levels }) => {
                (level < levels.len()).then(|| word(&level.to_string()))
            }
            _ => None,
        }
    }
}

/// Returns true if the decision of an answer differs from its label, both as [`Decision::to_label`] writes them; for
/// levels, which are numbers, by more than `tolerance`.
pub fn is_error_as_written(decision: &Json, label: &Json, tolerance: usize) -> bool {
    let level = |json: &Json| json.text().parse().ok().map(Decision::Score);
    match level(decision).zip(level(label)) {
        Some((decision, label)) => decision.is_error(label, tolerance),
        None => !is_same(decision, label),
    }
}

/// Reads a boolean in any letter case.
fn boolean_of(text: &str) -> Option<bool> {
    let text = text.trim();
    [true, false].into_iter().find(|boolean| text.eq_ignore_ascii_case(&boolean.to_string()))
}

/// Reads a level: a whole number, also with zeros after a point.
fn level_of(text: &str, levels: usize) -> Option<usize> {
    let text = text.trim();
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    };
    (0..levels).find(|level| level.to_string() == whole)
}

/// Returns the position of an option. A string that is none of them is read as JSON: options may be booleans.
fn find_option(options: &[ChoiceOption], label: &Json) -> Option<usize> {
    let find = |label: &Json| options.iter().position(|option| is_same(&label_of(option), label));
    find(label).or_else(|| find(&Json::parse(&label.as_string()?).ok()?))
}

/// Returns the labels of a question, in the order of their positions.
fn labels_of(kind: &QuestionKind) -> Vec<Json> {
    match kind {
        QuestionKind::Noul { .. } => vec![word("true"), word("false")],
        QuestionKind::Choice { options } => options.iter().map(label_of).collect(),
        QuestionKind::Score { levels } => (0..levels.len()).map(|level| word(&level.to_string())).collect(),
        QuestionKind::Box => Vec::new(),
    }
}

/// Returns the label of an option.
fn label_of(option: &ChoiceOption) -> Json {
    option.boolean.map_or_else(|| Json::string(&option.name), |boolean| word(&boolean.to_string()))
}

/// Returns a boolean or a number.
fn word(word: &str) -> Json {
    Json::parse(word).unwrap_or_else(|_| Json::string(word))
}

/// Compares two labels: strings by their characters, others by their text.
fn is_same(valid: &Json, label: &Json) -> bool {
    match valid.as_string() {
        Some(name) => label.as_string() == Some(name),
        None => valid.text() == label.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noul() -> QuestionKind {
        QuestionKind::Noul { when_true: None, when_false: None }
    }

    #[test]
    fn written_decision_is_compared_as_its_question_would() {
        let is_error = |decision: &str, label: &str, tolerance| {
            let [decision, label] = [decision, label].map(|text| Json::parse(text).unwrap());
            is_error_as_written(&decision, &label, tolerance)
        };
        for (decision, label) in [("true", "true"), (r#""a""#, r#""\u0061""#), ("3", "3")] {
            assert!(!is_error(decision, label, 0), "{decision} {label}");
        }
        for (decision, label) in [("true", "false"), (r#""1""#, r#""2""#), (r#""true""#, "true"), ("1", "3")] {
            assert!(is_error(decision, label, 1), "{decision} {label}");
        }
        assert!(is_error("1", "2", 0) && !is_error("2", "1", 1));
    }

    #[test]
    fn label_is_read_as_spreadsheets_and_data_frames_write_it() {
        let score = QuestionKind::Score { levels: vec![Json::string("l"); 3] };
        let read = |kind: &QuestionKind, text: &str| Decision::from_label(kind, &Json::parse(text).unwrap()).ok();
        for (text, expected) in [("true", true), ("TRUE", true), ("True", true), ("FALSE", false), ("False", false)] {
            assert_eq!(read(&noul(), &format!("\"{text}\"")), Some(Decision::Noul(expected)), "{text}");
        }
        for text in ["1", "1.0", "1.00"] {
            assert_eq!(read(&score, text), Some(Decision::Score(1)), "{text}");
            assert_eq!(read(&score, &format!("\" {text}\"")), Some(Decision::Score(1)), "{text}");
        }
        for text in
            ["3", "3.0", "-1", "-0.0", "1.5", "1.01", "1e0", "true", "\"\"", "\"1.\"", "\"+1\"", "\"01\"", "[1]"]
        {
            assert_eq!(read(&score, text), None, "{text}");
        }
        for text in ["1", "1.0", "\"yes\"", "\"1\"", "\"\"", "null", "[true]"] {
            assert_eq!(read(&noul(), text), None, "{text}");
        }
    }

    #[test]
    fn labels_round_trip() {
        let choice =
            QuestionKind::Choice { options: ["a", "2", "true"].map(|name| ChoiceOption::new(name, None)).to_vec() };
        let score = QuestionKind::Score { levels: vec![Json::string("l"); 3] };
        for kind in [noul(), choice.clone(), score.clone()] {
            for label in labels_of(&kind) {
                let decision = Decision::from_label(&kind, &label).unwrap();
                assert_eq!(decision.to_label(&kind), Some(label));
            }
        }
        let read = |kind: &QuestionKind, text: &str| Decision::from_label(kind, &Json::parse(text).unwrap());
        for (kind, text) in
            [(&noul(), "1"), (&choice, "2"), (&choice, "true"), (&choice, "\"A\""), (&choice, "\"2.0\"")]
        {
            assert!(read(kind, text).is_err(), "{text}");
        }
        assert_eq!(Decision::Choice(3).to_label(&choice), None);
        assert_eq!(Decision::Score(3).to_label(&score), None);
        assert_eq!(Decision::Noul(true).to_label(&QuestionKind::Box), None);
        let options =
            QuestionKind::Choice { options: ["1", "true"].map(|name| ChoiceOption::new(name, None)).to_vec() };
        for (kind, text, expected) in [
            (&noul(), r#""false""#, Decision::Noul(false)),
            (&score, r#""2""#, Decision::Score(2)),
            (&options, r#""true""#, Decision::Choice(1)),
        ] {
            assert_eq!(read(kind, text), Ok(expected), "{text}");
        }
        let error = read(&choice, "[]").unwrap_err().to_string();
        assert_eq!(error, "[] is not a label of this question; valid: \"a\", \"2\", \"true\"");
    }
}

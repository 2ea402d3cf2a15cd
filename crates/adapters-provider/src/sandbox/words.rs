//! The words of a JSON value.

use std::collections::HashSet;

use domain::json::{Token, Tokens};

/// Stop words.
const COMMON: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "anything", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "did", "do", "does", "else", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "of", "on", "or", "other", "our", "she",
    "should", "so", "some", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// A set of words: lower case, without plural endings and stop words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words(HashSet<String>);

impl Words {
    /// Adds the words of a JSON text at any depth, member names included. Reads the text once, without recursion.
    pub(super) fn add_json(&mut self, json: &str) {
        for (token, range) in Tokens::new(json) {
            let text = &json[range];
            match token {
                Token::Name | Token::String => match serde_json::from_str::<String>(text) {
                    Ok(text) => self.add_text(&text),
                    // An invalid escape, such as a lone surrogate: the words around it still count.
                    Err(_) => self.add_text(text),
                },
                _ => self.add_text(text),
            }
        }
    }

    /// Adds the words of a text.
    pub(super) fn add_text(&mut self, text: &str) {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        for word in words.map(str::to_lowercase).filter(|word| COMMON.binary_search(&word.as_str()).is_err()) {
            self.0.insert(singular(word));
        }
    }

    /// Counts the words that `other` shares.
    pub(super) fn shared_with(&self, other: &Self) -> usize {
        self.0.iter().filter(|word| other.0.contains(*word)).count()
    }

    /// Counts the words that `other` shares and `against` does not.
    pub(super) fn shared_but_not_with(&self, other: &Self, against: &Self) -> usize {
        self.0.iter().filter(|word| other.0.contains(*word) && !against.0.contains(*word)).count()
    }
}

/// Returns the words of a JSON text.
pub(super) fn of_json(json: &str) -> Words {
    let mut words = Words::default();
    words.add_json(json);
    words
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(json: &str) -> Vec<String> {
        let mut words: Vec<String> = of_json(json).0.into_iter().collect();
        words.sort();
        words
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn add_json_unescapes_words_at_any_depth() {
        assert_eq!(
            sorted(r#"{"Subject":["It\u0027s a r\u00e9sum\u00e9","REFUNDS \"now\""],"n":{"x":42.5,"ok":true}}"#),
            ["42", "5", "n", "now", "ok", "refund", "résumé", "s", "subject", "true", "x"]
        );
    }

    #[test]
    fn add_json_accepts_invalid_text() {
        assert_eq!(sorted(r#""\ud800 smoke""#), ["smoke", "ud800"]);
        assert_eq!(sorted(r#""ends in \\""#), ["end"]);
        for text in ["", "\"", "\"\\", "\"\\\"", "null", &"[".repeat(100_000)] {
            of_json(text);
        }
    }
}

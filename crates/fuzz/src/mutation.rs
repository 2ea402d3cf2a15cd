//! Changes to JSON text that keep it valid: values are replaced; members and elements are removed, duplicated and
//! moved. Random bytes seldom pass a parser; these do.

use std::ops::Range;

use domain::json::{Token, Tokens};

use crate::random::Random;

/// Values on which parsers differ.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "2",
    "-1",
    "0.5",
    "1.0",
    "1e0",
    "0.07",
    "0.93",
    "1e999",
    "-1e999",
    "1e-999",
    "0.30000000000000004",
    "9007199254740993",
    "18446744073709551616",
    "1.0000001",
    "[]",
    "{}",
    "\"\"",
    "\" \"",
    "\"true\"",
    "\"null\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"é\"",
    "\"a\\\"b\\\\\"",
    "\"a\\nb\"",
    "\"[0]\"",
    "\"\u{2028}\"",
    "[[]]",
    "[{}]",
    "{\"\":null}",
    "{\"a\":1,\"a\":2}",
    "[null]",
    "\"noul\"",
    "\"choice\"",
    "\"score\"",
    "\"box\"",
    "\"predicate\"",
    "\"yes_no\"",
    "\"refusal\"",
    "\"question_0\"",
    "\"type\"",
    "\"name\"",
    "\"id\"",
];

/// The ranges of a JSON text that can be changed.
#[derive(Default)]
struct Places {
    /// Values and member names.
    values: Vec<Range<usize>>,
    /// Elements of arrays, and members of objects with their names.
    items: Vec<Range<usize>>,
}

/// Applies one change. A text without ranges is returned unchanged.
pub fn mutated(text: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut text = text.to_vec();
    for _ in 0..=random.below(3) {
        if let Some(changed) = changed(&text, &mut random) {
            text = changed;
        }
    }
    text
}

fn changed(text: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let places = places(text);
    let value = random.pick(&places.values)?.clone();
    let put = |at: Range<usize>, new: &[u8]| [&text[..at.start], new, &text[at.end..]].concat();
    match random.below(6) {
        0 => Some(put(value, random.pick(ODD)?.as_bytes())),
        1 => {
            let other = random.pick(&places.values)?.clone();
            Some(put(value, &text[other]))
        }
        2 => {
            let item = random.pick(&places.items)?.clone();
            Some(put(with_comma(text, item), b""))
        }
        3 => {
            let item = random.pick(&places.items)?.clone();
            let twice = [&text[item.clone()], b",", &text[item.clone()]].concat();
            Some(put(item, &twice))
        }
        4 => {
            let item = random.pick(&places.items)?.clone();
            let other = random.pick(&places.items)?.clone();
            Some(put(item, &text[other]))
        }
        _ => {
            let item = random.pick(&places.items)?.clone();
            let other = random.pick(&places.items)?.clone();
            let both = [&text[item.clone()], b",", &text[other]].concat();
            Some(put(item, &both))
        }
    }
}

/// Extends an item by the comma after it, or before the last item.
fn with_comma(text: &[u8], item: Range<usize>) -> Range<usize> {
    if text.get(item.end) == Some(&b',') {
        item.start..item.end + 1
    } else if item.start > 0 && text[item.start - 1] == b',' {
        item.start - 1..item.end
    } else {
        item
    }
}

/// Finds values and items in a text that need not be valid JSON.
fn places(text: &[u8]) -> Places {
    let mut places = Places::default();
    // The start of each open container and of its current item.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (token, range) in Tokens::new(text) {
        match token {
            Token::Object | Token::Array => open.push((range.start, range.end)),
            Token::Close => {
                if let Some((begin, item)) = open.pop() {
                    places.item(item..range.start);
                    places.values.push(begin..range.end);
                }
            }
            Token::Comma => {
                if let Some((_, item)) = open.last_mut() {
                    places.item(*item..range.start);
                    *item = range.end;
                }
            }
            Token::Colon => {}
            Token::Name | Token::String | Token::Number | Token::Word => places.values.push(range),
        }
    }
    places
}

impl Places {
    fn item(&mut self, place: Range<usize>) {
        if !place.is_empty() {
            self.items.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::json::Json;

    #[test]
    fn mutated_keeps_most_json_valid_and_changes_it() {
        let text = br#"{"a":[1,{"b":"x,\"y]"}],"c":{"d":null,"e":-1.5e3}}"#;
        let all: Vec<Vec<u8>> = (0..2000).map(|seed| mutated(text, seed)).collect();
        let json = all.iter().filter(|text| Json::parse(&String::from_utf8_lossy(text)).is_ok()).count();
        let same = all.iter().filter(|changed| **changed == text).count();
        assert!(json > 1000 && same < 300, "{json} {same}");
    }

    #[test]
    fn mutated_returns_text_without_json_unchanged() {
        for text in [&b""[..], b" ", b"\"", b"}]", b"\\"] {
            mutated(text, 7);
        }
        assert_eq!(mutated(b"", 7), b"");
    }
}

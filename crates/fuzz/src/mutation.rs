//! Changes to JSON text that keep it valid: values are replaced; members and elements are removed, duplicated and
//! moved. Random bytes seldom pass a parser; these do. Input that is not text has its bytes changed.

use std::ops::Range;

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

/// Replaces, removes or adds one to four bytes, or truncates the end.
pub fn mutated_bytes(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let [byte, ..] = random.next().to_le_bytes();
        match random.below(8) {
            0..=3 if !bytes.is_empty() => bytes[at] = byte,
            4 if !bytes.is_empty() => drop(bytes.remove(at)),
            5 => bytes.truncate(at),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
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
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => open.push((at, at + 1)),
            b'}' | b']' => {
                if let Some((begin, item)) = open.pop() {
                    places.item(item..at);
                    places.values.push(begin..at + 1);
                }
            }
            b',' => {
                if let Some((_, item)) = open.last_mut() {
                    places.item(*item..at);
                    *item = at + 1;
                }
            }
            b'"' => {
                let end = end_of_string(text, at);
                places.values.push(at..end);
                at = end;
                continue;
            }
            byte if byte == b'-' || byte.is_ascii_alphanumeric() => {
                let scalar = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let end = at + text[at..].iter().take_while(|byte| scalar(byte)).count();
                places.values.push(at..end);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
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

fn end_of_string(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
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
    fn mutated_bytes_changes_few_bytes() {
        let all: Vec<Vec<u8>> = (0..200).map(|seed| mutated_bytes(&[7; 20], seed)).collect();
        let changed = all.iter().filter(|bytes| **bytes != [7; 20]).count();
        let sevens = |bytes: &[u8]| bytes.iter().map(|byte| usize::from(*byte == 7)).sum::<usize>();
        let kept = all.iter().filter(|bytes| sevens(bytes) > 12).count();
        assert!(changed > 180 && kept > 80, "{changed} {kept}");
        assert!(mutated_bytes(&[], 3).len() < 6);
    }

    #[test]
    fn mutated_returns_text_without_json_unchanged() {
        for text in [&b""[..], b" ", b"\"", b"}]", b"\\"] {
            mutated(text, 7);
        }
        assert_eq!(mutated(b"", 7), b"");
    }
}

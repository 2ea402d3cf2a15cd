//! The positions of all values of a JSON text, found in one pass. Reading nested members without it scans the text once
//! for each level.

use std::ops::Range;

use super::Json;
use super::lexer::{is_space, scalar_end, string_end};
use super::part::{JsonPart, decode_name};

/// The longest text that is indexed; the index takes up to 12 times as many bytes.
const MAX_BYTES: usize = 64 << 10;
/// Bytes of text per value, for the first capacity.
const BYTES_PER_VALUE: usize = 20;

/// A value inside the indexed text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    name: (u32, u32),
    is_name_escaped: bool,
    value: (u32, u32),
    /// The number of nodes inside it, which follow it.
    inside: u32,
}

impl Node {
    /// Returns the name of a member without its quotes; `None` for a name with a lone surrogate.
    pub(super) fn name<'a>(&self, text: &'a str) -> Option<std::borrow::Cow<'a, str>> {
        decode_name(text, range(self.name), self.is_name_escaped)
    }

    pub(super) fn value(&self) -> Range<usize> {
        range(self.value)
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

/// Returns the values directly inside a value, each with those inside it, from all those inside it.
pub(super) fn children(nodes: &[Node]) -> impl Iterator<Item = (&Node, &[Node])> {
    let mut rest = nodes;
    std::iter::from_fn(move || {
        let (node, after) = rest.split_first()?;
        let (inside, after) = after.split_at_checked(node.inside as usize)?;
        rest = after;
        Some((node, inside))
    })
}

/// The positions of the values inside a [`Json`]; empty for a long one, whose values are found by scanning.
pub(crate) struct JsonIndex(Vec<Node>);

impl JsonIndex {
    pub(crate) fn of(json: &Json) -> Self {
        let bytes = json.whole.as_bytes();
        let is_short = bytes.len() <= MAX_BYTES;
        Self(if is_short { Indexer::new(bytes).read(json.start..json.end) } else { Vec::new() })
    }

    /// Returns the value that was indexed.
    pub(crate) fn part<'a>(&'a self, json: &'a Json) -> JsonPart<'a> {
        JsonPart { inside: &self.0, ..json.as_part() }
    }
}

/// An array or object around the position.
struct Open {
    node: usize,
    is_object: bool,
}

struct Indexer<'t> {
    bytes: &'t [u8],
    nodes: Vec<Node>,
    open: Vec<Open>,
}

impl<'t> Indexer<'t> {
    fn new(bytes: &'t [u8]) -> Self {
        Self { bytes, nodes: Vec::new(), open: Vec::new() }
    }

    /// Returns the values inside an array or object, in the order of the text.
    fn read(mut self, within: Range<usize>) -> Vec<Node> {
        let root = self.bytes.get(within.start).copied();
        if !matches!(root, Some(b'{' | b'[')) {
            return Vec::new();
        }
        self.nodes.reserve(within.len() / BYTES_PER_VALUE);
        let mut name = None;
        let mut at = within.start + 1;
        while at < within.end {
            let byte = self.bytes[at];
            if is_space(byte) || matches!(byte, b',' | b':') {
                at += 1;
                continue;
            }
            let is_in_object = self.open.last().map_or(root == Some(b'{'), |open| open.is_object);
            match byte {
                b'"' => {
                    let (end, is_escaped) = string_end(self.bytes, at + 1);
                    if is_in_object && name.is_none() {
                        name = Some((at + 1..end, is_escaped));
                    } else {
                        self.push(name.take(), at..end + 1);
                    }
                    at = end + 1;
                }
                b'{' | b'[' => {
                    self.open.push(Open { node: self.nodes.len(), is_object: byte == b'{' });
                    self.push(name.take(), at..at);
                    at += 1;
                }
                b'}' | b']' => {
                    at += 1;
                    // The last one closes the root.
                    if let Some(Open { node, .. }) = self.open.pop() {
                        let inside = self.nodes.len() - node - 1;
                        self.nodes[node].value.1 = position(at);
                        self.nodes[node].inside = position(inside);
                    }
                }
                _ => {
                    let end = scalar_end(self.bytes, at);
                    self.push(name.take(), at..end);
                    at = end;
                }
            }
        }
        self.nodes
    }

    fn push(&mut self, name: Option<(Range<usize>, bool)>, value: Range<usize>) {
        let (name, is_name_escaped) = name.unwrap_or((0..0, false));
        self.nodes.push(Node {
            name: (position(name.start), position(name.end)),
            is_name_escaped,
            value: (position(value.start), position(value.end)),
            inside: 0,
        });
    }
}

/// Converts a position, which is at most [`MAX_BYTES`].
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    /// Compares all values found with an index and without, and returns their number.
    fn assert_same(indexed: JsonPart<'_>, scanned: JsonPart<'_>) -> usize {
        assert_eq!(indexed.text(), scanned.text());
        match (indexed.members(), scanned.members()) {
            (Some(indexed), Some(scanned)) => {
                assert_eq!(indexed.len(), scanned.len());
                let pairs = indexed.iter().zip(&scanned);
                let same = |(one, other): (&super::super::Member<'_>, &super::super::Member<'_>)| {
                    assert_eq!(one.name, other.name);
                    assert_same(one.value, other.value)
                };
                return 1 + pairs.map(same).sum::<usize>();
            }
            (indexed, scanned) => assert_eq!(indexed.is_none(), scanned.is_none()),
        }
        match (indexed.elements(), scanned.elements()) {
            (Some(indexed), Some(scanned)) => {
                assert_eq!(indexed.len(), scanned.len());
                1 + indexed.into_iter().zip(scanned).map(|(one, other)| assert_same(one, other)).sum::<usize>()
            }
            (indexed, scanned) => {
                assert_eq!(indexed.is_none(), scanned.is_none());
                1
            }
        }
    }

    fn check(text: &str) -> usize {
        let json = Json::parse(text).unwrap();
        let index = JsonIndex::of(&json);
        assert_same(index.part(&json), json.as_part())
    }

    #[test]
    fn indexed_values_equal_scanned_ones() {
        assert_eq!(
            check(r#" {"a" : [1, {"\"b\\":null , "c":"}]"}, [], {} ] ,"\u0061":"x\n","":{ } , "e":-1.5e+3}"#),
            11
        );
        for text in ["1", "\"[1,2]\"", "null", "[]", "{}", "[ ]"] {
            assert_eq!(check(text), 1, "{text}");
        }
        assert_eq!(check("[[[[]]]]"), 4);
    }

    #[test]
    fn index_starts_within_text_and_reads_names_like_the_scanner() {
        let outer = Json::parse(r#"["x", {"a":[1,2],"\ud83d":3}]"#).unwrap();
        let inner = outer.elements().unwrap().remove(1);
        let index = JsonIndex::of(&inner);
        assert_eq!(index.0.len(), 4);
        assert!(index.part(&inner).members().is_none(), "a name with a lone surrogate");
        assert_eq!(index.part(&inner).text(), r#"{"a":[1,2],"\ud83d":3}"#);
    }

    #[test]
    fn long_text_is_read_without_an_index() {
        let long = format!("[{}\"x\"]", "1, ".repeat(MAX_BYTES / 3));
        let json = Json::parse(&long).unwrap();
        let index = JsonIndex::of(&json);
        assert!(index.0.is_empty());
        assert_eq!(index.part(&json).elements().unwrap().len(), MAX_BYTES / 3 + 1);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],: é]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a\"\\\\{}: é]{0,4}", inner), 0..5)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<String, Value>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_indexed_value_equals_scanned_one(value in value()) {
            check(&value.to_string());
            check(&serde_json::to_string_pretty(&value).unwrap());
        }
    }
}

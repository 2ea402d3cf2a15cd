//! Parts of an input item or of instructions.

use std::collections::HashSet;

use domain::json::{Json, JsonKind, Token, Tokens};

use super::format::{INPUT_IMAGE, INPUT_JSON, INPUT_TEXT};
use crate::canonical::{text, texts_of_parts};
use crate::provider::object;

/// Deepest nesting of an `input_json` part.
const MAX_DEPTH: usize = 32;
/// Most values in it.
const MAX_VALUES: usize = 10_000;
/// Most bytes of it.
const MAX_BYTES: usize = 256 << 10;

/// Builds a text part.
pub(super) fn of_text(text: &str) -> String {
    object([("type", Json::string(INPUT_TEXT).text()), ("text", Json::string(text).text())])
}

/// Builds a JSON part if the wire accepts the value, otherwise a text part.
pub(super) fn of_json(json: &Json) -> String {
    let structured = match json.kind() {
        JsonKind::Object => true,
        JsonKind::Array => json.elements().is_some_and(|elements| {
            !elements.is_empty() && elements.iter().all(|element| element.kind() == JsonKind::Object)
        }),
        _ => false,
    };
    if structured && json.text().len() <= MAX_BYTES && fits(json.text()) {
        object([("type", Json::string(INPUT_JSON).text()), ("data", json.text())])
    } else {
        of_text(&text(json))
    }
}

/// Returns true if a JSON text stays within the limits of depth and number of values.
fn fits(text: &str) -> bool {
    let (mut depth, mut values) = (0_usize, 0_usize);
    Tokens::new(text).all(|(token, _)| {
        match token {
            Token::Object | Token::Array => (depth, values) = (depth + 1, values + 1),
            Token::Close => depth = depth.saturating_sub(1),
            Token::String | Token::Number | Token::Word => values += 1,
            Token::Name | Token::Comma | Token::Colon => {}
        }
        depth <= MAX_DEPTH && values <= MAX_VALUES
    })
}

/// Returns the elements unchanged if they are parts of this wire; images only if `images` is true. An object with a
/// duplicate member is data and not a part, because the wire would reject it.
pub(super) fn of_this_wire(json: &Json, images: bool) -> Option<Vec<String>> {
    let elements = json.elements().filter(|elements| !elements.is_empty())?;
    let is_part = |element: &Json| {
        let members = element.members()?;
        let mut names = HashSet::new();
        if !members.iter().all(|(name, _)| names.insert(name.as_str())) {
            return None;
        }
        let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value);
        match member("type")?.as_string()?.as_str() {
            INPUT_TEXT => member("text")?.as_string().map(drop),
            INPUT_JSON => matches!(member("data")?.kind(), JsonKind::Object | JsonKind::Array).then_some(()),
            INPUT_IMAGE => images.then_some(()),
            _ => None,
        }
    };
    let texts = elements.iter().map(|element| is_part(element).map(|()| element.text().to_owned()));
    texts.collect()
}

/// Converts text parts of another wire.
pub(super) fn of_texts(json: &Json) -> Option<Vec<String>> {
    Some(texts_of_parts(json)?.iter().map(|text| of_text(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn kind(text: &str) -> String {
        let part = Json::parse(&of_json(&Json::parse(text).unwrap())).unwrap();
        part.members().unwrap()[0].1.as_string().unwrap()
    }

    #[rstest]
    #[case(r#"{"a":[1,"x"]}"#, "input_json")]
    #[case(r#"[{"a":1},{}]"#, "input_json")]
    #[case("{}", "input_json")]
    #[case("[]", "input_text")]
    #[case(r#"[{"a":1},2]"#, "input_text")]
    #[case("7.10", "input_text")]
    #[case(r#""x""#, "input_text")]
    fn of_json_keeps_objects_and_arrays_of_objects(#[case] json: &str, #[case] expected: &str) {
        assert_eq!(kind(json), expected);
    }

    #[test]
    fn of_this_wire_rejects_duplicate_members() {
        let parts = |text: &str| of_this_wire(&Json::parse(text).unwrap(), true).map(|parts| parts.len());
        assert_eq!(parts(r#"[{"type":"input_text","text":"a"},{"type":"input_json","data":{}}]"#), Some(2));
        assert_eq!(parts(r#"[{"type":"input_text","type":"input_text","text":"a"}]"#), None);
        assert_eq!(parts(r#"[{"type":"input_text","text":"a"},{"type":"input_text","text":"a","x":1,"x":1}]"#), None);
        assert_eq!(parts(r#"[{"type":"input_json","data":{"a":1,"a":2}}]"#), Some(1));
    }

    #[test]
    fn of_json_writes_text_above_limits() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!((kind(&deep(32)).as_str(), kind(&deep(33)).as_str()), ("input_json", "input_text"));
        // The object and its array are values themselves.
        let many = |values: usize| format!(r#"{{"a":[{}]}}"#, vec!["[,]\"".len().to_string(); values - 2].join(" , "));
        assert_eq!((kind(&many(10_000)).as_str(), kind(&many(10_001)).as_str()), ("input_json", "input_text"));
        let long = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        assert_eq!(long(MAX_BYTES).len(), MAX_BYTES);
        assert_eq!(
            (kind(&long(MAX_BYTES)).as_str(), kind(&long(MAX_BYTES + 1)).as_str()),
            ("input_json", "input_text")
        );
    }

    #[test]
    fn fits_ignores_commas_in_strings() {
        let many = format!(r#"{{"a":"{}\"{}"}}"#, ",".repeat(10_001), "[".repeat(40));
        assert_eq!(kind(&many), "input_json");
    }
}

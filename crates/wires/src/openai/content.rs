//! Items and parts of content, in both directions.

use std::collections::HashSet;

use domain::decision::InvalidDecision;
use domain::json::{Json, JsonKind, Token, Tokens};
use domain::question::StateForm;

use super::{INPUT_IMAGE, INPUT_JSON, INPUT_TEXT};
use crate::canonical::{text, texts_of_parts};
use crate::client::fields::Fields;
use crate::client::fields::element_path;
use crate::provider::object;

/// The canonical form of `input`.
pub(super) struct Input {
    pub(super) state: Json,
    pub(super) form: StateForm,
    pub(super) has_media: bool,
}

/// Reads `input`. A single user message with one text or JSON value becomes that value, so that the state is the same
/// on every wire; other input stays unchanged.
pub(super) fn read(input: &Json) -> Result<Input, InvalidDecision> {
    if input.kind() == JsonKind::String {
        return Ok(plain(input.clone()));
    }
    let items =
        input.iter_elements().ok_or_else(|| InvalidDecision::new("input", "must be a string or an array of items"))?;
    let mut calls = HashSet::new();
    let mut has_media = false;
    let mut only = None;
    let mut count = 0;
    for item in items {
        let item = Fields::new(&item, element_path("input", count))?;
        let content = read_item(&item, &mut calls)?;
        has_media |= content.has_media;
        only = content.only;
        count += 1;
    }
    if count == 0 {
        return Err(InvalidDecision::new("input", "must have at least one item"));
    }
    Ok(match only {
        Some(state) if count == 1 => plain(state),
        _ => Input { state: input.clone(), form: StateForm::OpenAiItems, has_media },
    })
}

/// Returns the same input as items with media. Images in instructions need items beside them.
pub(super) fn as_items(input: &Json) -> Input {
    let state = match input.kind() {
        JsonKind::String => {
            let item = Json::object([("role", "\"user\""), ("content", input.text())]);
            Json::array([item.text()])
        }
        _ => input.clone(),
    };
    Input { state, form: StateForm::OpenAiItems, has_media: true }
}

fn plain(state: Json) -> Input {
    Input { state, form: StateForm::Plain, has_media: false }
}

/// The content of an item.
#[derive(Default)]
struct Content {
    has_media: bool,
    /// The text or value, if it comes from a user and is the only one.
    only: Option<Json>,
}

fn read_item(item: &Fields, calls: &mut HashSet<String>) -> Result<Content, InvalidDecision> {
    match item.text("type")?.as_deref() {
        None | Some("message") => message(item),
        Some("function_call") => call(item, "arguments", calls),
        Some("custom_tool_call") => call(item, "input", calls),
        Some("function_call_output" | "custom_tool_call_output") => output(item, calls),
        Some(_) => Err(item.fault(
            "type",
            "must be message, function_call, function_call_output, custom_tool_call or custom_tool_call_output",
        )),
    }
}

fn message(item: &Fields) -> Result<Content, InvalidDecision> {
    match item.required_text("role")?.as_str() {
        "user" => parts(item, "content", &[INPUT_TEXT, INPUT_JSON, INPUT_IMAGE]),
        "developer" | "system" => Ok(Content { only: None, ..parts(item, "content", &[INPUT_TEXT])? }),
        "assistant" => Ok(Content { only: None, ..parts(item, "content", &["output_text", "refusal"])? }),
        _ => Err(item.fault("role", "must be user, developer, system or assistant")),
    }
}

fn call(item: &Fields, content: &str, calls: &mut HashSet<String>) -> Result<Content, InvalidDecision> {
    item.required_text("name")?;
    item.required_text(content)?;
    calls.insert(item.required_text("call_id")?);
    Ok(Content::default())
}

/// Reads the output of a preceding call.
fn output(item: &Fields, calls: &HashSet<String>) -> Result<Content, InvalidDecision> {
    if !calls.contains(&item.required_text("call_id")?) {
        return Err(item.fault("call_id", "names no earlier call"));
    }
    Ok(Content { only: None, ..parts(item, "output", &[INPUT_TEXT, INPUT_IMAGE])? })
}

/// Reads a string, or an array of parts of the given types.
fn parts(item: &Fields, name: &str, types: &[&str]) -> Result<Content, InvalidDecision> {
    let content = item.required(name)?;
    if content.kind() == JsonKind::String {
        return Ok(Content { has_media: false, only: Some(content) });
    }
    let elements = content.iter_elements().ok_or_else(|| item.fault(name, "must be a string or an array of parts"))?;
    let mut read = Content::default();
    let mut count = 0;
    for element in elements {
        let part = Fields::new(&element, element_path(&item.member_path(name), count))?;
        count += 1;
        let (value, is_media) = read_part(&part, types)?;
        read.has_media |= is_media;
        read.only = value.filter(|_| count == 1);
    }
    if count == 0 {
        return Err(item.fault(name, "must have at least one part"));
    }
    Ok(read)
}

/// Returns the text or JSON value of a part, and true if the part is media.
pub(super) fn read_part(part: &Fields, types: &[&str]) -> Result<(Option<Json>, bool), InvalidDecision> {
    let kind = part.required_text("type")?;
    if !types.contains(&kind.as_str()) {
        return Err(part.fault("type", format!("must be {}", types.join(" or "))));
    }
    match kind.as_str() {
        INPUT_IMAGE => {
            part.required_text("image_url")?;
            Ok((None, true))
        }
        INPUT_JSON => {
            let data = part.required("data")?;
            let is_object = |json: &Json| json.kind() == JsonKind::Object;
            if is_object(&data) || data.iter_elements().is_some_and(|mut all| all.all(|element| is_object(&element))) {
                Ok((Some(data), false))
            } else {
                Err(part.fault("data", "must be an object or an array of objects"))
            }
        }
        "refusal" => part.required_text("refusal").map(|_| (None, false)),
        _ => {
            part.required_text("text")?;
            Ok((part.get("text")?, false))
        }
    }
}

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
    use rstest::rstest;

    use super::*;

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

//! The subject of the questions: a text or the items of a conversation.

use std::collections::HashSet;

use domain::decision::InvalidDecision;
use domain::json::{Json, JsonKind};
use domain::question::StateForm;

use super::format::{INPUT_IMAGE, INPUT_JSON, INPUT_TEXT};
use crate::client::fields::Fields;
use crate::client::path;

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
        let item = Fields::new(&item, path::element("input", count))?;
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
        let part = Fields::new(&element, path::element(&item.member_path(name), count))?;
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

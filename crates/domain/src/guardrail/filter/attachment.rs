//! The content of an asset as text, if filters can read all of it.
//!
//! An asset is readable if everything in it is on the allow-list: one content that is text, and members that describe
//! it. Anything else could be content that a provider decodes and no filter has read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{Json, JsonKind};
use crate::question::{Asset, INLINE_CONTENT, StateForm, has_data_scheme, is_data_url};

/// Members that name the media type of the content.
const MEDIA_TYPES: [&str; 3] = ["media_type", "mime_type", "content_type"];

/// Members that describe an asset and hold no content. Their values are scalars.
const DESCRIPTIONS: [&str; 22] = [
    "type",
    "format",
    "name",
    "filename",
    "file_name",
    "title",
    "description",
    "caption",
    "alt",
    "alt_text",
    "label",
    "note",
    "comment",
    "language",
    "lang",
    "detail",
    "page",
    "pages",
    "width",
    "height",
    "size",
    "size_bytes",
];

/// Returns the content of an asset; `None` if it is not text, or if the asset has other content that filters cannot
/// read.
pub(super) fn readable_content(asset: &Asset) -> Option<String> {
    let members = asset.entry.members()?;
    let media_types = media_types(asset, &members)?;
    let is_text = |essence: &str| essence.starts_with("text/") || is_json_type(essence);
    let is_readable = |media_type: &String| is_text(&essence(media_type)) && is_utf8(media_type);
    if media_types.is_empty() || !media_types.iter().all(is_readable) {
        return None;
    }
    let mut inline = None;
    for (name, value) in &members {
        let is_content = INLINE_CONTENT.contains(&name.as_str());
        match value.kind() {
            JsonKind::Null => {}
            JsonKind::String if is_content && inline.is_none() => inline = value.as_string(),
            JsonKind::Object | JsonKind::Array => return None,
            _ if is_content || !is_description(name) => return None,
            _ if value.as_string().is_some_and(|text| has_data_scheme(&text)) => return None,
            _ => {}
        }
    }
    match (has_part(asset), inline) {
        (true, None) => std::str::from_utf8(&asset.data).ok().map(str::to_owned),
        (false, Some(inline)) => String::from_utf8(STANDARD.decode(inline).ok()?).ok(),
        _ => None,
    }
}

fn is_description(name: &str) -> bool {
    name == "part" || MEDIA_TYPES.contains(&name) || DESCRIPTIONS.contains(&name)
}

/// Returns true if the content of an asset came as a separate multipart part.
pub(super) fn has_part(asset: &Asset) -> bool {
    !asset.data.is_empty()
        || asset.entry.members().is_some_and(|members| members.iter().any(|(name, _)| name == "part"))
}

/// Returns true if a media type of the asset is JSON.
pub(super) fn is_json(asset: &Asset) -> bool {
    let media_types = asset.entry.members().and_then(|members| media_types(asset, &members)).unwrap_or_default();
    media_types.iter().any(|media_type| is_json_type(&essence(media_type)))
}

/// Returns every media type of an asset; `None` if one is not a string.
fn media_types(asset: &Asset, members: &[(String, Json)]) -> Option<Vec<String>> {
    let named =
        members.iter().filter(|(name, value)| MEDIA_TYPES.contains(&name.as_str()) && value.kind() != JsonKind::Null);
    let named = named.map(|(_, value)| value.as_string());
    asset.media_type.clone().map(Some).into_iter().chain(named).collect()
}

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json_type(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
}

/// Returns true if the media type names UTF-8 or no character set.
fn is_utf8(media_type: &str) -> bool {
    let lower = media_type.to_ascii_lowercase();
    let mut sets = lower.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    sets.all(|(name, value)| {
        let known = ["utf-8", "utf8", "us-ascii", "ascii"];
        name.trim() != "charset" || known.contains(&value.trim().trim_matches('"'))
    })
}

/// Returns the entry of an asset with its inline content emptied, because the content is filtered separately.
pub(super) fn without_content(asset: &Asset) -> String {
    let members = asset.entry.members().unwrap_or_default();
    if !members.iter().any(|(name, _)| INLINE_CONTENT.contains(&name.as_str())) {
        return asset.entry.text().to_owned();
    }
    replace_content(&members, "\"\"").text().to_owned()
}

/// Returns the asset with another entry and its present inline content.
pub(super) fn with_entry(asset: &Asset, entry: &str) -> Option<Asset> {
    let entry = Json::parse(entry).ok()?;
    let before = asset.entry.members()?;
    let kept = before.iter().find(|(name, _)| INLINE_CONTENT.contains(&name.as_str()));
    let entry = match kept {
        Some((_, content)) => replace_content(&entry.members()?, content.text()),
        None => entry,
    };
    Some(Asset { entry, ..asset.clone() })
}

/// Returns the asset with other content.
pub(super) fn with_content(asset: &Asset, content: &str) -> Option<Asset> {
    if has_part(asset) {
        return Some(Asset { data: content.as_bytes().into(), ..asset.clone() });
    }
    let entry = replace_content(&asset.entry.members()?, Json::string(&STANDARD.encode(content)).text());
    Some(Asset { entry, ..asset.clone() })
}

/// Returns the entry with its inline content replaced.
fn replace_content(members: &[(String, Json)], content: &str) -> Json {
    let replaced = members.iter().map(|(name, json)| {
        (name.as_str(), if INLINE_CONTENT.contains(&name.as_str()) { content } else { json.text() })
    });
    Json::object(replaced)
}

/// The rule for media that no filter can read, in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    /// The text is data for every provider and holds no media.
    Ignored,
    /// `data:` URLs, and the forms in which providers take images.
    InPlainJson,
    /// The same, and every member of a part or item of a wire format that is not on its allow-list.
    InParts(StateForm),
}

/// The types of media parts in wires that mark them only by type.
const PART_TYPES: [&str; 8] =
    ["image_url", "audio_url", "video_url", "file_url", "input_image", "input_audio", "input_video", "input_file"];
/// The types of media parts in a text that is known to consist of parts.
const MEDIUM_TYPES: [&str; 5] = ["image", "audio", "video", "document", "file"];
/// Members of a text part.
const PART_MEMBERS: [&str; 7] = ["type", "text", "data", "refusal", "annotations", "logprobs", "cache_control"];
/// Members of a conversation item.
const ITEM_MEMBERS: [&str; 13] = [
    "type",
    "role",
    "content",
    "id",
    "status",
    "name",
    "namespace",
    "call_id",
    "arguments",
    "input",
    "output",
    "phase",
    "cache_control",
];

impl Media {
    pub(super) fn for_form(form: StateForm) -> Self {
        match form {
            StateForm::Plain => Self::InPlainJson,
            form => Self::InParts(form),
        }
    }

    /// Returns true if a string is a medium by itself.
    pub(super) fn is_medium(self, value: &str) -> bool {
        self != Self::Ignored && is_data_url(value)
    }

    /// Returns true if a member with that name and string makes its object a medium. `depth` counts the arrays and
    /// objects around the member.
    pub(super) fn makes_medium(self, depth: usize, name: &str, value: &str) -> bool {
        let is_one_of = |types: &[&str]| types.iter().any(|known| value.eq_ignore_ascii_case(known));
        match (self, name) {
            (Self::Ignored, _) => false,
            (Self::InParts(form), "type") if depth == part_depth(form) => {
                is_one_of(&PART_TYPES) || is_one_of(&MEDIUM_TYPES)
            }
            (_, "type") => is_one_of(&PART_TYPES),
            // A structured value of this name is scanned; a string is base64 content.
            (Self::InParts(form), "data") => depth == part_depth(form),
            _ => false,
        }
    }

    /// Returns true if a member of that name may hold content that no filter reads.
    pub(super) fn is_unknown_member(self, depth: usize, name: &str) -> bool {
        match self {
            Self::InParts(form) if depth == part_depth(form) => !PART_MEMBERS.contains(&name),
            Self::InParts(StateForm::OpenAiItems) if depth == 2 => !ITEM_MEMBERS.contains(&name),
            _ => false,
        }
    }
}

/// Returns the number of arrays and objects around the members of a part: those of the parts, or also those of the
/// items that hold the parts.
fn part_depth(form: StateForm) -> usize {
    if form == StateForm::OpenAiItems { 4 } else { 2 }
}

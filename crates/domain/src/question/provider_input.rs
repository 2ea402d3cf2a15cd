//! The part of a request that providers receive, and its inline content.

use std::sync::Arc;

use super::{Question, Questions};
use crate::json::{Json, JsonKind, JsonPart, Member};

/// The complete part of a request that providers may receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInput {
    /// The questions.
    pub questions: Questions,
    /// The data that the questions refer to.
    pub state: Option<Json>,
    /// The format of `state`.
    pub state_form: StateForm,
    /// Images and other media besides the text.
    pub attachments: Attachments,
}

impl ProviderInput {
    /// Creates an input without attachments.
    pub fn new(questions: Questions, state: Option<Json>) -> Self {
        Self { questions, state, state_form: StateForm::Plain, attachments: Attachments::None }
    }

    /// Returns the same provider input with other questions, usually a subset.
    #[must_use]
    pub fn with_questions(&self, questions: Vec<Question>) -> Self {
        // Copied field by field: a clone of the whole would copy all questions for each sub-request.
        Self {
            questions: Questions::from_typed(questions),
            state: self.state.clone(),
            state_form: self.state_form,
            attachments: self.attachments.clone(),
        }
    }

    /// Returns the size in bytes without the questions.
    pub(crate) fn len_bytes_without_questions(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.text().len()) + self.attachments.len_bytes()
    }

    /// Returns the size in bytes of its JSON and its attachments, a lower bound of the data sent to a provider.
    pub fn len_bytes(&self) -> usize {
        self.questions.json.text().len() + self.len_bytes_without_questions()
    }
}

/// The format of a [`ProviderInput`]'s `state`. Every format is JSON and can be sent unchanged to a wire that takes any
/// JSON. A wire with the same format gets the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateForm {
    /// Any JSON value.
    Plain,
    /// The array of input items of the OpenAI Decisions wire.
    OpenAiItems,
    /// The array of input parts of the Gemini Decisions wire.
    GeminiParts,
}

/// Media beside or inside the state. Only endpoints that accept this form of media receive them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachments {
    /// No media.
    None,
    /// Assets of the System One wire.
    Assets(Vec<Asset>),
    /// The member `images`: an array, byte for byte.
    Images(Json),
    /// Media among the items or parts of the state.
    InState,
}

impl Attachments {
    /// Returns the size in bytes of their text or content.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::None | Self::InState => 0,
            Self::Assets(assets) => assets.iter().map(|asset| asset.entry.text().len() + asset.data.len()).sum(),
            Self::Images(images) => images.text().len(),
        }
    }
}

/// One asset of the System One wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Asset {
    /// The name by which the state refers to it.
    pub name: String,
    /// The entry as the caller wrote it: a JSON object. With inline content, the entry is complete and `data` is empty.
    pub entry: Json,
    /// The content if it came as a separate multipart part, else empty.
    pub data: Arc<[u8]>,
    /// The media type of that part.
    pub media_type: Option<String>,
}

impl std::fmt::Debug for Asset {
    /// Hides the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asset = &mut f.debug_struct("Asset");
        asset.field("bytes", &self.data.len()).field("media_type", &self.media_type).finish_non_exhaustive()
    }
}

/// Members of an asset with base64 content.
pub(crate) const INLINE_CONTENT: [&str; 3] = ["data", "data_base64", "base64"];

/// The depth to which the members of an asset are searched for content.
const MAX_DEPTH: usize = 4;

/// Returns the names of the members of an asset that hold inline content: base64, a `data:` URL, or an object with one
/// of these.
pub(crate) fn inline_contents<'m>(members: &'m [Member<'_>]) -> impl Iterator<Item = &'m str> {
    members.iter().filter(|member| is_content(member, MAX_DEPTH)).map(|member| &*member.name)
}

fn is_content(member: &Member<'_>, depth: usize) -> bool {
    INLINE_CONTENT.contains(&&*member.name) && !member.value.is_null() || holds_content(member.value, depth)
}

fn holds_content(value: JsonPart<'_>, depth: usize) -> bool {
    match value.kind() {
        JsonKind::String => value.as_str().is_some_and(|text| is_data_url(&text)),
        JsonKind::Object if depth > 0 => {
            let mut members = value.iter_members().into_iter().flatten().flatten();
            members.any(|member| is_content(&member, depth - 1))
        }
        JsonKind::Array if depth > 0 => value.iter_elements().any(|part| holds_content(part, depth - 1)),
        _ => false,
    }
}

/// Returns true for a `data:` URL that names a media type or base64.
pub(crate) fn is_data_url(text: &str) -> bool {
    let Some(rest) = after_data_scheme(text) else { return false };
    let header: Vec<u8> = rest.take_while(|byte| *byte != b',').map(|byte| byte.to_ascii_lowercase()).collect();
    // A URL without a comma has no content.
    if after_data_scheme(text).is_none_or(|mut rest| !rest.any(|byte| byte == b',')) {
        return false;
    }
    let mut parameters = header.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_token = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(byte))
    };
    let media_type = parameters.next().unwrap_or_default();
    let is_media_type = media_type.split(|byte| *byte == b'/').all(is_token) && media_type.contains(&b'/');
    is_media_type || parameters.any(|parameter| parameter == b"base64")
}

/// Returns true for any URL with the scheme `data`.
pub(crate) fn has_data_scheme(text: &str) -> bool {
    after_data_scheme(text).is_some()
}

/// Returns the bytes after `data:`, as URL parsers read them: they skip leading spaces and control characters, and tabs
/// and line breaks everywhere.
fn after_data_scheme(text: &str) -> Option<impl Iterator<Item = u8>> {
    let rest = text.bytes().skip_while(|byte| *byte <= b' ');
    let mut rest = rest.filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    b"data:".iter().all(|expected| rest.next().is_some_and(|byte| byte.eq_ignore_ascii_case(expected))).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("data:image/png;base64,AA==", true)]
    #[case("DATA:Image/SVG+xml,%3Csvg", true)]
    #[case(" \u{1}\nda\tta:\nimage/png,AA", true)]
    #[case("data: image/png ; base64 ,AA", true)]
    #[case("data:;base64,AA", true)]
    #[case("data:text/plain;charset=utf-8,a", true)]
    #[case("data:,a", false)]
    #[case("data: one, two", false)]
    #[case("data:image/png", false)]
    #[case("data", false)]
    #[case("the data:image/png,a", false)]
    #[case("https://example.org/a,b", false)]
    fn is_data_url_requires_media_type_or_base64(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_data_url(text), expected);
    }

    #[test]
    fn is_data_url_reads_headers_of_any_length() {
        assert!(is_data_url(&format!("data:image/png;x={};base64,AA", "y".repeat(10_000))));
    }
}

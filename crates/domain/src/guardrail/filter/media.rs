//! Images and other media within the JSON of a state or of questions.

use crate::question::StateForm;
use crate::question::inline_content::is_data_url;

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

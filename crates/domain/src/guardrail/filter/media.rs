//! Images and other media within the JSON of a state or of questions.

use crate::question::StateForm;
use crate::question::inline_content::is_data_url;

/// Which values of a JSON text are media that no filter can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    /// None: the text is data to every provider.
    Ignored,
    /// `data:` URLs, and parts that providers take images in.
    InPlainJson,
    /// These, and everything in a part or item of a wire that is not on its allow-list.
    InParts(StateForm),
}

/// Types of parts that hold a medium, on wires that name it by nothing else.
const PART_TYPES: [&str; 8] =
    ["image_url", "audio_url", "video_url", "file_url", "input_image", "input_audio", "input_video", "input_file"];
/// Types of parts that hold a medium where the text is known to consist of parts.
const MEDIUM_TYPES: [&str; 5] = ["image", "audio", "video", "document", "file"];
/// Members of a part of text.
const PART_MEMBERS: [&str; 7] = ["type", "text", "data", "refusal", "annotations", "logprobs", "cache_control"];
/// Members of an item of a conversation.
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
    pub(super) fn of(form: StateForm) -> Self {
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
            // Structure under this name is read; a string is content in base64.
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

/// Arrays and objects around the members of a part: those of the parts themselves, or of the items that hold them too.
fn part_depth(form: StateForm) -> usize {
    if form == StateForm::OpenAiItems { 4 } else { 2 }
}

//! The part of a request that providers receive.

use std::sync::Arc;

use super::{Question, Questions};
use crate::json::Json;

/// What a provider gets to see of a request, and all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInput {
    /// What is asked.
    pub questions: Questions,
    /// What it is asked about.
    pub state: Option<Json>,
    /// How `state` is to be read.
    pub state_form: StateForm,
    /// Images and other media beside the text.
    pub attachments: Attachments,
}

impl ProviderInput {
    /// Text alone.
    pub fn new(questions: Questions, state: Option<Json>) -> Self {
        Self { questions, state, state_form: StateForm::Plain, attachments: Attachments::None }
    }

    /// The same provider input with some of its typed questions only, each byte for byte as it was.
    #[must_use]
    pub fn with_questions(&self, questions: Vec<Question>) -> Self {
        // Field by field: a clone of the whole would copy every question for each part of a split.
        Self {
            questions: Questions::of_typed(questions),
            state: self.state.clone(),
            state_form: self.state_form,
            attachments: self.attachments.clone(),
        }
    }

    /// Bytes of all but its questions.
    pub(crate) fn len_bytes_around(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.text().len()) + self.attachments.len_bytes()
    }

    /// Bytes of its JSON and of its attachments: at least what a provider is sent of the caller's.
    pub fn len_bytes(&self) -> usize {
        self.questions.json.text().len() + self.len_bytes_around()
    }
}

/// How the `state` of a [`ProviderInput`] is to be read. Every form is JSON and can go as it is to a wire that takes any
/// JSON; a wire that has the form itself gets it back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateForm {
    /// Any JSON value.
    Plain,
    /// The array of input items of the OpenAI Decisions wire.
    OpenAiItems,
    /// The array of input parts of the Gemini Decisions wire.
    GeminiParts,
}

/// Media beside, or inside, the state. They travel only to an endpoint that takes them in the form that they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachments {
    /// None.
    None,
    /// The assets of the System One wire.
    Assets(Vec<Asset>),
    /// The member `images`: an array, byte for byte.
    Images(Json),
    /// Media stand among the items or parts of the state.
    InState,
}

impl Attachments {
    /// Bytes of their text or content.
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
    /// Its entry as the caller wrote it: a JSON object. With inline data the entry is whole and `data` is empty.
    pub entry: Json,
    /// The content where it came as a part of its own, else empty.
    pub data: Arc<[u8]>,
    /// The media type of that part.
    pub media_type: Option<String>,
}

impl std::fmt::Debug for Asset {
    /// Without the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asset = &mut f.debug_struct("Asset");
        asset.field("bytes", &self.data.len()).field("media_type", &self.media_type).finish_non_exhaustive()
    }
}

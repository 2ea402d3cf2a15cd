//! The part of a request that providers receive.

use std::sync::Arc;

use super::{Question, Questions};
use crate::json::Json;

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

//! Requests to a provider: the codec of a wire with its settings and limits, and bodies from JSON texts that are not
//! parsed again.

use std::sync::Arc;

use domain::json::Json;
use domain::question::{ChoiceOption, MAX_LEVELS, MAX_OPTIONS, ProviderInput, Question, QuestionType, Questions};
use domain::routing::{AttemptFailure, AttemptFailureKind, UnsupportedQuestions, Wire};

use super::answer::{BadAnswer, WireAnswer};
use super::errors::ReadError;

/// The codec of a wire with one request and one response per call.
pub trait WireCodec: Send + Sync + 'static {
    /// Returns the wire.
    fn wire(&self) -> Wire;

    /// Returns true if the wire rejects choices of one option and scores of one level. Those questions are answered
    /// locally and never written.
    fn refuses_single_outcomes(&self) -> bool;

    /// Builds the request body for a model with this name at the provider.
    ///
    /// # Errors
    /// The feature that the wire does not support.
    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire>;

    /// Returns the length of the body that [`Self::write`] builds.
    ///
    /// # Errors
    /// The feature that the wire does not support.
    fn body_length(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<u64, UnsupportedByWire> {
        self.write(upstream_model, provider_input).map(|body| body.len_bytes())
    }

    /// Reads the answers to these questions, in order.
    ///
    /// # Errors
    /// The malformed element.
    fn read(&self, questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer>;

    /// Returns the reader of errors that say more than their status. It is also applied to malformed answers, because
    /// some providers send errors with status 200.
    fn read_error(&self) -> Option<ReadError> {
        None
    }
}

/// The codec of a wire without dialects, as configured for one provider.
#[derive(Debug, Clone, Copy)]
pub struct VendorCodec {
    pub(crate) wire: Wire,
    pub(crate) model_location: ModelLocation,
    pub(crate) write: fn(Option<&str>, &ProviderInput) -> Result<RequestBody, UnsupportedByWire>,
    pub(crate) read: fn(&Questions, &[u8]) -> Result<WireAnswer, BadAnswer>,
    pub(crate) read_error: Option<ReadError>,
}

impl WireCodec for VendorCodec {
    fn wire(&self) -> Wire {
        self.wire
    }

    fn refuses_single_outcomes(&self) -> bool {
        true
    }

    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
        (self.write)(self.model_location.in_body(upstream_model), provider_input)
    }

    fn read(&self, questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
        (self.read)(questions, body)
    }

    fn read_error(&self) -> Option<ReadError> {
        self.read_error
    }
}

/// A request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestBody {
    /// JSON.
    Json(String),
    /// A form, in pieces, so that files are not copied.
    Form {
        /// The media type with the boundary.
        media_type: String,
        /// The content, in order.
        pieces: Vec<Piece>,
    },
}

/// A piece of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text: a head, or JSON.
    Text(String),
    /// The content of a file.
    File(Arc<[u8]>),
}

impl RequestBody {
    /// Returns the media type.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Json(_) => "application/json",
            Self::Form { media_type, .. } => media_type,
        }
    }

    /// Returns the length in bytes.
    pub fn len_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Json(text) => text.len(),
            Self::Form { pieces, .. } => pieces.iter().map(|piece| piece.as_bytes().len()).sum(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the whole content.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(text) => text.clone().into_bytes(),
            Self::Form { pieces, .. } => pieces.iter().flat_map(Piece::as_bytes).copied().collect(),
        }
    }
}

impl Piece {
    /// Returns the content.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::File(data) => data,
        }
    }
}

/// Builds a JSON object of the model's name, if given, and these members, whose values are JSON texts.
pub(crate) fn body(model: Option<&str>, members: &[(&str, &str)]) -> RequestBody {
    let model = model.map(Json::string);
    let members = model.iter().map(|model| ("model", model.text())).chain(members.iter().copied());
    RequestBody::Json(object(members))
}

/// Builds a JSON object of members with plain names, whose values are JSON texts.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let length: usize = members.clone().into_iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut text = String::with_capacity(length + 2);
    text.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push('"');
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
    text.push('}');
    text
}

/// The most questions, options and levels of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) questions: usize,
    pub(crate) options: usize,
    pub(crate) levels: usize,
}

impl Limits {
    /// Returns the limits by which the wire's endpoints are chosen; where the wire has none, those of the canonical form.
    pub(crate) const fn of(wire: Wire) -> Self {
        let limits = wire.limits();
        Self {
            questions: or(limits.max_questions, usize::MAX),
            options: or(limits.max_options, MAX_OPTIONS),
            levels: or(limits.max_levels, MAX_LEVELS),
        }
    }

    /// Returns the typed questions, if there are not too many for the wire.
    pub(crate) fn typed(self, provider_input: &ProviderInput) -> Result<&[Question], UnsupportedByWire> {
        let typed = provider_input.questions.typed.as_deref().ok_or(UnsupportedByWire::OpaqueQuestions)?;
        if typed.len() <= self.questions { Ok(typed) } else { Err(UnsupportedByWire::Questions(self.questions)) }
    }

    /// Checks the number of a choice's options.
    pub(crate) fn check_options(self, options: &[ChoiceOption]) -> Result<(), UnsupportedByWire> {
        let fits = (2..=self.options).contains(&options.len());
        if fits { Ok(()) } else { Err(UnsupportedByWire::Options(self.options)) }
    }

    /// Checks the number of a score's levels.
    pub(crate) fn check_levels(self, levels: &[Json]) -> Result<(), UnsupportedByWire> {
        let fits = (2..=self.levels).contains(&levels.len());
        if fits { Ok(()) } else { Err(UnsupportedByWire::Levels(self.levels)) }
    }
}

const fn or(limit: Option<usize>, other: usize) -> usize {
    match limit {
        Some(limit) => limit,
        None => other,
    }
}

/// The path and the header that a provider has unless its configuration says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// The path below the base URL.
    pub path: &'static str,
    /// The header that carries the key.
    pub auth_header: &'static str,
    /// The scheme before the key; empty is none.
    pub auth_scheme: &'static str,
}

/// The location of the model's name in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelLocation {
    /// In the body.
    #[default]
    Body,
    /// In the path; the body has no `model`.
    Path,
    /// The full name in the path, and its last segment in the body.
    Both,
}

impl ModelLocation {
    /// Returns the value of the body's member `model`; `None` to omit the member.
    pub fn in_body(self, upstream_model: &str) -> Option<&str> {
        match self {
            Self::Body => Some(upstream_model),
            Self::Path => None,
            Self::Both => Some(upstream_model.rsplit('/').next().unwrap_or(upstream_model)),
        }
    }
}

/// A feature of a provider input that the wire does not support. The request is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedByWire {
    /// Questions without types.
    #[error("its wire takes no questions of this form")]
    OpaqueQuestions,
    /// A question type.
    #[error("its wire has no {} questions", .0.as_str())]
    QuestionType(QuestionType),
    /// Images or other media in their current form.
    #[error("its wire takes no images in this form")]
    Attachments,
    /// More questions than this limit.
    #[error("its wire takes at most {0} questions")]
    Questions(usize),
    /// Fewer than 2 or more than this many options.
    #[error("its wire takes 2 to {0} options")]
    Options(usize),
    /// Fewer than 2 or more than this many levels.
    #[error("its wire takes 2 to {0} levels")]
    Levels(usize),
    /// A name or a text.
    #[error("its wire does not take {0}")]
    Text(#[from] UnsupportedQuestions),
    /// The name of a part of the body.
    #[error("an asset's part has a name that cannot be written")]
    PartName,
}

impl From<UnsupportedByWire> for AttemptFailure {
    fn from(unsupported: UnsupportedByWire) -> Self {
        Self::new(AttemptFailureKind::RejectedByProvider, format!("the provider was not asked: {unsupported}"))
    }
}

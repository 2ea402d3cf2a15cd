//! The members of a Decisions body of any wire, found in one pass and kept as raw JSON.

use domain::decision::DecisionDraft;
use domain::json::{Json, JsonText, PrecheckError, precheck};

use super::body_error::BodyError;
use super::json_members::read_members;

/// The members that a wire reads; `None` for one that is absent or null. Other members are skipped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Body<'t> {
    pub(crate) model: Option<JsonText<'t>>,
    pub(crate) models: Option<JsonText<'t>>,
    /// The member `questions`.
    pub questions: Option<JsonText<'t>>,
    /// The member `state`.
    pub state: Option<JsonText<'t>>,
    /// The member `input`.
    pub input: Option<JsonText<'t>>,
    pub(crate) assets: Option<JsonText<'t>>,
    pub(crate) images: Option<JsonText<'t>>,
    provider: Option<JsonText<'t>>,
    session_id: Option<JsonText<'t>>,
    trace: Option<JsonText<'t>>,
    user: Option<JsonText<'t>>,
    partial: Option<JsonText<'t>>,
    pub(crate) safety_identifier: Option<JsonText<'t>>,
    pub(crate) temperature: Option<JsonText<'t>>,
    pub(crate) chat_template_kwargs: Option<JsonText<'t>>,
    pub(crate) prompt_format_version: Option<JsonText<'t>>,
    pub(crate) return_prompt_token_ids: Option<JsonText<'t>>,
}

/// The members of System One bodies.
pub const SYSTEM_ONE_MEMBERS: [&str; 11] =
    ["model", "questions", "state", "provider", "session_id", "trace", "user", "models", "assets", "images", "partial"];

/// The members of bodies of all formats.
pub const ALL_MEMBERS: [&str; 17] = [
    "model",
    "questions",
    "state",
    "provider",
    "session_id",
    "trace",
    "user",
    "models",
    "assets",
    "images",
    "partial",
    "input",
    "safety_identifier",
    "temperature",
    "chat_template_kwargs",
    "prompt_format_version",
    "return_prompt_token_ids",
];

/// Returns a body as text that is safe to parse: valid UTF-8, limited nesting, no lone surrogates.
///
/// # Errors
/// The first violated rule.
pub fn text(bytes: &[u8]) -> Result<&str, BodyError> {
    let text = std::str::from_utf8(bytes).map_err(|_| BodyError::NotText)?;
    precheck(text).map_err(|fault| match fault {
        PrecheckError::TooDeep => BodyError::TooDeep,
        PrecheckError::LoneSurrogate => BodyError::LoneSurrogate,
    })?;
    Ok(text)
}

impl<'t> Body<'t> {
    /// Reads a System One body; members of other wires are ignored.
    ///
    /// # Errors
    /// The body is not JSON, is not an object, or has a member twice.
    pub fn read_system_one(text: &'t str) -> Result<Self, BodyError> {
        let [model, questions, state, provider, session_id, trace, user, models, assets, images, partial] =
            read_members(text, &SYSTEM_ONE_MEMBERS)?;
        Ok(Self {
            model,
            models,
            questions,
            state,
            assets,
            images,
            provider,
            session_id,
            trace,
            user,
            partial,
            ..Self::default()
        })
    }

    /// Reads a body of any wire.
    ///
    /// # Errors
    /// The body is not JSON, is not an object, or has a member twice.
    pub fn read_any(text: &'t str) -> Result<Self, BodyError> {
        let [
            model,
            questions,
            state,
            provider,
            session_id,
            trace,
            user,
            models,
            assets,
            images,
            partial,
            input,
            safety_identifier,
            temperature,
            chat_template_kwargs,
            prompt_format_version,
            return_prompt_token_ids,
        ] = read_members(text, &ALL_MEMBERS)?;
        Ok(Self {
            model,
            models,
            questions,
            state,
            input,
            assets,
            images,
            provider,
            session_id,
            trace,
            user,
            partial,
            safety_identifier,
            temperature,
            chat_template_kwargs,
            prompt_format_version,
            return_prompt_token_ids,
        })
    }

    /// Returns a draft with the members that all wires share.
    pub(crate) fn draft(&self) -> DecisionDraft {
        let own = |value: Option<JsonText<'_>>| value.map(Json::from);
        DecisionDraft {
            model: own(self.model),
            models: own(self.models),
            provider: own(self.provider),
            session_id: own(self.session_id),
            trace: own(self.trace),
            user: own(self.user),
            partial: own(self.partial),
            ..DecisionDraft::default()
        }
    }
}

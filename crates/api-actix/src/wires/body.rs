//! The members of a Decisions body of any wire, found in one pass and kept as raw JSON.

use domain::decision::DecisionDraft;
use domain::json::{Json, JsonText, PrecheckError, precheck};

use super::body_error::BodyError;
use crate::http::json_members::read_members;

/// The members that a wire reads; `None` for one that is absent or null. Other members are skipped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Body<'t> {
    pub(super) model: Option<JsonText<'t>>,
    pub(super) models: Option<JsonText<'t>>,
    pub(super) questions: Option<JsonText<'t>>,
    pub(super) state: Option<JsonText<'t>>,
    pub(super) input: Option<JsonText<'t>>,
    pub(super) assets: Option<JsonText<'t>>,
    pub(super) images: Option<JsonText<'t>>,
    provider: Option<JsonText<'t>>,
    session_id: Option<JsonText<'t>>,
    trace: Option<JsonText<'t>>,
    user: Option<JsonText<'t>>,
    partial: Option<JsonText<'t>>,
    pub(super) safety_identifier: Option<JsonText<'t>>,
    pub(super) temperature: Option<JsonText<'t>>,
    pub(super) chat_template_kwargs: Option<JsonText<'t>>,
    pub(super) prompt_format_version: Option<JsonText<'t>>,
    pub(super) return_prompt_token_ids: Option<JsonText<'t>>,
}

const SYSTEM_ONE_MEMBERS: [&str; 11] =
    ["model", "questions", "state", "provider", "session_id", "trace", "user", "models", "assets", "images", "partial"];

const ALL_MEMBERS: [&str; 17] = [
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
pub(crate) fn text(bytes: &[u8]) -> Result<&str, BodyError> {
    let text = std::str::from_utf8(bytes).map_err(|_| BodyError::NotText)?;
    precheck(text).map_err(|fault| match fault {
        PrecheckError::TooDeep => BodyError::TooDeep,
        PrecheckError::LoneSurrogate => BodyError::LoneSurrogate,
    })?;
    Ok(text)
}

impl<'t> Body<'t> {
    /// Reads a System One body; members of other wires are ignored.
    pub(super) fn read_system_one(text: &'t str) -> Result<Self, BodyError> {
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
    pub(super) fn read_any(text: &'t str) -> Result<Self, BodyError> {
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
    pub(super) fn draft(&self) -> DecisionDraft {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::gemini::schema::GeminiDecisionsRequest;
    use crate::wires::openai::schema::OpenAiDecisionsRequest;
    use crate::wires::sglang::schema::SglangDecisionsRequest;
    use crate::wires::system_one::schema::DecisionsRequest;
    use std::collections::BTreeSet;
    use utoipa::ToSchema;

    fn described<T: ToSchema>() -> BTreeSet<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn described_members_are_those_that_are_read() {
        let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(described::<DecisionsRequest>(), names(&SYSTEM_ONE_MEMBERS));
        let read = names(&ALL_MEMBERS);
        let mut openai = described::<OpenAiDecisionsRequest>();
        // Described as ignored.
        assert!(openai.remove("prompt_cache_key") && openai.remove("prompt_cache_options"));
        for described in [openai, described::<GeminiDecisionsRequest>(), described::<SglangDecisionsRequest>()] {
            assert!(described.is_subset(&read), "{described:?}");
        }
    }
}

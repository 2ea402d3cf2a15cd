//! Validates the members of a request body into a [`DecisionRequest`], with the path of a violation.

mod attachments;
mod canonical;
mod path;
mod preferences;
mod questions;

pub use attachments::AssetPart;

use std::borrow::Cow;
use std::sync::Arc;

use self::path::Path;
use super::{DecisionRequest, InvalidDecision};
use crate::json::{Json, JsonKind, JsonPart, count_commas};
use crate::question::{Attachments, BYTES_PER_QUESTION, ProviderInput, Question, Questions, StateForm};

/// The members of a request body, not yet validated. A null member counts as absent. The reader of the body MUST reject
/// strings with unpaired surrogates in escapes.
#[derive(Debug, Clone, Default)]
pub struct DecisionDraft {
    /// `model`
    pub model: Option<Json>,
    /// `models`: the fallback models.
    pub models: Option<Json>,
    /// `questions`
    pub questions: Option<Json>,
    /// Questions that another wire has already parsed, instead of `questions`.
    pub typed: Option<Vec<Question>>,
    /// `state`
    pub state: Option<Json>,
    /// The form of the state; `None` means plain JSON.
    pub state_form: Option<StateForm>,
    /// True if items or parts of the state contain media.
    pub media_in_state: bool,
    /// `assets`
    pub assets: Option<Json>,
    /// The content of assets that were sent as separate parts.
    pub asset_parts: Vec<AssetPart>,
    /// `images`
    pub images: Option<Json>,
    /// `provider`
    pub provider: Option<Json>,
    /// `session_id`
    pub session_id: Option<Json>,
    /// The `x-session-id` header; the body's `session_id` takes precedence.
    pub session_id_header: Option<String>,
    /// `trace`
    pub trace: Option<Json>,
    /// `user`
    pub user: Option<Json>,
    /// `partial`
    pub partial: Option<Json>,
}

/// The longest `trace`, in bytes of JSON: room for labels of a request, which every usage record stores.
const MAX_TRACE_BYTES: usize = 64 << 10;
/// The most characters of `session_id` and `user`.
const MAX_LABEL_CHARS: usize = 256;
/// The most models of one request.
const MAX_MODELS: usize = 16;

/// The most memory of a parsed asset beyond its text, with its parts of a scan, in bytes.
const BYTES_PER_ASSET: usize = 1024;

impl DecisionRequest {
    /// Returns the most memory that the questions of a preset take for each request beyond their text, in bytes: their
    /// evidence and outcomes. Requests share the parsed questions.
    pub fn question_structure_bytes(&self) -> usize {
        self.provider_input.questions.count().saturating_mul(BYTES_PER_QUESTION)
    }
}

impl DecisionDraft {
    /// Returns the most memory that the parsed questions and assets may take beyond their text, in bytes. Small ones
    /// take many times their text.
    pub fn structure_bytes(&self) -> usize {
        let unread = self.questions.as_ref().map_or(0, |json| Self::question_bytes(json.text()));
        let typed = self.typed.iter().flatten().map(Question::structure_bytes);
        let questions = typed.fold(unread, usize::saturating_add);
        let commas = self.assets.as_ref().map_or(0, |json| count_commas(json.text()));
        let assets = commas + self.asset_parts.len();
        questions.saturating_add(assets.saturating_mul(BYTES_PER_ASSET))
    }

    /// Returns the same for the JSON text of questions in any format.
    pub fn question_bytes(questions: &str) -> usize {
        count_commas(questions).saturating_mul(BYTES_PER_QUESTION)
    }

    /// Validates everything that needs no catalogue.
    ///
    /// Questions are *typed* if they are an object and any member looks like a question; then every member is
    /// validated. Other questions are opaque and pass unchanged, except `{}`, which is for requests with a preset only.
    ///
    /// # Errors
    /// The first violation, with its path.
    pub fn check(self) -> Result<DecisionRequest, InvalidDecision> {
        let (model, fallback_models) = models(present(self.model).as_ref(), present(self.models).as_ref())?;
        let questions = match self.typed {
            typed if preset_slug(&model).is_some() => no_questions(typed, self.questions)?,
            Some(typed) if typed.is_empty() => {
                return Err(InvalidDecision::new("questions", "must have at least one question"));
            }
            Some(typed) => Questions::from_typed(typed),
            None => Questions::read(required(self.questions, "questions")?)?,
        };
        let state = present(self.state);
        if questions.typed.is_some() {
            let kind = state.as_ref().map(Json::kind);
            if !matches!(kind, Some(JsonKind::String | JsonKind::Array | JsonKind::Object)) {
                let fault = kind.map_or("is required with typed questions".to_owned(), |kind| {
                    format!("must be a string, object or array with typed questions, not {}", kind.with_article())
                });
                return Err(InvalidDecision::new("state", fault));
            }
        }
        let session_id = match label(self.session_id, "session_id")? {
            Some(id) => Some(id),
            None => self.session_id_header.map(|id| within_limit(id, "x-session-id")).transpose()?,
        };
        let trace = present(self.trace).map(check_trace).transpose()?;
        let partial = match present(self.partial) {
            None => false,
            Some(json) if json.kind() == JsonKind::Bool => json.text() == "true",
            Some(_) => return Err(InvalidDecision::new("partial", "must be a boolean")),
        };
        let attachments =
            match attachments::read(present(self.assets).as_ref(), self.asset_parts, present(self.images))? {
                Attachments::None if self.media_in_state => Attachments::InState,
                Attachments::Assets(_) | Attachments::Images(_) if self.media_in_state => {
                    return Err(InvalidDecision::new("state", "has media, but others are given too; use one of them"));
                }
                other => other,
            };
        let state_form = self.state_form.unwrap_or(StateForm::Plain);
        Ok(DecisionRequest {
            model,
            fallback_models,
            provider_input: Arc::new(ProviderInput { questions, state, state_form, attachments }),
            preferences: preferences::read(present(self.provider))?,
            partial,
            session_id,
            trace,
            user: label(self.user, "user")?,
            preset: None,
            cascade: None,
        })
    }
}

/// Returns the first model and its fallbacks, without duplicates.
fn models(model: Option<&Json>, more: Option<&Json>) -> Result<(String, Vec<String>), InvalidDecision> {
    let name = |json: JsonPart<'_>, path: &Path<'_>| {
        let name = json.as_str().filter(|name| !name.is_empty());
        name.map(Cow::into_owned).ok_or_else(|| path.fault("must be a non-empty string"))
    };
    let mut names = Vec::new();
    if let Some(model) = model {
        names.push(name(model.as_part(), &Path::Root("model"))?);
    }
    if let Some(more) = more {
        let root = Path::Root("models");
        if more.kind() != JsonKind::Array {
            return Err(root.fault("must be an array of model names"));
        }
        if more.as_part().iter_elements().nth(MAX_MODELS).is_some() {
            return Err(root.fault(format!("must have at most {MAX_MODELS} names")));
        }
        for (index, json) in more.as_part().iter_elements().enumerate() {
            let name = name(json, &Path::Element(&root, index))?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return Err(InvalidDecision::new("model", "is required"));
    }
    if names.len() > 1 && names.iter().any(|name| preset_slug(name).is_some()) {
        return Err(InvalidDecision::new("models", "must be absent with a preset, which has its own models"));
    }
    let first = names.remove(0);
    Ok((first, names))
}

fn present(member: Option<Json>) -> Option<Json> {
    member.filter(|json| json.kind() != JsonKind::Null)
}

fn required(member: Option<Json>, path: &str) -> Result<Json, InvalidDecision> {
    present(member).ok_or_else(|| InvalidDecision::new(path, "is required"))
}

fn label(member: Option<Json>, path: &str) -> Result<Option<String>, InvalidDecision> {
    present(member)
        .map(|json| {
            let text = json.as_string().ok_or_else(|| InvalidDecision::new(path, "must be a string"))?;
            within_limit(text, path)
        })
        .transpose()
}

fn check_trace(trace: Json) -> Result<Json, InvalidDecision> {
    if trace.kind() != JsonKind::Object {
        return Err(InvalidDecision::new("trace", "must be an object"));
    }
    let bytes = trace.text().len();
    if bytes > MAX_TRACE_BYTES {
        let fault = format!("must take at most {MAX_TRACE_BYTES} bytes as JSON, not {bytes}; send less metadata");
        return Err(InvalidDecision::new("trace", fault));
    }
    Ok(trace)
}

fn within_limit(text: String, path: &str) -> Result<String, InvalidDecision> {
    if text.len() > MAX_LABEL_CHARS && text.chars().count() > MAX_LABEL_CHARS {
        return Err(InvalidDecision::new(path, format!("must have at most {MAX_LABEL_CHARS} characters")));
    }
    Ok(text)
}

/// The prefix of the model names that stand for presets.
pub(in crate::decision) const PRESET_PREFIX: &str = "@preset/";

/// Returns the slug of the preset that a model name stands for.
pub(super) fn preset_slug(model: &str) -> Option<&str> {
    model.strip_prefix(PRESET_PREFIX)
}

/// Checks that a request with a preset has no questions. Returns the questions until the preset is resolved: none.
pub(super) fn no_questions(typed: Option<Vec<Question>>, json: Option<Json>) -> Result<Questions, InvalidDecision> {
    let is_empty =
        |json: Json| json.kind() == JsonKind::Null || json.members().is_some_and(|members| members.is_empty());
    if typed.is_none_or(|typed| typed.is_empty()) && json.is_none_or(is_empty) {
        return Ok(Questions::from_typed(Vec::new()));
    }
    Err(InvalidDecision::new("questions", "must be {} with a preset, which has its own questions"))
}

impl DecisionRequest {
    /// Returns the slug of the preset that the model name stands for.
    pub fn preset_slug(&self) -> Option<&str> {
        preset_slug(&self.model)
    }
}

#[cfg(test)]
mod tests;

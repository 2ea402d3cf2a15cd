//! Requests that name a preset: they have no questions, and no further models.

use crate::decision::{DecisionRequest, InvalidDecision};
use crate::json::{Json, JsonKind};
use crate::question::{Question, Questions};

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

//! Reads the configuration of presets.

use super::{DecisionDraft, DecisionRequest, InvalidDecision};
use crate::json::Json;
use crate::preset::PresetConfig;

impl PresetConfig {
    /// Reads a configuration from the members `model`, `models` and `questions` of an object, as of a request.
    ///
    /// # Errors
    /// The first violation, with its path.
    pub fn read(json: &Json) -> Result<Self, InvalidDecision> {
        let mut draft = DecisionDraft { state: Some(Json::string("")), ..DecisionDraft::default() };
        for (name, value) in json.members().unwrap_or_default() {
            match name.as_str() {
                "model" => draft.model = Some(value),
                "models" => draft.models = Some(value),
                "questions" => draft.questions = Some(value),
                _ => {}
            }
        }
        let request = draft.check()?;
        if request.preset_slug().is_some() {
            return Err(InvalidDecision::new("model", "must be a model, not a preset"));
        }
        let DecisionRequest { model, fallback_models, provider_input, .. } = request;
        let questions = provider_input.questions.clone();
        if questions.typed.is_none() {
            let fault = "must be an object that maps names to questions, for example {\"urgent\": {\"type\": \"noul\", \
                         \"instructions\": \"Is it urgent?\"}}";
            return Err(InvalidDecision::new("questions", fault));
        }
        let models = std::iter::once(model).chain(fallback_models).collect();
        let config = Self { models, questions };
        if config.to_json().text().len() > Self::MAX_BYTES {
            let fault = format!("must take at most {} bytes as JSON with the models", Self::MAX_BYTES);
            return Err(InvalidDecision::new("questions", fault));
        }
        Ok(config)
    }
}

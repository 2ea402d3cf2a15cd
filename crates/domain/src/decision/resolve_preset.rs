//! Replaces the preset of a request by its models and questions.

use std::sync::Arc;

use super::{DecisionRequest, SubmitDecisionError};
use crate::api_key::InferenceKey;
use crate::preset::{DesignatedPreset, PresetSlug, PresetStatus, Presets};
use crate::question::ProviderInput;

/// Resolves the presets that requests name. The request is then submitted like any other, so that guardrails and limits
/// apply to the models of the preset.
pub struct ResolvePreset(Arc<dyn Presets>);

impl ResolvePreset {
    /// Wires the port.
    pub fn new(presets: Arc<dyn Presets>) -> Self {
        Self(presets)
    }

    /// Replaces the preset that the request names by the models and the questions of its designated version. Another
    /// request is returned unchanged.
    ///
    /// # Errors
    /// The workspace of the key has no active preset of this name, or the store failed.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        request: DecisionRequest,
    ) -> Result<DecisionRequest, SubmitDecisionError> {
        let Some(name) = request.preset_slug() else { return Ok(request) };
        let found = match PresetSlug::try_new(name) {
            Ok(slug) => self.0.find_designated(key.workspace_id(), &slug).await?,
            // No preset has such a name.
            Err(_) => None,
        };
        replace_preset(request, found.as_deref())
    }
}

/// Replaces the preset that a request names.
///
/// # Errors
/// It is not found or not active.
pub(super) fn replace_preset(
    request: DecisionRequest,
    found: Option<&DesignatedPreset>,
) -> Result<DecisionRequest, SubmitDecisionError> {
    let status = found.map(|found| found.preset.status);
    let Some(found) = found.filter(|_| status == Some(PresetStatus::Active)) else {
        let slug = request.preset_slug().unwrap_or_default().to_owned();
        return Err(SubmitDecisionError::UnknownPreset { slug, status });
    };
    let config = &found.version.config;
    let mut models = config.models.iter().cloned();
    let input = Arc::unwrap_or_clone(request.provider_input);
    Ok(DecisionRequest {
        model: models.next().unwrap_or_default(),
        fallback_models: models.collect(),
        provider_input: Arc::new(ProviderInput { questions: config.questions.clone(), ..input }),
        preset: Some(found.reference()),
        cascade: config.cascade.clone(),
        ..request
    })
}

#[cfg(test)]
mod tests;

//! The keys of `[[providers]]` that `[[endpoints]]` can override.

use domain::decision::QuestionType;
use domain::routing::{AttachmentForm, ConfidenceSource, EndpointLimits, Wire};

use super::build::{alternatives, optional_choice, within};
use super::entries::Table;
use super::{CapabilitySettings, ConfigError};

/// Parses the keys of a provider or an endpoint.
pub fn capabilities(table: &Table, wire: Wire) -> Result<CapabilitySettings, ConfigError> {
    let sources = [ConfidenceSource::SystemOne, ConfidenceSource::Computed, ConfidenceSource::Native];
    let said = CapabilitySettings {
        confidence: optional_choice(table, "confidence", &sources.map(|source| (source.as_str(), source)))?,
        // The domain computes with 64-bit floats, which have 15 significant decimals.
        decimals: within(table, "probability_decimals", 1..=15)?,
        images: images(table, wire)?,
        question_types: question_types(table, wire)?,
        limits: limits(table)?,
        zdr: table.switch("zdr"),
        collects: optional_choice(table, "data_collection", &[("allow", true), ("deny", false)])?,
    };
    if said.zdr == Some(true) && said.collects == Some(true) {
        return Err(table.fault("data_collection", "is \"allow\", which contradicts zdr = true"));
    }
    Ok(said)
}

/// Returns true if a wire can carry media in this form.
fn carries(wire: Wire, form: AttachmentForm) -> bool {
    match form {
        AttachmentForm::None => true,
        AttachmentForm::Assets => wire == Wire::SystemOne,
        AttachmentForm::Images => matches!(wire, Wire::SystemOne | Wire::SglangDecisions),
        AttachmentForm::InState => matches!(wire, Wire::OpenAiDecisions | Wire::GeminiDecisions),
    }
}

fn images(table: &Table, wire: Wire) -> Result<Option<AttachmentForm>, ConfigError> {
    let forms = [AttachmentForm::None, AttachmentForm::Assets, AttachmentForm::Images, AttachmentForm::InState];
    let form = optional_choice(table, "image_transport", &forms.map(|form| (form.as_str(), form)))?;
    if let Some(form) = form.filter(|form| !carries(wire, *form)) {
        let possible: Vec<&str> =
            forms.into_iter().filter(|form| carries(wire, *form)).map(AttachmentForm::as_str).collect();
        return Err(table.fault(
            "image_transport",
            format!("is {:?}, but the wire {} supports {} only", form.as_str(), wire.as_str(), alternatives(&possible)),
        ));
    }
    Ok(form)
}

fn question_types(table: &Table, wire: Wire) -> Result<Option<Vec<QuestionType>>, ConfigError> {
    if !table.has("question_types") {
        return Ok(None);
    }
    let mut types = Vec::new();
    for name in table.texts("question_types") {
        let Some(question_type) = QuestionType::from_name(name) else {
            let known = QuestionType::ALL.map(QuestionType::as_str);
            return Err(table.fault("question_types", format!("must hold {}", alternatives(&known))));
        };
        if !wire.supports_type(question_type) {
            let fault = format!("holds {name:?}, which the wire {} does not support", wire.as_str());
            return Err(table.fault("question_types", fault));
        }
        if !types.contains(&question_type) {
            types.push(question_type);
        }
    }
    if types.is_empty() {
        return Err(table.fault("question_types", "must not be empty"));
    }
    Ok(Some(types))
}

fn limits(table: &Table) -> Result<EndpointLimits, ConfigError> {
    Ok(EndpointLimits {
        max_questions: within(table, "max_questions", 1..=1_000_000)?,
        // Requests have at most 255 options and 10 levels.
        max_options: within(table, "max_options", 1..=255)?,
        max_levels: within(table, "max_levels", 1..=255)?,
        max_body_bytes: within(table, "max_body_bytes", 1..=LARGEST)?,
        max_input_tokens: within(table, "max_input_tokens", 1..=LARGEST)?,
    })
}

/// A tebibyte: above any request.
const LARGEST: u64 = 1 << 40;

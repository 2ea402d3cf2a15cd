//! The keys of `[[providers]]` that `[[endpoints]]` can override.

use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, EndpointLimits, Wire};
use serde::Deserialize;

use super::section::Section;
use super::values::{Name, Named, Within, alternatives, nearest_hint};
use super::{CapabilitySettings, ConfigError};

/// A tebibyte: above any request.
const LARGEST: u64 = 1 << 40;

/// The keys that providers and endpoints share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCapabilities {
    confidence: Option<Name<ConfidenceSource>>,
    // The domain computes with 64-bit floats, which have 15 significant decimals.
    probability_decimals: Option<Within<u32, 1, 15>>,
    image_transport: Option<Name<AttachmentForm>>,
    question_types: Option<Vec<String>>,
    max_questions: Option<Within<usize, 1, 1_000_000>>,
    // Requests have at most 255 options and 10 levels.
    max_options: Option<Within<usize, 1, 255>>,
    max_levels: Option<Within<usize, 1, 255>>,
    max_body_bytes: Option<Within<usize, 1, LARGEST>>,
    max_input_tokens: Option<Within<usize, 1, LARGEST>>,
    zdr: Option<bool>,
    data_collection: Option<DataCollection>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DataCollection {
    Allow,
    Deny,
}

impl Named for ConfidenceSource {
    fn names() -> Vec<(&'static str, Self)> {
        [Self::SystemOne, Self::Computed, Self::Native].map(|source| (source.as_str(), source)).to_vec()
    }
}

/// The forms of media.
const FORMS: [AttachmentForm; 4] =
    [AttachmentForm::None, AttachmentForm::Assets, AttachmentForm::Images, AttachmentForm::InState];

impl Named for AttachmentForm {
    fn names() -> Vec<(&'static str, Self)> {
        FORMS.map(|form| (form.as_str(), form)).to_vec()
    }
}

/// Checks the keys of a provider or an endpoint.
pub fn capabilities(section: &Section<RawCapabilities>, wire: Wire) -> Result<CapabilitySettings, ConfigError> {
    let said = CapabilitySettings {
        confidence: section.confidence.map(Name::get),
        decimals: section.probability_decimals.map(Within::get),
        images: images(section, wire)?,
        question_types: question_types(section, wire)?,
        limits: EndpointLimits {
            max_questions: section.max_questions.map(Within::get),
            max_options: section.max_options.map(Within::get),
            max_levels: section.max_levels.map(Within::get),
            max_body_bytes: section.max_body_bytes.map(Within::get),
            max_input_tokens: section.max_input_tokens.map(Within::get),
        },
        zdr: section.zdr,
        collects: section.data_collection.map(|collection| collection == DataCollection::Allow),
    };
    if said.zdr == Some(true) && said.collects == Some(true) {
        return Err(section.fault("data_collection", "is \"allow\", which contradicts zdr = true"));
    }
    Ok(said)
}

fn images(section: &Section<RawCapabilities>, wire: Wire) -> Result<Option<AttachmentForm>, ConfigError> {
    let form = section.image_transport.map(Name::get);
    if let Some(form) = form.filter(|form| !wire.carries(*form)) {
        let possible: Vec<&str> =
            FORMS.into_iter().filter(|form| wire.carries(*form)).map(AttachmentForm::as_str).collect();
        return Err(section.fault(
            "image_transport",
            format!("is {:?}, but the wire {} supports {} only", form.as_str(), wire.as_str(), alternatives(&possible)),
        ));
    }
    Ok(form)
}

fn question_types(section: &Section<RawCapabilities>, wire: Wire) -> Result<Option<Vec<QuestionType>>, ConfigError> {
    let Some(names) = &section.question_types else { return Ok(None) };
    let mut types = Vec::new();
    for name in names {
        let Some(question_type) = QuestionType::from_name(name) else {
            let known = QuestionType::ALL.map(QuestionType::as_str);
            let fault = format!("must hold {}{}", alternatives(&known), nearest_hint(name, &known));
            return Err(section.fault("question_types", fault));
        };
        if !wire.supports_type(question_type) {
            let fault = format!("holds {name:?}, which the wire {} does not support", wire.as_str());
            return Err(section.fault("question_types", fault));
        }
        if !types.contains(&question_type) {
            types.push(question_type);
        }
    }
    if types.is_empty() {
        return Err(section.fault("question_types", "must not be empty"));
    }
    Ok(Some(types))
}

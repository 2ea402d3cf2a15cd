//! Endpoints: a model as one provider serves it.

use std::sync::Arc;
use std::time::Duration;

use super::{AttachmentForm, EndpointLimits, Wire};
use crate::ids::IdMap;
use crate::model::{CallableModels, Model, ModelId, SANDBOX_AUTHOR};
use crate::pricing::TokenPrices;
use crate::question::{AnswerRules, ConfidenceSource, QuestionType};

/// The short name of a provider: 1 to 64 characters of `a-z 0-9 -`. Clones share the string.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderSlug(Arc<str>);

text_access!(ProviderSlug);

/// The error of a text that is not a provider slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a provider slug is 1 to 64 characters of a-z 0-9 -")]
pub struct InvalidProviderSlug;

impl std::str::FromStr for ProviderSlug {
    type Err = InvalidProviderSlug;

    fn from_str(text: &str) -> Result<Self, InvalidProviderSlug> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self(text.into())) } else { Err(InvalidProviderSlug) }
    }
}

impl ProviderSlug {
    /// Returns the slug as a string that is shared.
    pub fn to_shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// The data policy of a provider, as the operator configured it. The default is the least private one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPolicy {
    /// True for zero data retention.
    pub zdr: bool,
    /// True if the provider may store prompts or train on them.
    pub collects: bool,
}

impl Default for DataPolicy {
    fn default() -> Self {
        Self { zdr: false, collects: true }
    }
}

named_enum! {
    /// The number format of a model's weights.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub enum Quantization {
        /// 4-bit integers.
        Int4 = "int4",
        /// 8-bit integers.
        Int8 = "int8",
        /// 4-bit floats.
        Fp4 = "fp4",
        /// 4-bit floats with shared exponents (MX).
        Mxfp4 = "mxfp4",
        /// 4-bit floats with shared exponents (NV).
        Nvfp4 = "nvfp4",
        /// 6-bit floats.
        Fp6 = "fp6",
        /// 8-bit floats.
        Fp8 = "fp8",
        /// 8-bit floats with shared exponents (MX).
        Mxfp8 = "mxfp8",
        /// 16-bit floats.
        Fp16 = "fp16",
        /// 16-bit brain floats.
        Bf16 = "bf16",
        /// 32-bit floats.
        Fp32 = "fp32",
        /// Not configured.
        #[default]
        Unknown = "unknown",
    }
}

/// Settings for answering typed questions with a chat model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatSettings {
    /// The method.
    pub method: ChatMethod,
    /// The temperature of the distribution over labels, in thousandths: 1000 leaves it unchanged, more flattens it,
    /// less sharpens it.
    pub temperature_milli: u32,
    /// The lowest total probability of the labels, in thousandths. Below it, the model did not answer the question.
    pub min_label_probability_milli: u32,
    /// The most log-probabilities that the server returns per token.
    pub top_logprobs: usize,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self { method: ChatMethod::Auto, temperature_milli: 1000, min_label_probability_milli: 500, top_logprobs: 20 }
    }
}

named_enum! {
    /// The method by which a chat model answers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ChatMethod {
        /// One call per question; the log-probabilities of the label tokens give the distribution.
        Logprobs = "logprobs",
        /// One call for all questions; the model states probabilities in structured output.
        Structured = "structured",
        /// `Logprobs` if the first call returns log-probabilities, else `Structured`.
        Auto = "auto",
    }
}

/// One model as one provider serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The model's name in the catalogue.
    pub model: ModelId,
    /// The provider's slug.
    pub provider: ProviderSlug,
    /// The provider's display name.
    pub provider_name: String,
    /// The protocol.
    pub wire: Wire,
    /// The model's name at the provider.
    pub upstream_model: Arc<str>,
    /// The prices; `None` means the prices of the catalogue row.
    pub prices: Option<TokenPrices>,
    /// The timeout of one attempt.
    pub attempt_timeout: Duration,
    /// Tokens that the provider may count beyond those of the body, for the upper bound of a charge.
    pub prompt_overhead_tokens: u64,
    /// True if the provider answers each question by itself, so that an answer does not depend on the other questions.
    pub independent_questions: bool,
    /// The supported types of questions; `None` means all types of its wire.
    pub question_types: Option<Vec<QuestionType>>,
    /// The configured limits. [`Self::limits`] adds those of the wire.
    pub own_limits: EndpointLimits,
    /// The form in which it accepts media.
    pub attachments: AttachmentForm,
    /// The source of `confidence`.
    pub confidence: ConfidenceSource,
    /// Decimals of its numbers, which determine the tolerance of sums.
    pub decimals: u32,
    /// The data policy of the provider.
    pub data_policy: DataPolicy,
    /// The number format of the weights.
    pub quantization: Quantization,
    /// Settings of a chat model; other wires ignore them.
    pub chat: ChatSettings,
    /// Its index among all endpoints of the process, which identifies its health. [`EndpointDirectory::new`] sets it.
    pub index: usize,
}

impl Endpoint {
    /// Creates an endpoint with defaults: a timeout of 30 seconds, 128 tokens of overhead, two decimals, no media, and
    /// the wire's limits and source of confidence.
    pub fn new(model: ModelId, provider: ProviderSlug, wire: Wire, upstream_model: impl Into<Arc<str>>) -> Self {
        Self {
            provider_name: provider.to_string(),
            model,
            provider,
            wire,
            upstream_model: upstream_model.into(),
            prices: None,
            attempt_timeout: Duration::from_secs(30),
            prompt_overhead_tokens: 128,
            independent_questions: false,
            question_types: None,
            own_limits: EndpointLimits::default(),
            attachments: AttachmentForm::None,
            confidence: wire.confidence(),
            decimals: 2,
            data_policy: DataPolicy::default(),
            quantization: Quantization::default(),
            chat: ChatSettings::default(),
            index: 0,
        }
    }

    /// Returns its configured limits, and those of its wire for the rest.
    pub fn limits(&self) -> EndpointLimits {
        self.own_limits.or(self.wire.limits())
    }
}

/// All endpoints, by model, in the order of the configuration.
#[derive(Debug, Default)]
pub struct EndpointDirectory {
    by_model: IdMap<ModelId, Vec<Arc<Endpoint>>>,
    order: Vec<Arc<Endpoint>>,
}

impl EndpointDirectory {
    /// Indexes endpoints by model.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        let numbered = endpoints.into_iter().enumerate();
        let order: Vec<Arc<Endpoint>> =
            numbered.map(|(index, endpoint)| Arc::new(Endpoint { index, ..endpoint })).collect();
        let mut by_model: IdMap<ModelId, Vec<Arc<Endpoint>>> = IdMap::default();
        for endpoint in &order {
            by_model.entry(endpoint.model.clone()).or_default().push(Arc::clone(endpoint));
        }
        Self { by_model, order }
    }

    /// Returns every endpoint.
    pub fn all(&self) -> &[Arc<Endpoint>] {
        &self.order
    }

    /// Returns the endpoints of a catalogue row: those configured for its id, else for its canonical slug. A sandbox
    /// endpoint serves only its own id.
    pub fn for_model(&self, model: &Model) -> &[Arc<Endpoint>] {
        let by_id = self.by_model.get(&model.id);
        let by_slug = || {
            let shares_nothing = model.id.variant().is_none() && model.canonical_slug.author() != SANDBOX_AUTHOR;
            shares_nothing.then(|| self.by_model.get(&model.canonical_slug)).flatten()
        };
        by_id.or_else(by_slug).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a Decisions request for this concrete row reaches an endpoint.
    pub fn serves(&self, model: &Model) -> bool {
        model.serves_decisions() && !model.pricing.is_variable() && !self.for_model(model).is_empty()
    }

    /// Returns the sandbox endpoint with this name, ignoring case. It needs no catalogue row.
    pub fn sandbox(&self, name: &str) -> Option<&Arc<Endpoint>> {
        let id: ModelId = name.parse().ok()?;
        self.by_model.get(&id)?.iter().find(|endpoint| endpoint.wire == Wire::Sandbox)
    }
}

impl CallableModels for EndpointDirectory {
    fn is_callable(&self, model: &Model) -> bool {
        self.serves(model)
    }

    fn is_served_by(&self, model: &Model, providers: &[String]) -> bool {
        self.for_model(model).iter().any(|endpoint| providers.iter().any(|slug| slug == endpoint.provider.as_str()))
    }
}

impl AnswerRules {
    /// Returns the rules for answers of an endpoint.
    pub fn of(endpoint: &Endpoint) -> Self {
        Self { decimals: endpoint.decimals, confidence: endpoint.confidence }
    }
}

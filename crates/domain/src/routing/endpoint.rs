//! Endpoints: a model as one provider serves it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Model, ModelId, SANDBOX_AUTHOR};
use crate::pricing::TokenPrices;
use crate::question::QuestionType;
use crate::question::{AnswerRules, ConfidenceSource};

/// The short name of a provider: 1 to 64 characters of `a-z 0-9 -`. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderSlug(Arc<str>);

/// Not a provider's slug.
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
    /// The slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The protocol that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `state` and a map of `noul | choice | score | box` questions over HTTP.
    SystemOne,
    /// `input` and an array of `predicate | choice | score` questions.
    OpenAiDecisions,
    /// `input` and a map of `noul | choice | score` questions with `true_description`.
    GeminiDecisions,
    /// `input` and an array of questions with `id`, `question`, `options`, `levels`.
    SglangDecisions,
    /// Any chat model behind an OpenAI-compatible API; the answers are made from what it says.
    ChatCompletions,
    /// Answers made inside this process.
    Sandbox,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Self; 6] = [
        Self::SystemOne,
        Self::OpenAiDecisions,
        Self::GeminiDecisions,
        Self::SglangDecisions,
        Self::ChatCompletions,
        Self::Sandbox,
    ];

    /// Its name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemOne => "system-one",
            Self::OpenAiDecisions => "openai-decisions",
            Self::GeminiDecisions => "gemini-decisions",
            Self::SglangDecisions => "sglang-decisions",
            Self::ChatCompletions => "chat-completions",
            Self::Sandbox => "sandbox",
        }
    }

    /// True where questions of a form that this service does not know can travel verbatim.
    pub fn takes_opaque_questions(self) -> bool {
        match self {
            Self::SystemOne | Self::Sandbox => true,
            Self::OpenAiDecisions | Self::GeminiDecisions | Self::SglangDecisions | Self::ChatCompletions => false,
        }
    }

    /// Where a provider of this wire takes its `confidence` from, if nothing else is configured.
    pub fn confidence(self) -> ConfidenceSource {
        match self {
            Self::SystemOne | Self::Sandbox => ConfidenceSource::SystemOne,
            Self::OpenAiDecisions | Self::GeminiDecisions | Self::SglangDecisions | Self::ChatCompletions => {
                ConfidenceSource::Computed
            }
        }
    }

    /// What requests of this wire can hold at most, by its public description. What a vendor allows below that is
    /// configured with its endpoint.
    pub fn limits(self) -> EndpointLimits {
        let limits = EndpointLimits::default();
        match self {
            Self::SystemOne | Self::Sandbox => limits,
            // Each question may be a call of its own with the whole state in it.
            Self::ChatCompletions => EndpointLimits { max_questions: Some(64), ..limits },
            Self::OpenAiDecisions => EndpointLimits { max_questions: Some(400), ..limits },
            Self::GeminiDecisions => EndpointLimits { max_questions: Some(1000), ..limits },
            Self::SglangDecisions => EndpointLimits { max_options: Some(26), ..limits },
        }
    }

    /// True where a question of that type can be asked.
    pub fn asks(self, question_type: QuestionType) -> bool {
        match question_type {
            QuestionType::Noul | QuestionType::Choice | QuestionType::Score => true,
            QuestionType::Box => self == Self::SystemOne,
        }
    }
}

/// What an endpoint takes at most in one request; `None` is no limit beyond that of the canonical form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointLimits {
    /// Questions.
    pub max_questions: Option<usize>,
    /// Options of a `choice`.
    pub max_options: Option<usize>,
    /// Levels of a `score`.
    pub max_levels: Option<usize>,
    /// Bytes of state and questions together.
    pub max_body_bytes: Option<usize>,
    /// Tokens of state and questions together, bounded by their bytes: no token is shorter than a byte.
    pub max_input_tokens: Option<usize>,
}

impl EndpointLimits {
    /// Each limit, or where there is none that of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_questions: self.max_questions.or(other.max_questions),
            max_options: self.max_options.or(other.max_options),
            max_levels: self.max_levels.or(other.max_levels),
            max_body_bytes: self.max_body_bytes.or(other.max_body_bytes),
            max_input_tokens: self.max_input_tokens.or(other.max_input_tokens),
        }
    }
}

/// In which form an endpoint takes images and other media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttachmentForm {
    /// Not at all.
    None,
    /// As `assets` of the System One wire.
    Assets,
    /// As a member `images` beside the state.
    Images,
    /// Among the items or parts of the input.
    InState,
}

impl AttachmentForm {
    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Assets => "assets",
            Self::Images => "images",
            Self::InState => "input",
        }
    }
}

/// What a provider does with what it is sent, as far as the operator has configured it. The default is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPolicy {
    /// It keeps nothing: zero data retention.
    pub zdr: bool,
    /// It may store prompts or train on them.
    pub collects: bool,
}

impl Default for DataPolicy {
    fn default() -> Self {
        Self { zdr: false, collects: true }
    }
}

/// The number format of a model's weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Quantization {
    /// 4-bit integers.
    Int4,
    /// 8-bit integers.
    Int8,
    /// 4-bit floats.
    Fp4,
    /// 4-bit floats with shared exponents (MX).
    Mxfp4,
    /// 4-bit floats with shared exponents (NV).
    Nvfp4,
    /// 6-bit floats.
    Fp6,
    /// 8-bit floats.
    Fp8,
    /// 8-bit floats with shared exponents (MX).
    Mxfp8,
    /// 16-bit floats.
    Fp16,
    /// 16-bit brain floats.
    Bf16,
    /// 32-bit floats.
    Fp32,
    /// Nobody said.
    #[default]
    Unknown,
}

impl Quantization {
    /// Every format.
    pub const ALL: [Self; 12] = [
        Self::Int4,
        Self::Int8,
        Self::Fp4,
        Self::Mxfp4,
        Self::Nvfp4,
        Self::Fp6,
        Self::Fp8,
        Self::Mxfp8,
        Self::Fp16,
        Self::Bf16,
        Self::Fp32,
        Self::Unknown,
    ];

    /// Its name in configuration and preferences.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Int4 => "int4",
            Self::Int8 => "int8",
            Self::Fp4 => "fp4",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
            Self::Fp6 => "fp6",
            Self::Fp8 => "fp8",
            Self::Mxfp8 => "mxfp8",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp32 => "fp32",
            Self::Unknown => "unknown",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// How a chat model is made to answer typed questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatSettings {
    /// The way.
    pub method: ChatMethod,
    /// The temperature by which the distribution over labels is softened (above 1) or sharpened (below), in
    /// thousandths: 1000 leaves it as it is.
    pub temperature_milli: u32,
    /// The least probability that the labels must hold together, in thousandths; below it the model was not
    /// answering the question.
    pub min_label_probability_milli: u32,
    /// Most label probabilities that the server returns for one token.
    pub top_logprobs: usize,
}

impl Default for ChatSettings {
    /// Probed once, no softening, half of the mass, twenty labels.
    fn default() -> Self {
        Self { method: ChatMethod::Auto, temperature_milli: 1000, min_label_probability_milli: 500, top_logprobs: 20 }
    }
}

/// The way in which a chat model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatMethod {
    /// One call a question; the distribution is read off the log-probabilities of label tokens.
    Logprobs,
    /// One call for all questions; the model states probabilities in structured output.
    Structured,
    /// `Logprobs` where the server returns log-probabilities, found out by the first call, else `Structured`.
    Auto,
}

impl ChatMethod {
    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logprobs => "logprobs",
            Self::Structured => "structured",
            Self::Auto => "auto",
        }
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
    pub upstream_model: String,
    /// What is charged; `None` means what the catalogue's row says.
    pub prices: Option<TokenPrices>,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// Tokens that the provider may add to what the body's length explains, for bounding a charge.
    pub prompt_overhead_tokens: u64,
    /// The types of questions that it answers; `None` is all that its wire can ask.
    pub question_types: Option<Vec<QuestionType>>,
    /// What it takes at most. [`Self::limits`] adds those of the wire.
    pub own_limits: EndpointLimits,
    /// In which form it takes media.
    pub attachments: AttachmentForm,
    /// Which number its `confidence` is.
    pub confidence: ConfidenceSource,
    /// Decimals that its numbers are rounded to: how far sums may be off.
    pub decimals: u32,
    /// What the provider does with what it is sent.
    pub data_policy: DataPolicy,
    /// The number format of the weights.
    pub quantization: Quantization,
    /// How a chat model is made to answer; of no meaning to other wires.
    pub chat: ChatSettings,
    /// Its place among all endpoints of the process, by which its health is kept. [`EndpointDirectory::new`] sets it.
    pub index: usize,
}

impl Endpoint {
    /// An endpoint of which nothing else is known: 30 seconds an attempt, 128 tokens of overhead, two decimals, the
    /// wire's own limits and meaning of confidence, no media.
    pub fn new(model: ModelId, provider: ProviderSlug, wire: Wire, upstream_model: impl Into<String>) -> Self {
        Self {
            provider_name: provider.to_string(),
            model,
            provider,
            wire,
            upstream_model: upstream_model.into(),
            prices: None,
            attempt_timeout: Duration::from_secs(30),
            prompt_overhead_tokens: 128,
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

    /// Its own limits, and those of its wire where it has none.
    pub fn limits(&self) -> EndpointLimits {
        self.own_limits.or(self.wire.limits())
    }
}

/// All endpoints, by model, in the order of the configuration.
#[derive(Debug, Default)]
pub struct EndpointDirectory {
    by_model: HashMap<ModelId, Vec<Arc<Endpoint>>>,
    order: Vec<Arc<Endpoint>>,
}

impl EndpointDirectory {
    /// Sorts endpoints by their models.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        let numbered = endpoints.into_iter().enumerate();
        let order: Vec<Arc<Endpoint>> =
            numbered.map(|(index, endpoint)| Arc::new(Endpoint { index, ..endpoint })).collect();
        let mut by_model: HashMap<ModelId, Vec<Arc<Endpoint>>> = HashMap::new();
        for endpoint in &order {
            by_model.entry(endpoint.model.clone()).or_default().push(Arc::clone(endpoint));
        }
        Self { by_model, order }
    }

    /// Every endpoint.
    pub fn all(&self) -> &[Arc<Endpoint>] {
        &self.order
    }

    /// What can serve a catalogue row: endpoints configured for its id, else for its canonical slug. A sandbox
    /// endpoint serves its own id only.
    pub fn for_model(&self, model: &Model) -> &[Arc<Endpoint>] {
        let by_id = self.by_model.get(&model.id);
        let by_slug = || {
            let shares_nothing = model.id.variant().is_none() && model.canonical_slug.author() != SANDBOX_AUTHOR;
            shares_nothing.then(|| self.by_model.get(&model.canonical_slug)).flatten()
        };
        by_id.or_else(by_slug).map_or(&[], Vec::as_slice)
    }

    /// The sandbox endpoint of exactly this name (in any case), whether or not the catalogue has a row for it.
    pub fn sandbox(&self, name: &str) -> Option<&Arc<Endpoint>> {
        let id: ModelId = name.parse().ok()?;
        self.by_model.get(&id)?.iter().find(|endpoint| endpoint.wire == Wire::Sandbox)
    }
}

impl AnswerRules {
    /// The rules of an endpoint.
    pub fn of(endpoint: &Endpoint) -> Self {
        Self { decimals: endpoint.decimals, confidence: endpoint.confidence }
    }
}

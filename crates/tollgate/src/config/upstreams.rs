//! Providers, endpoints and models of a configuration that has been checked.

use std::path::PathBuf;
use std::time::Duration;

use domain::decision::{ModelOptions, QuestionType};
use domain::model::ModelId;
use domain::routing::{
    AttachmentForm, ChatSettings, ConfidenceSource, DataPolicy, EndpointLimits, ProviderSlug, Quantization,
    TokenPrices, Wire,
};

use super::SecretSource;

/// One of `[[providers]]`
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Its slug.
    pub slug: ProviderSlug,
    /// Its display name.
    pub name: String,
    /// The protocol that it speaks.
    pub wire: Wire,
    /// `http://` or `https://`, without a trailing slash.
    pub base_url: String,
    /// What follows `base_url/`; `None` is what is usual on the wire.
    pub path: Option<String>,
    /// Where a request names the model.
    pub model_location: ModelLocationConfig,
    /// What its answers are wrapped in.
    pub response_wrapper: ResponseWrapperConfig,
    /// Its key; `None` sends none.
    pub api_key: Option<SecretSource>,
    /// The header that the key is sent in, in lower case; `None` is what is usual on the wire.
    pub auth_header: Option<String>,
    /// What stands before the key, `""` for nothing; `None` is what is usual in that header.
    pub auth_scheme: Option<String>,
    /// Sent with each call: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// Most bytes of an answer.
    pub max_response_bytes: usize,
    /// Most bytes before the body of an answer.
    pub max_header_bytes: u64,
    /// Certificates trusted beside the platform's.
    pub ca_file: Option<PathBuf>,
    /// HTTP/2 without negotiation.
    pub http2_prior_knowledge: bool,
    /// The silence on an HTTP/2 connection after which a ping is sent; `None` sends none.
    pub http2_ping_interval: Option<Duration>,
    /// How long the acknowledgement of a ping may take.
    pub http2_ping_timeout: Duration,
    /// What its endpoints are unless they say otherwise.
    pub traits: TraitsConfig,
}

/// Where a request names the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelLocationConfig {
    /// In the body.
    Body,
    /// In the path; the body has no `model`.
    Path,
    /// In both.
    Both,
}

/// What answers are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseWrapperConfig {
    /// Nothing.
    None,
    /// `{"result": …, "success": true}`
    WorkersAi,
    /// `{"response": …}`
    Databricks,
}

/// What an endpoint takes and how its answers are read, as far as it was said: by the provider for all of its
/// endpoints, by an endpoint for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraitsConfig {
    /// Which number is `confidence`.
    pub confidence: Option<ConfidenceSource>,
    /// Decimals that numbers are rounded to.
    pub decimals: Option<u32>,
    /// In which form media are taken.
    pub images: Option<AttachmentForm>,
    /// The types of questions that are answered.
    pub question_types: Option<Vec<QuestionType>>,
    /// What is taken at most.
    pub limits: EndpointLimits,
    /// Whether nothing is kept.
    pub zdr: Option<bool>,
    /// Whether prompts may be stored or trained on.
    pub collects: Option<bool>,
}

impl TraitsConfig {
    /// What was said here, or where nothing was, what `other` says.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let data_policy_of_its_own = self.zdr == Some(true);
        Self {
            confidence: self.confidence.or(other.confidence),
            decimals: self.decimals.or(other.decimals),
            images: self.images.or(other.images),
            question_types: self.question_types.or_else(|| other.question_types.clone()),
            limits: self.limits.or(other.limits),
            zdr: self.zdr.or(other.zdr),
            // An endpoint that keeps nothing collects nothing, whatever the provider does elsewhere.
            collects: self.collects.or(if data_policy_of_its_own { None } else { other.collects }),
        }
    }

    /// The worst where nothing was said; who keeps nothing collects nothing.
    pub fn data_policy(&self) -> DataPolicy {
        let zdr = self.zdr.unwrap_or(false);
        DataPolicy { zdr, collects: !zdr && self.collects.unwrap_or(true) }
    }
}

/// One of `[[endpoints]]`
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The model's name in the catalogue.
    pub model: ModelId,
    /// One of the providers.
    pub provider: ProviderSlug,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// What is charged; `None` is what the catalogue's row says.
    pub prices: Option<TokenPrices>,
    /// Tokens that the provider may add to what the body's length explains.
    pub prompt_overhead_tokens: u64,
    /// What it takes and how its answers are read; the provider's where it says nothing itself.
    pub traits: TraitsConfig,
    /// The number format of the weights.
    pub quantization: Quantization,
    /// How a chat model is made to answer.
    pub chat: ChatSettings,
}

/// One of `[[models]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// Its id in the catalogue.
    pub model: ModelId,
    /// What is done for it.
    pub options: ModelOptions,
}

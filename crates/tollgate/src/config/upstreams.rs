//! The settings of providers, endpoints and models.

use std::path::PathBuf;
use std::time::Duration;

use domain::decision::ModelOptions;
use domain::model::ModelId;
use domain::pricing::TokenPrices;
use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, ChatSettings, DataPolicy, EndpointLimits, ProviderSlug, Quantization, Wire};
use serde::Deserialize;

use super::SecretSource;

/// One of `[[providers]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Its slug.
    pub slug: ProviderSlug,
    /// Its display name.
    pub name: String,
    /// Its wire.
    pub wire: Wire,
    /// `http://` or `https://`, without a trailing slash.
    pub base_url: String,
    /// The path after `base_url/`; `None` is the wire's default.
    pub path: Option<String>,
    /// The location of the model's name in requests.
    pub model_location: ModelLocationConfig,
    /// The wrapper of its responses.
    pub response_wrapper: ResponseWrapperConfig,
    /// Its key; `None` sends none.
    pub api_key: Option<SecretSource>,
    /// The header of the key, in lower case; `None` is the wire's default.
    pub auth_header: Option<String>,
    /// The prefix of the key, `""` for none; `None` is the header's default.
    pub auth_scheme: Option<String>,
    /// Headers of each call: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The maximum time to connect.
    pub connect_timeout: Duration,
    /// The maximum time of an attempt.
    pub attempt_timeout: Duration,
    /// The maximum size of a response body in bytes.
    pub max_response_bytes: usize,
    /// Certificates trusted in addition to the platform's.
    pub ca_file: Option<PathBuf>,
    /// The files of the client certificate and of its key.
    pub client_identity: Option<(PathBuf, PathBuf)>,
    /// True for HTTP/2 without negotiation.
    pub http2_prior_knowledge: bool,
    /// The defaults of its endpoints.
    pub capabilities: CapabilitySettings,
}

impl ProviderConfig {
    /// Returns the name of the environment variable with the API key, if it is in one.
    pub fn secret_variable(&self) -> Option<&str> {
        self.api_key.as_ref().and_then(SecretSource::variable)
    }
}

/// The location of the model's name in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelLocationConfig {
    /// In the body.
    Body,
    /// In the path; the body has no `model`.
    Path,
    /// In both.
    Both,
}

/// The wrapper of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseWrapperConfig {
    /// Nothing.
    None,
    /// `{"result": …, "success": true}`
    WorkersAi,
    /// `{"response": …}`
    Databricks,
}

/// The capabilities of an endpoint and the rules for its answers, as far as they are configured for the endpoint or its
/// provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilitySettings {
    /// The source of `confidence`.
    pub confidence: Option<ConfidenceSource>,
    /// The decimals that numbers are rounded to.
    pub decimals: Option<u32>,
    /// The transport of media.
    pub images: Option<AttachmentForm>,
    /// The supported types of questions.
    pub question_types: Option<Vec<QuestionType>>,
    /// The limits of a request.
    pub limits: EndpointLimits,
    /// True for zero data retention.
    pub zdr: Option<bool>,
    /// True if prompts may be stored or trained on.
    pub collects: Option<bool>,
}

impl CapabilitySettings {
    /// Returns these settings with the values of `other` in place of missing ones.
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
            // An endpoint with zero retention collects nothing, even if its provider's default says otherwise.
            collects: self.collects.or(if data_policy_of_its_own { None } else { other.collects }),
        }
    }

    /// Returns the data policy. Missing values default to the least private; zero retention implies no collection.
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
    /// One of the configured providers.
    pub provider: ProviderSlug,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The prices; `None` are the catalogue's.
    pub prices: Option<TokenPrices>,
    /// Tokens that the provider may add to those of the body.
    pub prompt_overhead_tokens: u64,
    /// The capabilities; missing ones are the provider's.
    pub capabilities: CapabilitySettings,
    /// The number format of the weights.
    pub quantization: Quantization,
    /// The settings of a chat model.
    pub chat: ChatSettings,
}

/// One of `[[models]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// Its id in the catalogue.
    pub model: ModelId,
    /// The routing options.
    pub options: ModelOptions,
}

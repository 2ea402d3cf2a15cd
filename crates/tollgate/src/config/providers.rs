//! `[[providers]]`, and the keys that `[[endpoints]]` can override.

use std::path::PathBuf;
use std::time::Duration;

use domain::model::SANDBOX_AUTHOR;
use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, DataPolicy, EndpointLimits, ProviderSlug, Wire};
use serde::Deserialize;
use wires::provider::ModelLocation;
use wires::system_one::ResponseWrapper;

use super::secret::{NamedSecret, SecretSource};
use super::section::{ConfigError, Section};
use super::values::{Millis, Name, Named, PositiveMillis, RequiredText, Within, alternatives, nearest_hint};
use super::{Environment, headers, urls};

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
    pub model_location: ModelLocation,
    /// The wrapper of its responses.
    pub response_wrapper: ResponseWrapper,
    /// Its key; `None` sends none.
    pub api_key: Option<NamedSecret>,
    /// The header of the key, in lower case; `None` is the wire's default.
    pub auth_header: Option<String>,
    /// The prefix of the key, `""` for none; `None` is the header's default.
    pub auth_scheme: Option<String>,
    /// Headers of each call: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The maximum time of an attempt.
    pub attempt_timeout: Duration,
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
        self.api_key.as_ref().and_then(NamedSecret::variable)
    }
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
    /// The use of prompts at the provider.
    pub data_policy: Option<DataPolicy>,
    /// True if each question is answered by itself.
    pub independent_questions: Option<bool>,
}

impl CapabilitySettings {
    /// Returns these settings with the values of `other` in place of missing ones.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            confidence: self.confidence.or(other.confidence),
            decimals: self.decimals.or(other.decimals),
            images: self.images.or(other.images),
            question_types: self.question_types.or_else(|| other.question_types.clone()),
            limits: self.limits.or(other.limits),
            data_policy: self.data_policy.or(other.data_policy),
            independent_questions: self.independent_questions.or(other.independent_questions),
        }
    }

    /// Returns the data policy; the default is the least private one.
    pub fn data_policy(&self) -> DataPolicy {
        self.data_policy.unwrap_or(DataPolicy { zdr: false, collects: true })
    }
}

/// The keys of `[[providers]]` that endpoints do not have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawProvider {
    slug: RequiredText,
    name: Option<String>,
    wire: Option<Name<Wire>>,
    base_url: RequiredText,
    path: Option<String>,
    model_location: Option<Name<ModelLocation>>,
    response_wrapper: Option<Name<ResponseWrapper>>,
    api_key: Option<SecretSource>,
    auth_header: Option<String>,
    auth_scheme: Option<String>,
    headers: Option<Vec<String>>,
    attempt_timeout_ms: Option<PositiveMillis>,
    ca_file: Option<String>,
    client_cert_file: Option<String>,
    client_key_file: Option<String>,
    http2_prior_knowledge: Option<bool>,
}

impl Named for Wire {
    /// Returns the wires over HTTP.
    fn names() -> Vec<(&'static str, Self)> {
        Self::ALL.into_iter().filter(|wire| *wire != Self::Sandbox).map(|wire| (wire.as_str(), wire)).collect()
    }
}

impl Named for ModelLocation {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("body", Self::Body), ("path", Self::Path), ("both", Self::Both)]
    }
}

impl Named for ResponseWrapper {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("none", Self::None), ("workers-ai", Self::WorkersAi), ("databricks", Self::Databricks)]
    }
}

/// Checks `[[providers]]`.
pub fn providers(
    sections: &[(Section<RawProvider>, Section<RawCapabilities>)],
    environment: &Environment,
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut providers: Vec<ProviderConfig> = Vec::with_capacity(sections.len());
    for (section, shared) in sections {
        let provider = provider(section, shared, environment)?;
        if providers.iter().any(|other| other.slug == provider.slug) {
            return Err(section.fault("slug", format!("is a duplicate provider slug: \"{}\"", provider.slug)));
        }
        providers.push(provider);
    }
    Ok(providers)
}

fn provider(
    section: &Section<RawProvider>,
    shared: &Section<RawCapabilities>,
    environment: &Environment,
) -> Result<ProviderConfig, ConfigError> {
    let (slug, base_url) = (section.slug.as_str(), section.base_url.as_str());
    if slug == SANDBOX_AUTHOR {
        return Err(section.fault("slug", "sandbox is reserved for the built-in sandbox"));
    }
    let wire = section.wire.map_or(Wire::SystemOne, Name::get);
    let (path, model_location) = address(section)?;
    let auth_header = section.auth_header.as_deref().map(headers::auth_header).transpose();
    let auth_header = auth_header.map_err(|fault| section.fault("auth_header", fault))?;
    Ok(ProviderConfig {
        slug: slug.parse().map_err(|error| section.fault("slug", format!("is not usable: {error}")))?,
        name: section.name.as_deref().unwrap_or(slug).to_owned(),
        wire,
        base_url: urls::provider_base(base_url).map_err(|fault| section.fault("base_url", fault))?,
        path,
        model_location,
        response_wrapper: response_wrapper(section, wire)?,
        api_key: NamedSecret::of(section, "api_key", section.api_key.as_ref(), environment),
        headers: fixed_headers(section, auth_header.as_deref())?,
        auth_header,
        auth_scheme: auth_scheme(section)?,
        attempt_timeout: section.attempt_timeout_ms.map_or(Duration::from_secs(30), Millis::get),
        ca_file: section.certificate_file("ca_file", section.ca_file.as_deref())?,
        client_identity: section.client_identity(
            ("client_cert_file", section.client_cert_file.as_deref()),
            ("client_key_file", section.client_key_file.as_deref()),
        )?,
        http2_prior_knowledge: section.http2_prior_knowledge.unwrap_or(false),
        capabilities: capabilities(shared, wire)?,
    })
}

/// Checks the path and the location of the model.
fn address(section: &Section<RawProvider>) -> Result<(Option<String>, ModelLocation), ConfigError> {
    let path = section.path.as_deref().map(urls::provider_path).transpose();
    let path = path.map_err(|fault| section.fault("path", fault))?;
    let model_location = section.model_location.map(Name::get).unwrap_or_default();
    let in_path = path.as_deref().is_some_and(|path| path.contains(urls::MODEL));
    match model_location {
        ModelLocation::Body if in_path => {
            Err(section.fault("path", "has {model}, so model_location must be \"path\" or \"both\""))
        }
        ModelLocation::Both if !in_path => {
            Err(section.fault("model_location", "is \"both\", but there is no {model} in path"))
        }
        // Without {model} in the path, only the base URL can select the model.
        ModelLocation::Path if path.is_none() => {
            Err(section.fault("model_location", "is \"path\", but there is no path that could name the model"))
        }
        _ => Ok((path, model_location)),
    }
}

fn response_wrapper(section: &Section<RawProvider>, wire: Wire) -> Result<ResponseWrapper, ConfigError> {
    let wrapper = section.response_wrapper.map(Name::get).unwrap_or_default();
    if wrapper != ResponseWrapper::None && wire != Wire::SystemOne {
        return Err(section.fault("response_wrapper", format!("is for the wire system-one, not {}", wire.as_str())));
    }
    Ok(wrapper)
}

/// Parses a word such as `Bearer`, or an empty scheme.
fn auth_scheme(section: &Section<RawProvider>) -> Result<Option<String>, ConfigError> {
    let Some(scheme) = &section.auth_scheme else { return Ok(None) };
    if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && scheme.len() <= 32
    {
        return Ok(Some(scheme.clone()));
    }
    // It is not repeated, as it may be a misplaced key.
    Err(section.fault("auth_scheme", "must be a word such as Bearer or Basic, or empty; api_key names the key itself"))
}

fn fixed_headers(
    section: &Section<RawProvider>,
    auth_header: Option<&str>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut parsed: Vec<(String, String)> = Vec::new();
    for line in section.headers.iter().flatten() {
        let (name, value) = headers::parse(line).map_err(|fault| section.fault("headers", fault))?;
        if parsed.iter().any(|(other, _)| *other == name) {
            return Err(section.fault("headers", format!("has {} more than once", headers::displayed_name(&name))));
        }
        if auth_header == Some(name.as_str()) {
            return Err(section.fault("headers", "has the header of auth_header"));
        }
        parsed.push((name, value));
    }
    Ok(parsed)
}

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
    max_body_bytes: Option<Within<usize, 1, LARGEST>>,
    max_input_tokens: Option<Within<usize, 1, LARGEST>>,
    data_collection: Option<Name<DataPolicy>>,
    independent_questions: Option<bool>,
}

impl Named for DataPolicy {
    fn names() -> Vec<(&'static str, Self)> {
        let policy = |zdr, collects| Self { zdr, collects };
        vec![("allow", policy(false, true)), ("deny", policy(false, false)), ("zdr", policy(true, false))]
    }
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
    Ok(CapabilitySettings {
        confidence: section.confidence.map(Name::get),
        decimals: section.probability_decimals.map(Within::get),
        images: images(section, wire)?,
        question_types: question_types(section, wire)?,
        limits: EndpointLimits {
            max_questions: section.max_questions.map(Within::get),
            max_options: section.max_options.map(Within::get),
            max_levels: section.max_options.map(Within::get),
            max_body_bytes: section.max_body_bytes.map(Within::get),
            max_input_tokens: section.max_input_tokens.map(Within::get),
        },
        data_policy: section.data_collection.map(Name::get),
        independent_questions: section.independent_questions,
    })
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

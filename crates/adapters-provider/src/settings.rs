//! How one provider is reached, for every wire over HTTP.

use domain::routing::{ProviderSlug, Wire};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderName, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::Secret;

/// What stands in a path for the model's name at the provider.
const MODEL: &str = "{model}";

/// What is encoded in a path: everything but the unreserved characters, the slash and `@`, which model names of some
/// providers have.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

/// Headers that the client sets itself, or that would change how the message is framed.
const OURS: [HeaderName; 12] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// How one provider is reached.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// Its slug.
    pub slug: ProviderSlug,
    /// An `http://` or `https://` address, with or without a path: `https://api.typesafe.ai/v1`.
    pub base_url: String,
    /// The path below it. `{model}` in it is replaced by the model's name at the provider, percent-encoded but for
    /// slashes and `@`.
    pub path: String,
    /// Where the model's name stands.
    pub model_location: ModelPlace,
    /// The header that carries the key.
    pub auth_header: String,
    /// The word before the key, `Bearer` for instance; empty is none.
    pub auth_scheme: String,
    /// The key; without one there is no such header.
    pub api_key: Option<Secret>,
    /// Headers that are sent with each call, by name and value. Not for secrets.
    pub headers: Vec<(String, String)>,
    /// What the provider wraps the wire in.
    pub envelope: Envelope,
}

impl ProviderSettings {
    /// The usual path and header of the wire, and no key.
    pub fn new(slug: ProviderSlug, base_url: impl Into<String>, wire: Wire) -> Self {
        let path = match wire {
            Wire::SystemOne | Wire::Sandbox => "systemone",
            Wire::OpenAiDecisions | Wire::GeminiDecisions | Wire::SglangDecisions => "decisions",
            Wire::ChatCompletions => "chat/completions",
        };
        let (auth_header, auth_scheme) = match wire {
            Wire::GeminiDecisions => ("x-goog-api-key", ""),
            _ => ("authorization", "Bearer"),
        };
        Self {
            slug,
            base_url: base_url.into(),
            path: path.to_owned(),
            model_location: ModelPlace::Body,
            auth_header: auth_header.to_owned(),
            auth_scheme: auth_scheme.to_owned(),
            api_key: None,
            headers: Vec::new(),
            envelope: Envelope::None,
        }
    }
}

/// Where the model's name stands in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelPlace {
    /// In the body.
    #[default]
    Body,
    /// In the path; the body has no `model`.
    Path,
    /// In the path whole, and its last segment in the body.
    Both,
}

impl ModelPlace {
    /// What stands in the body's member `model`; `None` is no such member.
    pub fn in_body(self, upstream_model: &str) -> Option<&str> {
        match self {
            Self::Body => Some(upstream_model),
            Self::Path => None,
            Self::Both => Some(upstream_model.rsplit('/').next().unwrap_or(upstream_model)),
        }
    }
}

/// What a provider wraps the `system-one` wire in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing.
    #[default]
    None,
    /// `{"result": {..}, "success": true}`, and errors as numbered codes.
    WorkersAi,
    /// `{"response": {..}}`; the value of a `noul` answer is called `probability`, and there is no `model`.
    Databricks,
}

/// Settings by which no provider can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProviderSettingsError {
    /// The base URL, or the path below it, makes no address.
    #[error("the base URL must be an http:// or https:// address without credentials, query and fragment")]
    Address,
    /// The key cannot stand in a header.
    #[error("the API key must be printable ASCII")]
    ApiKey,
    /// The header for the key, or the word before it, cannot be used.
    #[error("the header for the API key must be a header name of its own, and its scheme a single word")]
    AuthHeader,
    /// One of the other headers cannot be used.
    #[error("a header must have a name that is not the client's own and a value of printable ASCII")]
    Header,
}

/// An address that may have the model's name in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Fixed(Uri),
    OfModel(String),
}

impl Address {
    /// Joins the base URL and the path with one slash.
    pub(crate) fn new(base_url: &str, path: &str) -> Result<Self, ProviderSettingsError> {
        if base_url.contains(['?', '#', '{']) {
            return Err(ProviderSettingsError::Address);
        }
        let whole = format!("{}/{}", base_url.trim_end_matches('/'), path.trim_start_matches('/'));
        let of_model = whole.contains(MODEL);
        let uri = checked(&whole.replace(MODEL, "m"))?;
        Ok(if of_model { Self::OfModel(whole) } else { Self::Fixed(uri) })
    }

    /// The address at which that model is called. `None` where its name makes none, which encoding rules out.
    pub(crate) fn of(&self, upstream_model: &str) -> Option<Uri> {
        match self {
            Self::Fixed(uri) => Some(uri.clone()),
            Self::OfModel(template) => {
                let name = utf8_percent_encode(upstream_model, ENCODED).to_string();
                template.replace(MODEL, &name).parse().ok()
            }
        }
    }
}

fn checked(whole: &str) -> Result<Uri, ProviderSettingsError> {
    let uri: Uri = whole.parse().map_err(|_| ProviderSettingsError::Address)?;
    let scheme_fits = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    let names_host_only = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        && uri.host().is_some_and(|host| !host.is_empty());
    let legible = !whole.contains(['{', '}']);
    if scheme_fits && names_host_only && legible { Ok(uri) } else { Err(ProviderSettingsError::Address) }
}

/// The headers of every call: the extra ones, and the key.
pub(crate) fn headers(settings: &ProviderSettings) -> Result<HeaderMap, ProviderSettingsError> {
    let auth: HeaderName = settings.auth_header.parse().map_err(|_| ProviderSettingsError::AuthHeader)?;
    if OURS.contains(&auth) || !settings.auth_scheme.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ProviderSettingsError::AuthHeader);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let name: HeaderName = name.parse().map_err(|_| ProviderSettingsError::Header)?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| ProviderSettingsError::Header)?;
        let taken = name == auth || name == AUTHORIZATION || OURS.contains(&name) || headers.contains_key(&name);
        if taken || value.to_str().is_err() {
            return Err(ProviderSettingsError::Header);
        }
        headers.insert(name, value);
    }
    if let Some(key) = &settings.api_key {
        headers.insert(auth, credentials(&settings.auth_scheme, key)?);
    }
    Ok(headers)
}

fn credentials(scheme: &str, key: &Secret) -> Result<HeaderValue, ProviderSettingsError> {
    let key = key.expose();
    let printable = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let text = if scheme.is_empty() { key.to_owned() } else { format!("{scheme} {key}") };
    let mut value =
        printable.then(|| HeaderValue::from_str(&text).ok()).flatten().ok_or(ProviderSettingsError::ApiKey)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;

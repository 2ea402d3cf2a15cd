//! Settings of one provider, for every wire over HTTP.

use domain::routing::{ProviderSlug, Wire};
use domain::secret::SecretString;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderName, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use wires::provider::ModelLocation;
use wires::system_one::ResponseWrapper;

/// The placeholder for the model's name in a path.
const MODEL_PLACEHOLDER: &str = "{model}";

/// The characters to encode in a path: all but the unreserved ones, the slash and `@`, which some model names contain.
const PATH_ENCODE_SET: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

/// Headers that the client sets itself, or that would change the message framing.
const RESERVED_HEADERS: [HeaderName; 12] = [
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

/// The default limit of answers.
const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// The settings of one provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The provider's slug.
    pub slug: ProviderSlug,
    /// An `http://` or `https://` address, with or without a path: `https://api.typesafe.ai/v1`.
    pub base_url: String,
    /// The path below the base URL. `{model}` is replaced by the model's name at the provider, percent-encoded except
    /// for slashes and `@`.
    pub path: String,
    /// The location of the model's name.
    pub model_location: ModelLocation,
    /// The header that carries the key.
    pub auth_header: String,
    /// The scheme before the key, for example `Bearer`; empty is none.
    pub auth_scheme: String,
    /// The key; without it no such header is sent.
    pub api_key: Option<SecretString>,
    /// Additional headers of each call, by name and value. Not for secrets.
    pub headers: Vec<(String, String)>,
    /// The wrapper around the wire's answers.
    pub response_wrapper: ResponseWrapper,
    /// Longest answer in bytes, as received and as decompressed.
    pub max_response_bytes: usize,
}

impl ProviderSettings {
    /// Returns settings with the default path and header of the wire, and without a key.
    pub fn new(slug: ProviderSlug, base_url: impl Into<String>, wire: Wire) -> Self {
        let defaults = wires::formats::defaults(wire);
        Self {
            slug,
            base_url: base_url.into(),
            path: defaults.path.to_owned(),
            model_location: ModelLocation::Body,
            auth_header: defaults.auth_header.to_owned(),
            auth_scheme: defaults.auth_scheme.to_owned(),
            api_key: None,
            headers: Vec::new(),
            response_wrapper: ResponseWrapper::None,
            max_response_bytes: MAX_RESPONSE_BYTES,
        }
    }
}

/// Invalid provider settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProviderSettingsError {
    /// The base URL and the path make no valid address.
    #[error("the base URL must be an http:// or https:// address without credentials, query and fragment")]
    Address,
    /// The key is no valid header value.
    #[error("the API key must be printable ASCII")]
    ApiKey,
    /// The header for the key or its scheme is invalid.
    #[error("auth_header must be a header name that no other header uses, and auth_scheme a single word")]
    AuthHeader,
    /// An additional header is invalid.
    #[error("a header must not be set by the client and must have a printable ASCII value")]
    Header,
}

/// An address with an optional placeholder for the model's name.
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
        let of_model = whole.contains(MODEL_PLACEHOLDER);
        let uri = checked(&whole.replace(MODEL_PLACEHOLDER, "m"))?;
        Ok(if of_model { Self::OfModel(whole) } else { Self::Fixed(uri) })
    }

    /// Returns the address of a model. `None` for an invalid address, which the encoding excludes.
    pub(crate) fn of(&self, upstream_model: &str) -> Option<Uri> {
        match self {
            Self::Fixed(uri) => Some(uri.clone()),
            Self::OfModel(template) => {
                let name = utf8_percent_encode(upstream_model, PATH_ENCODE_SET).to_string();
                template.replace(MODEL_PLACEHOLDER, &name).parse().ok()
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

/// Returns the headers of every call: the additional ones and the key.
pub(crate) fn headers(settings: &ProviderSettings) -> Result<HeaderMap, ProviderSettingsError> {
    let auth: HeaderName = settings.auth_header.parse().map_err(|_| ProviderSettingsError::AuthHeader)?;
    if RESERVED_HEADERS.contains(&auth) || !settings.auth_scheme.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ProviderSettingsError::AuthHeader);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let name: HeaderName = name.parse().map_err(|_| ProviderSettingsError::Header)?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| ProviderSettingsError::Header)?;
        let taken =
            name == auth || name == AUTHORIZATION || RESERVED_HEADERS.contains(&name) || headers.contains_key(&name);
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

fn credentials(scheme: &str, key: &SecretString) -> Result<HeaderValue, ProviderSettingsError> {
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

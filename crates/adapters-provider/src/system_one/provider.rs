//! Calls one provider over the wire.

use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::routing::{AttemptFailure, AttemptFailureKind, ProviderSlug};
use http::uri::Scheme;
use http::{HeaderValue, Uri};

use super::{request, response};
use crate::Secret;
use crate::http::{HttpClient, Target, within};

/// The path below the base URL where nothing else is configured.
const DEFAULT_PATH: &str = "systemone";

/// A provider that speaks the wire.
#[derive(Debug, Clone)]
pub struct SystemOneSettings {
    /// Its slug.
    pub slug: ProviderSlug,
    /// An `http://` or `https://` address, with or without a path: `https://api.typesafe.ai/v1`.
    pub base_url: String,
    /// The path below it.
    pub path: String,
    /// Sent as bearer token; without one there is no `authorization` header.
    pub api_key: Option<Secret>,
}

impl SystemOneSettings {
    /// The usual path, and no key.
    pub fn new(slug: ProviderSlug, base_url: impl Into<String>) -> Self {
        Self { slug, base_url: base_url.into(), path: DEFAULT_PATH.to_owned(), api_key: None }
    }
}

/// Settings by which no provider can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SystemOneError {
    /// The base URL, or the path below it, makes no address.
    #[error("the base URL must be an http:// or https:// address without credentials, query and fragment")]
    Address,
    /// The key cannot stand in a header.
    #[error("the API key must be printable ASCII")]
    ApiKey,
}

/// One provider behind the wire.
pub struct SystemOneProvider {
    client: HttpClient,
    slug: ProviderSlug,
    target: Target,
}

impl SystemOneProvider {
    /// Over this client.
    ///
    /// # Errors
    /// Settings by which nothing can be called.
    pub fn new(client: HttpClient, settings: SystemOneSettings) -> Result<Self, SystemOneError> {
        let SystemOneSettings { slug, base_url, path, api_key } = settings;
        let uri = address(&base_url, &path)?;
        let authorization = api_key.as_ref().map(bearer).transpose()?;
        let target = client.target(uri, authorization);
        Ok(Self { client, slug, target })
    }
}

fn address(base_url: &str, path: &str) -> Result<Uri, SystemOneError> {
    if base_url.contains(['?', '#']) {
        return Err(SystemOneError::Address);
    }
    let whole = format!("{}/{}", base_url.trim_end_matches('/'), path.trim_start_matches('/'));
    let uri: Uri = whole.parse().map_err(|_| SystemOneError::Address)?;
    let scheme_fits = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    let names_host_only = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        && uri.host().is_some_and(|host| !host.is_empty());
    if scheme_fits && names_host_only { Ok(uri) } else { Err(SystemOneError::Address) }
}

fn bearer(key: &Secret) -> Result<HeaderValue, SystemOneError> {
    let printable = !key.expose().is_empty() && key.expose().bytes().all(|byte| byte.is_ascii_graphic());
    printable
        .then(|| HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok())
        .flatten()
        .ok_or(SystemOneError::ApiKey)
}

#[async_trait]
impl DecisionProvider for SystemOneProvider {
    #[tracing::instrument(
        name = "provider.system_one",
        skip_all,
        fields(provider.slug = %self.slug, upstream.model = call.endpoint.upstream_model)
    )]
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let asked = &call.request;
        let body = request::write(&call.endpoint.upstream_model, asked.state.as_ref(), &asked.questions.json);
        let sent_bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let answered = within(call.timeout, call.caller.as_ref(), self.client.post_json(&self.target, body)).await?;
        let answer = response::read(&answered).map_err(|fault| AttemptFailure {
            upstream_status: Some(200),
            ..AttemptFailure::new(AttemptFailureKind::Broken, fault.to_string())
        })?;
        Ok(ProviderAnswer { answers: answer.answers, usage: answer.usage, sent_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_joined_with_one_slash() {
        for (base, path) in [("http://h/v1", "systemone"), ("http://h/v1/", "/systemone")] {
            assert_eq!(address(base, path).unwrap(), "http://h/v1/systemone");
        }
        assert_eq!(address("https://h:8443", "a/b").unwrap(), "https://h:8443/a/b");
    }

    #[test]
    fn other_addresses_are_refused() {
        for bad in ["", "h/v1", "ftp://h/", "http://", "http://u:p@h/", "http://h/?a=b", "http://h/#x", "http://h h/"] {
            assert_eq!(address(bad, "systemone").unwrap_err(), SystemOneError::Address, "{bad}");
        }
    }

    #[test]
    fn a_key_that_is_no_header_is_refused() {
        for bad in ["", "a b", "a\nb", "é"] {
            assert_eq!(bearer(&Secret::new(bad)).unwrap_err(), SystemOneError::ApiKey, "{bad:?}");
        }
        let header = bearer(&Secret::new("sk-1")).unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer sk-1");
    }
}

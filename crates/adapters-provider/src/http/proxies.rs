//! The proxies of targets.

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::{HttpClientError, NoProxy, ProxySettings};

/// The proxies of `http://` and `https://` targets, and the targets that are called directly.
pub(super) struct Proxies {
    matcher: Matcher,
    no_proxy: NoProxy,
}

impl Proxies {
    /// Builds the rules.
    ///
    /// # Errors
    /// The address of a proxy is not understood.
    pub(super) fn new(settings: &ProxySettings) -> Result<Self, HttpClientError> {
        let text = |setting: &Option<String>| setting.clone().unwrap_or_default();
        let (https, http) = (text(&settings.https_proxy), text(&settings.http_proxy));
        let matcher = Matcher::builder().https(https.clone()).http(http.clone()).build();
        for (address, name, target) in [
            (&https, "proxy for https", Uri::from_static("https://target/")),
            (&http, "proxy for http", Uri::from_static("http://target/")),
        ] {
            let understood = matcher.intercept(&target).is_some_and(|proxy| {
                proxy.uri().scheme() == Some(&Scheme::HTTP) || proxy.uri().scheme() == Some(&Scheme::HTTPS)
            });
            if !address.is_empty() && !understood {
                return Err(HttpClientError::Proxy(name));
            }
        }
        Ok(Self { matcher, no_proxy: NoProxy::parse(&text(&settings.no_proxy)) })
    }

    /// Returns the proxy of a target; `None` if it is called directly.
    pub(super) fn intercept(&self, target: &Uri) -> Option<Intercept> {
        if self.no_proxy.contains(target) { None } else { self.matcher.intercept(target) }
    }
}

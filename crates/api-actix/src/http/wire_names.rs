//! The literal names that existing clients expect. Published packages show themselves by their headers; the
//! configuration decides for all other requests.

use actix_web::http::header::{HeaderMap, HeaderValue, USER_AGENT};

/// The prefix of the headers that only `OpenRouter`'s packages and their users send.
const OPENROUTER_HEADERS: &str = "x-openrouter-";
/// The first words of the user agents of `openai` and `typesafe-sdk`.
const OPENAI_AGENTS: [&[u8]; 2] = [b"OpenAI/", b"AsyncOpenAI/"];
const TYPESAFE_AGENT: &[u8] = b"typesafe-sdk/";
/// The first word and a part of the last word of the user agents of `OpenRouter`'s packages.
const GENERATED_AGENT: &[u8] = b"speakeasy-sdk/";
const OPENROUTER: &[u8] = b"openrouter";

/// The literal names in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireNames {
    /// The names of the API contract: `native`, `vendor_a`, `vendor_b`, `service_metadata`.
    #[default]
    Interface,
    /// The names that existing client packages decode: `openrouter`, `anthropic`, `openai`, `openrouter_metadata`.
    OpenRouter,
}

/// The JSON shape of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileShape {
    /// The service's own shape.
    Native,
    /// The shape of one vendor's files API.
    VendorA,
    /// The shape of another vendor's files API.
    VendorB,
}

impl WireNames {
    /// All sets of names.
    pub(crate) const ALL: [Self; 2] = [Self::Interface, Self::OpenRouter];

    /// Returns the names for a request with these headers: those of existing packages if the client is one, otherwise
    /// the configured ones.
    pub(crate) fn for_client(self, headers: &HeaderMap) -> Self {
        if is_published_package(headers) { Self::OpenRouter } else { self }
    }

    /// Returns the name of the service metadata member.
    pub(crate) fn service_metadata(self) -> &'static str {
        match self {
            Self::Interface => "service_metadata",
            Self::OpenRouter => "openrouter_metadata",
        }
    }

    /// Returns the value of `_shape`.
    pub(crate) fn shape(self, shape: FileShape) -> &'static str {
        match (self, shape) {
            (Self::Interface, FileShape::Native) => "native",
            (Self::Interface, FileShape::VendorA) => "vendor_a",
            (Self::Interface, FileShape::VendorB) => "vendor_b",
            (Self::OpenRouter, FileShape::Native) => "openrouter",
            (Self::OpenRouter, FileShape::VendorA) => "anthropic",
            (Self::OpenRouter, FileShape::VendorB) => "openai",
        }
    }
}

/// Returns true if the user agent is that of the package `openai`.
pub(crate) fn is_openai_package(headers: &HeaderMap) -> bool {
    agent(headers).is_some_and(|agent| OPENAI_AGENTS.iter().any(|package| agent.starts_with(package)))
}

fn is_published_package(headers: &HeaderMap) -> bool {
    is_openai_package(headers)
        || agent(headers).is_some_and(|agent| agent.starts_with(TYPESAFE_AGENT) || is_openrouter_agent(agent))
        || headers.keys().any(|name| name.as_str().starts_with(OPENROUTER_HEADERS))
}

fn agent(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(USER_AGENT).map(HeaderValue::as_bytes)
}

/// `speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter`: packages of other services differ in the last word.
fn is_openrouter_agent(agent: &[u8]) -> bool {
    let package = agent.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    agent.starts_with(GENERATED_AGENT)
        && package.windows(OPENROUTER.len()).any(|part| part.eq_ignore_ascii_case(OPENROUTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderName;

    fn names(name: &'static str, value: &'static str) -> WireNames {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
        assert_eq!(WireNames::OpenRouter.for_client(&headers), WireNames::OpenRouter, "the configuration stays");
        WireNames::Interface.for_client(&headers)
    }

    #[test]
    fn published_packages_get_their_names() {
        for (name, value) in [
            ("user-agent", "OpenAI/Python 3.52.0"),
            ("user-agent", "AsyncOpenAI/Python 3.52.0"),
            ("user-agent", "OpenAI/JS 7.55.0"),
            ("user-agent", "typesafe-sdk/0.7.5"),
            ("user-agent", "speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter"),
            ("user-agent", "speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk"),
            ("user-agent", "speakeasy-sdk/go 0.9.1 2.914.0 1.0.0 github.com/OpenRouterTeam/go-sdk"),
            ("x-openrouter-title", "my app"),
            ("x-openrouter-metadata", "enabled"),
        ] {
            assert_eq!(names(name, value), WireNames::OpenRouter, "{name}: {value}");
        }
    }

    #[test]
    fn configuration_decides_for_other_clients() {
        for (name, value) in [
            ("user-agent", "curl/8.0"),
            ("user-agent", "MyOpenAI/1"),
            ("user-agent", "my typesafe-sdk/0.7.5"),
            ("user-agent", "speakeasy-sdk/python 1.0.0 2.914.0 1.0.0 petstore"),
            ("user-agent", "openrouter"),
            ("x-client", "OpenAI/JS 7.55.0"),
            ("anthropic-version", "2023-06-01"),
            ("x-stainless-lang", "js"),
            ("x-tollgate-metadata", "enabled"),
            ("openrouter-title", "my app"),
        ] {
            assert_eq!(names(name, value), WireNames::Interface, "{name}: {value}");
        }
        assert_eq!(WireNames::Interface.for_client(&HeaderMap::new()), WireNames::Interface);
    }
}

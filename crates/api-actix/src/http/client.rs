//! The client of a request by its headers: its key, its address, and the literal names that its package expects.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use domain::api_key::{Authenticate, AuthenticateError, Principal};
use ipnet::IpNet;
use serde::Deserialize;

/// The headers that may hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// `Authorization` only; other headers are not read.
    Bearer,
    /// `Authorization` and the API key headers of vendor clients.
    AnyHeader,
}

/// The headers that replace a bearer token on the vendor routes.
const KEY_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
];

/// Authenticates the caller.
pub(crate) async fn authenticate(
    authenticate: &Authenticate,
    headers: &HeaderMap,
    accepted: Credentials,
) -> Result<Principal, AuthenticateError> {
    let token = match accepted {
        Credentials::Bearer => bearer_token(headers)?,
        Credentials::AnyHeader => any_token(headers)?,
    };
    authenticate.execute(token).await
}

/// Returns the token if all present headers hold the same one.
fn any_token(headers: &HeaderMap) -> Result<&str, AuthenticateError> {
    let mut token = headers.contains_key(AUTHORIZATION).then(|| bearer_token(headers)).transpose()?;
    for name in &KEY_HEADERS {
        for value in headers.get_all(name) {
            let value = value.to_str().map_err(|_| AuthenticateError::Invalid)?;
            if *token.get_or_insert(value) != value {
                return Err(AuthenticateError::Invalid);
            }
        }
    }
    token.ok_or(AuthenticateError::Missing)
}

/// Returns the token of exactly one `Bearer <token>` header; the scheme is case-insensitive and one or more spaces
/// follow.
fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthenticateError> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next().ok_or(AuthenticateError::Missing)?;
    if values.next().is_some() {
        return Err(AuthenticateError::Invalid);
    }
    let text = value.to_str().map_err(|_| AuthenticateError::Invalid)?;
    let (scheme, token) = text.split_once(' ').ok_or(AuthenticateError::Invalid)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(token.trim_start_matches(' '))
    } else {
        Err(AuthenticateError::Invalid)
    }
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the client address: the peer's, or the forwarded one if the peer is a trusted proxy.
pub(crate) fn client_address(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    Some(resolve_forwarded(request.peer_addr()?.ip(), request.headers(), trusted))
}

/// Walks `X-Forwarded-For` backwards while the writing proxy is trusted. Entries of an untrusted writer may be forged.
fn resolve_forwarded(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut client = peer.to_canonical();
    if !is_trusted(client) {
        return client;
    }
    let lines: Vec<&str> = headers.get_all(FORWARDED_FOR).filter_map(|value| value.to_str().ok()).collect();
    for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        if !is_trusted(client) {
            break;
        }
        match address(entry.trim()) {
            Some(forwarded) => client = forwarded,
            None => break,
        }
    }
    client
}

/// Parses an address with or without a port.
fn address(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let parsed = bare.parse().or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()));
    parsed.ok().map(|address: IpAddr| address.to_canonical())
}

/// The prefix of the headers that only `OpenRouter`'s packages and their users send.
const OPENROUTER_HEADERS: &str = "x-openrouter-";
/// The first words of the user agents of `openai` and `typesafe-sdk`.
const OPENAI_AGENTS: [&[u8]; 2] = [b"OpenAI/", b"AsyncOpenAI/"];
const TYPESAFE_AGENT: &[u8] = b"typesafe-sdk/";
/// The first word and a part of the last word of the user agents of `OpenRouter`'s packages.
const GENERATED_AGENT: &[u8] = b"speakeasy-sdk/";
const OPENROUTER: &[u8] = b"openrouter";

/// The literal names in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn token_of(values: &[&[u8]]) -> Result<String, AuthenticateError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(str::to_owned)
    }

    #[test]
    fn vendor_header_replaces_bearer_and_conflicts_are_rejected() {
        let token_of = |given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            any_token(&headers).map(str::to_owned)
        };
        for name in ["x-goog-api-key", "api-key", "x-api-key"] {
            assert_eq!(token_of(&[(name, "sk")]).unwrap(), "sk", "{name}");
            assert_eq!(token_of(&[("authorization", "Bearer sk"), (name, "sk")]).unwrap(), "sk", "{name}");
            for differing in [("authorization", "Bearer other"), ("authorization", "Basic sk"), (name, "other")] {
                assert!(matches!(token_of(&[(name, "sk"), differing]), Err(AuthenticateError::Invalid)), "{name}");
            }
        }
        assert_eq!(token_of(&[("authorization", "Bearer sk")]).unwrap(), "sk");
        assert!(matches!(token_of(&[("x-api-key", "a"), ("api-key", "b")]), Err(AuthenticateError::Invalid)));
        assert!(matches!(token_of(&[]), Err(AuthenticateError::Missing)));
    }

    #[test]
    fn bearer_scheme_accepts_any_case_and_spaces() {
        for header in ["Bearer sk", "bearer sk", "BEARER sk", "Bearer   sk"] {
            assert_eq!(token_of(&[header.as_bytes()]).unwrap(), "sk", "{header}");
        }
    }

    #[test]
    fn absent_header_is_missing_credentials() {
        assert!(matches!(token_of(&[]), Err(AuthenticateError::Missing)));
    }

    #[test]
    fn malformed_header_is_invalid_credentials() {
        let other: [&[&[u8]]; 7] = [
            &[b""],
            &[b"Bearer"],
            &[b"Basic c2s="],
            &[b"sk"],
            &[b"Bearer s\xc3\xa9"],
            &[b"Bearer sk", b"Bearer sk"],
            &[b"Bearer\tsk"],
        ];
        for values in other {
            assert!(matches!(token_of(values), Err(AuthenticateError::Invalid)), "{values:?}");
        }
    }

    fn client(peer: &str, forwarded: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_static(line));
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        resolve_forwarded(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn client_address_is_peer_without_trusted_proxy() {
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &[]), "192.0.2.1");
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &["10.0.0.0/8"]), "192.0.2.1");
    }

    #[test]
    fn client_address_uses_only_entries_of_trusted_proxies() {
        let trusted = ["10.0.0.0/8", "::1/128"];
        assert_eq!(client("10.0.0.1", &["203.0.113.9"], &trusted), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.2"], &trusted), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["1.1.1.1", "203.0.113.9"], &trusted), "203.0.113.9");
        assert_eq!(client("::1", &["[2001:db8::7]:443"], &trusted), "2001:db8::7");
        assert_eq!(client("::ffff:10.0.0.1", &["203.0.113.9:5555"], &trusted), "203.0.113.9");
    }

    #[test]
    fn client_address_stops_at_invalid_entry() {
        assert_eq!(client("10.0.0.1", &["203.0.113.9, unknown"], &["10.0.0.0/8"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[], &["10.0.0.0/8"]), "10.0.0.1");
    }

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

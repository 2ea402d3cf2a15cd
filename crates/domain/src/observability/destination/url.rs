//! Where a receiver is.

use super::MASK;
use crate::observability::{Destination, DestinationKind};

/// Longest URL, in bytes.
const LONGEST: usize = 2048;
/// Where collectors listen, below their base.
const TRACES: &str = "/v1/traces";

/// A URL that can be delivered to.
///
/// # Errors
/// Why it cannot, as the rest of a sentence; the URL, which may hold a secret, is not in it.
pub fn checked(url: &str) -> Result<String, &'static str> {
    let Some(rest) = after_scheme(url) else { return Err("must begin with http:// or https://") };
    if url.len() > LONGEST {
        return Err("must have at most 2,048 characters");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
        return Err("must be of ASCII characters as they stand in a URL; encode others with %");
    }
    if url.contains('#') {
        return Err("must not have a fragment");
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("must not have a user: send credentials in a header");
    }
    if !is_host_and_port(authority) {
        return Err("must name a host, and after it at most a port of 1 to 65535");
    }
    Ok(url.to_owned())
}

fn after_scheme(url: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let begins = url.get(..scheme.len())?.eq_ignore_ascii_case(scheme);
        begins.then(|| &url[scheme.len()..])
    })
}

fn is_host_and_port(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(literal) => {
            let Some((address, rest)) = literal.split_once(']') else { return false };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("v6", if rest.is_empty() { None } else { rest.strip_prefix(':').or(Some("")) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_port = |port: &str| {
        port.len() <= 5
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|number| number > 0)
    };
    let is_name = !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    is_name && port.is_none_or(is_port)
}

impl Destination {
    /// Where deliveries go. The base of a collector, which has no path, is completed by the path of traces.
    pub fn target(&self) -> String {
        let is_base = after_scheme(&self.url).is_some_and(|rest| {
            let path = rest.find(['/', '?']).map_or("", |place| &rest[place..]);
            matches!(path, "" | "/")
        });
        match self.kind {
            DestinationKind::OtelCollector if is_base => format!("{}{TRACES}", self.url.trim_end_matches('/')),
            _ => self.url.clone(),
        }
    }

    /// The URL for those who manage, its query masked: there secrets are often kept.
    pub fn shown_url(&self) -> String {
        match self.url.split_once('?') {
            Some((before, _)) => format!("{before}?{MASK}"),
            None => self.url.clone(),
        }
    }

    /// The URL without path and query, for logs: either may hold a secret.
    pub fn origin(&self) -> &str {
        let Some(rest) = after_scheme(&self.url) else { return "" };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        &self.url[..self.url.len() - rest.len() + authority.len()]
    }

    /// The sampling rate as a JSON number.
    pub fn sampling_rate(&self) -> String {
        super::sampling_rate::written(self.sampling)
    }
}

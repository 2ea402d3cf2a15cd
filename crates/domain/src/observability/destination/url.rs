//! URLs and sampling rates of destinations, as they are given and shown.

use crate::money::Usd;
use crate::observability::{Destination, DestinationKind, SAMPLING_PARTS};

/// The mask that is shown in place of a secret. In an update it keeps the stored secret.
pub const MASK: &str = "********";

/// The longest URL, in bytes.
const MAX_URL_BYTES: usize = 2048;
/// The path of the trace endpoint of an OpenTelemetry collector.
const TRACES_PATH: &str = "/v1/traces";

/// Validates the URL of a destination.
///
/// # Errors
/// The violation, as the rest of a sentence, without the URL, which may hold a secret.
pub fn checked_url(url: &str) -> Result<String, &'static str> {
    let Some(rest) = after_scheme(url) else { return Err("must begin with http:// or https://") };
    if url.len() > MAX_URL_BYTES {
        return Err("must have at most 2,048 characters");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
        return Err("must have ASCII characters only; percent-encode others");
    }
    if url.contains('#') {
        return Err("must not have a fragment");
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("must not have a user: send credentials in a header");
    }
    if host_and_port(authority).is_none() {
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

/// Returns `given` with a masked query replaced by the query of `stored`.
pub(super) fn unmasked_url(given: &str, stored: &str) -> Result<String, &'static str> {
    let Some((before, query)) = given.split_once('?').filter(|(_, query)| query.contains(MASK)) else {
        return Ok(given.to_owned());
    };
    if query != MASK {
        return Err("has a partly masked query; give the whole query, or only the mask to keep the stored one");
    }
    let (_, kept) = stored.split_once('?').ok_or("has a masked query, but no query is stored")?;
    Ok(format!("{before}?{kept}"))
}

/// The scheme, host and port of a URL.
#[derive(PartialEq, Eq)]
pub(super) struct Origin {
    is_tls: bool,
    /// The host in lower case; an IPv6 address in its shortest form.
    host: String,
    port: u16,
}

impl Origin {
    /// Returns the origin of a validated URL.
    pub(super) fn of(url: &str) -> Option<Self> {
        let rest = after_scheme(url)?;
        let is_tls = !url.get(..5)?.eq_ignore_ascii_case("http:");
        let (host, port) = host_and_port(rest.split(['/', '?']).next()?)?;
        Some(Self { is_tls, host, port: port.unwrap_or(if is_tls { 443 } else { 80 }) })
    }
}

fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, rest) = if let Some(literal) = authority.strip_prefix('[') {
        let (address, rest) = literal.split_once(']')?;
        (address.parse::<std::net::Ipv6Addr>().ok()?.to_string(), rest)
    } else {
        let (name, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        let is_name = (1..=253).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        (is_name.then(|| name.to_ascii_lowercase())?, rest)
    };
    if rest.is_empty() {
        return Some((host, None));
    }
    let port = rest.strip_prefix(':')?;
    let is_number = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_number && *port > 0)?;
    Some((host, Some(port)))
}

impl Destination {
    /// Returns the URL of deliveries. A collector's base URL without a path gets the path of traces.
    pub fn target(&self) -> String {
        let is_base = after_scheme(&self.url).is_some_and(|rest| {
            let path = rest.find(['/', '?']).map_or("", |place| &rest[place..]);
            matches!(path, "" | "/")
        });
        match self.kind {
            DestinationKind::OtelCollector if is_base => format!("{}{TRACES_PATH}", self.url.trim_end_matches('/')),
            _ => self.url.clone(),
        }
    }

    /// Returns the URL with a masked query, for managing callers: queries often hold secrets. The path is shown: a caller
    /// that declares the destination compares it.
    pub fn shown_url(&self) -> String {
        match self.url.split_once('?') {
            Some((before, _)) => format!("{before}?{MASK}"),
            None => self.url.clone(),
        }
    }

    /// Returns the URL without path and query, for logs: both may hold secrets.
    pub fn origin(&self) -> &str {
        let Some(rest) = after_scheme(&self.url) else { return "" };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        &self.url[..self.url.len() - rest.len() + authority.len()]
    }

    /// Returns the sampling rate as a JSON number.
    pub fn sampling_rate(&self) -> String {
        format_sampling_rate(self.sampling)
    }
}

/// One ten-thousandth in units of the twelfth decimal.
const TEN_THOUSANDTH: i64 = 100_000_000;

/// Parses a rate of 0.0001 to 1 with at most four decimals, in any JSON notation of a number.
pub(super) fn parse_sampling_rate(text: &str) -> Option<u16> {
    let exact = text.parse::<Usd>().ok()?.pico();
    let parts = u16::try_from(exact / TEN_THOUSANDTH).ok()?;
    (exact % TEN_THOUSANDTH == 0 && (1..=SAMPLING_PARTS).contains(&parts)).then_some(parts)
}

/// Formats a rate as a JSON number.
pub(super) fn format_sampling_rate(ten_thousandths: u16) -> String {
    Usd::from_pico(i64::from(ten_thousandths) * TEN_THOUSANDTH).to_string()
}

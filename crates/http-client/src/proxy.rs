//! The proxies of targets, and `NO_PROXY`: the hosts that are called without one, in the forms of curl, Go and undici.

use std::borrow::Cow;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use ipnet::IpNet;

use crate::{HttpClientError, ProxySettings};

/// The longest entry in a message, in characters.
const MAX_SHOWN_CHARS: usize = 80;

impl ProxySettings {
    /// Returns the entries of `no_proxy` that have no effect; none without a proxy.
    pub fn unknown_entries(&self) -> Vec<String> {
        let entries = self.no_proxy.as_deref().filter(|_| self.https_proxy.is_some() || self.http_proxy.is_some());
        entries.map_or_else(Vec::new, |entries| NoProxy::parse(entries).unknown_entries().to_vec())
    }
}

/// The proxies of `http://` and `https://` targets, and the targets that are called directly.
pub(crate) struct Proxies {
    matcher: Matcher,
    no_proxy: NoProxy,
}

impl Proxies {
    /// Builds the rules.
    ///
    /// # Errors
    /// The address of a proxy is not understood.
    pub(crate) fn new(settings: &ProxySettings) -> Result<Self, HttpClientError> {
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
    pub(crate) fn intercept(&self, target: &Uri) -> Option<Intercept> {
        if self.no_proxy.contains(target) { None } else { self.matcher.intercept(target) }
    }
}

/// The hosts that are called without a proxy. Where the tools disagree, more hosts are called directly: `.host` and
/// `*.host` include the host itself, and an entry without a port applies to every port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    rules: Vec<Rule>,
    unknown: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    hosts: Hosts,
    /// `None` is every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    /// A name in lower case, with every name below it.
    Domain(String),
    Network(IpNet),
}

impl NoProxy {
    /// Parses entries that are separated by commas or white space.
    pub fn parse(text: &str) -> Self {
        let mut parsed = Self::default();
        for entry in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty()) {
            match rule(entry) {
                Some(rule) => parsed.rules.push(rule),
                None => parsed.unknown.push(shown(entry)),
            }
        }
        parsed
    }

    /// Returns the entries that have no effect, because their form is unknown. User information is masked.
    pub fn unknown_entries(&self) -> &[String] {
        &self.unknown
    }

    /// Returns true if the target is called without a proxy. Names are not resolved: a network contains the addresses
    /// of targets that are named by an address.
    pub fn contains(&self, target: &Uri) -> bool {
        let Some(host) = target.host() else { return false };
        let host = without_brackets(host);
        let host = host.strip_suffix('.').unwrap_or(&host);
        let address: Option<IpAddr> = host.parse().ok();
        let default_port = if target.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        let port = target.port_u16().unwrap_or(default_port);
        self.rules.iter().filter(|rule| rule.port.is_none_or(|own| own == port)).any(|rule| match &rule.hosts {
            Hosts::All => true,
            Hosts::Domain(domain) => address.is_none() && is_in_domain(host, domain),
            Hosts::Network(network) => {
                address.is_some_and(|ip| network.contains(&ip) || network.contains(&ip.to_canonical()))
            }
        })
    }
}

fn rule(entry: &str) -> Option<Rule> {
    let (host, port) = split_port(entry)?;
    Some(Rule { hosts: hosts(host)?, port })
}

/// Splits `host:port`. Returns `None` if the port is none.
fn split_port(entry: &str) -> Option<(&str, Option<u16>)> {
    // The colons of an IPv6 address without brackets separate no port.
    if entry.parse::<IpAddr>().is_ok() || entry.parse::<IpNet>().is_ok() {
        return Some((entry, None));
    }
    match entry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?;
            Some((host, Some(port.filter(|port| *port > 0)?)))
        }
        _ => Some((entry, None)),
    }
}

fn hosts(host: &str) -> Option<Hosts> {
    if host == "*" {
        return Some(Hosts::All);
    }
    let literal = without_brackets(host);
    if let Ok(network) = literal.parse::<IpNet>() {
        return Some(Hosts::Network(network));
    }
    if let Ok(address) = literal.parse::<IpAddr>() {
        return Some(Hosts::Network(address.to_canonical().into()));
    }
    let name = host.strip_prefix("*.").or_else(|| host.strip_prefix('.')).unwrap_or(host);
    let name = name.strip_suffix('.').unwrap_or(name);
    is_name(name).then(|| Hosts::Domain(name.to_ascii_lowercase()))
}

/// Removes the brackets of an IPv6 address, with or without a prefix length behind it.
fn without_brackets(host: &str) -> Cow<'_, str> {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => address.into(),
        Some((address, length)) if length.starts_with('/') => format!("{address}{length}").into(),
        _ => host.into(),
    }
}

/// Returns true for a host name. A last label of digits only is a part of an address, which no tool understands.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_in_domain(host: &str, domain: &str) -> bool {
    let Some(begin) = host.len().checked_sub(domain.len()) else { return false };
    host.get(begin..).is_some_and(|end| end.eq_ignore_ascii_case(domain))
        && (begin == 0 || host.as_bytes()[begin - 1] == b'.')
}

/// Returns an entry for messages: bounded, without control characters and user information.
fn shown(entry: &str) -> String {
    let masked = entry.rsplit_once('@').map_or_else(|| entry.to_owned(), |(_, host)| format!("…@{host}"));
    masked.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry, targets that it contains, and targets that it does not contain.
    type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

    const FORMS: &[Row] = &[
        ("", &[], &["http://a.test", "http://127.0.0.1", "http://[::1]"]),
        ("*", &["http://a.test", "https://a.test:8443", "http://127.0.0.1:1", "https://[2001:db8::1]"], &[]),
        ("*:8080", &["http://a.test:8080", "http://10.0.0.1:8080"], &["http://a.test", "https://a.test:8081"]),
        (
            "a.test",
            &["http://a.test", "https://A.TEST:8443", "http://a.test.", "http://x.a.test", "http://y.x.a.test:1"],
            &["http://ba.test", "http://a.test.example", "http://test", "http://a.tes"],
        ),
        ("A.Test.", &["http://a.test", "http://x.a.test", "http://a.test."], &["http://ba.test"]),
        (".a.test", &["http://a.test", "http://x.a.test:9"], &["http://ba.test", "http://atest"]),
        ("*.a.test", &["http://a.test", "http://x.a.test:9"], &["http://ba.test", "http://atest"]),
        ("a.test:8080", &["http://a.test:8080", "https://x.a.test:8080"], &["http://a.test", "https://a.test:8081"]),
        ("a.test:80", &["http://a.test", "http://a.test:80"], &["https://a.test", "http://a.test:8080"]),
        ("a.test:443", &["https://a.test", "http://a.test:443"], &["http://a.test"]),
        (".a.test:443", &["https://a.test", "https://x.a.test"], &["http://x.a.test", "https://x.a.test:80"]),
        ("*.a.test:443", &["https://a.test", "https://x.a.test"], &["http://x.a.test", "https://ba.test"]),
        ("localhost", &["http://localhost:11434", "http://x.localhost"], &["http://127.0.0.1:11434"]),
        ("my_host", &["http://my_host:1"], &["http://host"]),
        ("10.0.0.1", &["http://10.0.0.1", "https://10.0.0.1:8443", "http://[::ffff:10.0.0.1]"], &["http://10.0.0.2"]),
        ("10.0.0.1:8080", &["http://10.0.0.1:8080"], &["http://10.0.0.1", "http://10.0.0.2:8080"]),
        ("10.0.0.0/8", &["http://10.255.0.1:5", "http://[::ffff:10.1.1.1]"], &["http://11.0.0.1", "http://a.10.test"]),
        ("0.0.0.0/0", &["http://10.255.0.1:5", "https://1.1.1.1"], &["http://[::1]", "http://a.test"]),
        ("10.0.0.0/8:8080", &["http://10.1.0.1:8080"], &["http://10.1.0.1", "http://11.0.0.1:8080"]),
        ("::1", &["http://[::1]", "https://[::1]:8443"], &["http://[::2]", "http://127.0.0.1"]),
        ("[::1]", &["http://[::1]", "https://[::1]:8443"], &["http://[::2]"]),
        ("[::1]:8080", &["http://[::1]:8080"], &["http://[::1]", "http://[::2]:8080"]),
        ("2001:DB8::A", &["http://[2001:db8:0::a]:1"], &["http://[2001:db8::b]"]),
        ("2001:db8::/32", &["http://[2001:db8:1::1]:7"], &["http://[2001:db9::1]", "http://1.2.3.4"]),
        ("[2001:db8::]/32", &["http://[2001:db8:1::1]:7"], &["http://[2001:db9::1]"]),
        ("::ffff:10.0.0.1", &["http://10.0.0.1", "http://[::ffff:10.0.0.1]"], &["http://10.0.0.2"]),
        ("a.test,b.test", &["http://a.test", "http://b.test"], &["http://c.test"]),
        (" a.test ,, b.test\t10.0.0.1\n", &["http://a.test", "http://b.test", "http://10.0.0.1"], &["http://c.test"]),
        ("b.test *", &["http://a.test", "http://1.2.3.4"], &[]),
    ];

    #[test]
    fn contains_follows_every_form() {
        for (entry, direct, by_proxy) in FORMS {
            let no_proxy = NoProxy::parse(entry);
            assert!(no_proxy.unknown_entries().is_empty(), "{entry}");
            let contains = |target: &str| no_proxy.contains(&target.parse().unwrap());
            for target in *direct {
                assert!(contains(target), "{entry:?} must contain {target}");
            }
            for target in *by_proxy {
                assert!(!contains(target), "{entry:?} must not contain {target}");
            }
        }
    }

    #[test]
    fn unknown_forms_are_returned_and_have_no_effect() {
        for entry in [
            "http://a.test",
            "a.test/v1",
            "a.*.test",
            "*a.test",
            "a*",
            "**",
            "<local>",
            "a.test:",
            "a.test:x",
            "a.test:0",
            "a.test:65536",
            ":8080",
            ".",
            "..a.test",
            "a..test",
            "10.",
            "10.0.0",
            "192.168.*",
            "10.0.0.0/33",
            "10/8",
            "10.0.0.0/255.0.0.0",
            "[::1",
            "::1]",
            "[::1]x",
            "[a.test]",
            "fe80::1%eth0",
            "bücher.test",
            "a;b",
            "a|b",
        ] {
            let no_proxy = NoProxy::parse(&format!("x.test,{entry}"));
            assert_eq!(no_proxy.unknown_entries(), [entry]);
            assert!(no_proxy.contains(&"http://x.test".parse().unwrap()), "{entry}");
            assert_eq!(no_proxy.rules.len(), 1, "{entry}");
        }
    }

    #[test]
    fn shown_entry_is_bounded_and_masked() {
        let no_proxy = NoProxy::parse(&format!("http://me:very-secret@a.test {}*", "a".repeat(500)));
        assert_eq!(no_proxy.unknown_entries()[0], "…@a.test");
        assert_eq!(no_proxy.unknown_entries()[1].chars().count(), MAX_SHOWN_CHARS);
    }
}

//! The client address for logs, audit entries and usage records.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderName};
use ipnet::IpNet;

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

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

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
}

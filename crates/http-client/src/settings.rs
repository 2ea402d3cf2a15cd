//! Settings of the HTTP client.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::body::BoxError;

/// The settings of the HTTP client.
#[derive(Debug, Clone)]
pub struct HttpClientSettings {
    /// Longest time to open a connection: name look-up, TCP, proxy and TLS together.
    pub connect_timeout: Duration,
    /// A PEM file of certificate authorities that are trusted beside the platform's.
    pub extra_ca_file: Option<PathBuf>,
    /// The PEM files of a client certificate with its chain and of its key, for servers that require one.
    pub client_identity: Option<(PathBuf, PathBuf)>,
    /// The use of HTTP/2.
    pub http2: Http2,
    /// Outbound proxies.
    pub proxy: ProxySettings,
    /// Limit in bytes for the header sections of a response, informational ones included. Over HTTP/2 it applies to
    /// each stream, and to control frames between two answers.
    pub max_header_bytes: u64,
    /// Pings on HTTP/2 connections; `None` sends none.
    pub http2_pings: Option<PingSettings>,
    /// The `user-agent` header.
    pub user_agent: String,
    /// The time after which an idle connection closes.
    pub pool_idle_timeout: Duration,
    /// The most idle connections per host.
    pub pool_max_idle_per_host: usize,
    /// True if only public addresses are called: no loopback, private, link-local or other internal ones.
    pub public_addresses_only: bool,
    /// The number of pools, at least one. With one pool per calling thread, a connection is driven by the thread that
    /// waits for it.
    pub pools: usize,
}

impl Default for HttpClientSettings {
    /// Two seconds to connect, 256 KiB of heads, no proxy.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(2),
            extra_ca_file: None,
            client_identity: None,
            http2: Http2::default(),
            proxy: ProxySettings::default(),
            max_header_bytes: 256 << 10,
            http2_pings: Some(PingSettings::default()),
            user_agent: concat!("tollgate/", env!("CARGO_PKG_VERSION")).to_owned(),
            pool_idle_timeout: Duration::from_mins(1),
            pool_max_idle_per_host: 256,
            public_addresses_only: false,
            pools: 1,
        }
    }
}

/// Pings on HTTP/2 connections. A connection whose ping is not acknowledged in time is closed, and every call on it
/// fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingSettings {
    /// The time without a received frame after which a ping is sent.
    pub interval: Duration,
    /// The time that the acknowledgement may take.
    pub timeout: Duration,
}

impl Default for PingSettings {
    /// A ping after ten seconds of silence, and five seconds for its acknowledgement.
    fn default() -> Self {
        Self { interval: Duration::from_secs(10), timeout: Duration::from_secs(5) }
    }
}

/// The use of HTTP/2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Http2 {
    /// Never.
    Off,
    /// Over TLS where the server picks it (ALPN); HTTP/1.1 otherwise.
    #[default]
    Negotiated,
    /// Always, without negotiation; for servers known to support it, over plain HTTP too.
    PriorKnowledge,
}

/// Outbound proxies, as in `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. An empty string is no proxy.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy for `https://` targets: an `http://` or `https://` address, credentials allowed.
    pub https_proxy: Option<String>,
    /// The proxy for `http://` targets.
    pub http_proxy: Option<String>,
    /// The hosts, domains and networks that are called directly: see [`NoProxy`](crate::NoProxy).
    pub no_proxy: Option<String>,
}

impl fmt::Debug for ProxySettings {
    /// Without the addresses, which may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySettings")
            .field("https_proxy", &self.https_proxy.as_ref().map(|_| "…"))
            .field("http_proxy", &self.http_proxy.as_ref().map(|_| "…"))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Invalid client settings.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The file of extra certificate authorities cannot be used.
    #[error("the certificate authority file {} cannot be read as PEM", path.display())]
    CaFile {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The file of extra certificate authorities holds none.
    #[error("the certificate authority file {} holds no usable certificate", .0.display())]
    EmptyCaFile(PathBuf),
    /// The file of the client certificate cannot be used.
    #[error("the client certificate file {} holds no certificate in PEM, or cannot be read", .0.display())]
    ClientCertificate(PathBuf),
    /// The file of the client certificate's key cannot be used.
    #[error("the file of client_key_file holds no unencrypted private key in PEM, or cannot be read")]
    ClientKey,
    /// The client certificate and the key do not belong together, or their kind is not supported.
    #[error("client_cert_file and client_key_file cannot be used together")]
    ClientIdentity(#[source] rustls::Error),
    /// A proxy's address is not understood.
    #[error("the {0} is not an http:// or https:// address")]
    Proxy(&'static str),
    /// The user agent is no header value.
    #[error("the user agent must be printable ASCII")]
    UserAgent,
    /// The TLS library refused its own defaults.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

//! Causes of failed attempts that an operator can mend.

/// The cause of a failed attempt that lies between the client and the request: in the network, in the configuration, or
/// in the account at the provider. A closed list, so that it can be shown to every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The host name has no address.
    NameNotFound,
    /// The port is closed.
    ConnectionRefused,
    /// No route leads to the address.
    Unreachable,
    /// The time to connect passed.
    ConnectTimedOut,
    /// The peer ended the connection before the request.
    ConnectionEnded,
    /// No connection to the proxy.
    ProxyUnreachable,
    /// 407: the proxy needs credentials, or others.
    ProxyCredentials,
    /// The proxy answered `CONNECT` with another status than 200 and 407, or not at all.
    ProxyRejected,
    /// No trusted authority signed the certificate.
    CertificateUntrusted,
    /// The provider presents a certificate authority as its own certificate.
    CertificateIsAuthority,
    /// The certificate is not valid at this time.
    CertificateExpired,
    /// The certificate does not contain the host name.
    CertificateName,
    /// No certificate authority is known.
    NoAuthorities,
    /// The port does not respond in TLS.
    NoTls,
    /// TLS failed in another way.
    TlsFailed,
    /// `HTTP_1_1_REQUIRED`.
    Http11Required,
    /// The account has no balance, credit or quota left, or its billing is not active.
    AccountExhausted,
    /// The API key is missing, unknown, expired or disabled.
    KeyRejected,
}

impl FailureCause {
    /// Returns the name in metadata and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NameNotFound => "name_not_found",
            Self::ConnectionRefused => "connection_refused",
            Self::Unreachable => "unreachable",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::ConnectionEnded => "connection_ended",
            Self::ProxyUnreachable => "proxy_unreachable",
            Self::ProxyCredentials => "proxy_credentials",
            Self::ProxyRejected => "proxy_rejected",
            Self::CertificateUntrusted => "certificate_untrusted",
            Self::CertificateIsAuthority => "certificate_is_authority",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateName => "certificate_name",
            Self::NoAuthorities => "no_authorities",
            Self::NoTls => "no_tls",
            Self::TlsFailed => "tls_failed",
            Self::Http11Required => "http_1_1_required",
            Self::AccountExhausted => "account_exhausted",
            Self::KeyRejected => "key_rejected",
        }
    }

    /// Returns the sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NameNotFound => "the host name was not found",
            Self::ConnectionRefused => "the connection was refused",
            Self::Unreachable => "the address is unreachable",
            Self::ConnectTimedOut => "the connection could not be made in time",
            Self::ConnectionEnded => "the connection ended before the request",
            Self::ProxyUnreachable => "the proxy cannot be reached",
            Self::ProxyCredentials => "the proxy asks for credentials (407)",
            Self::ProxyRejected => "the proxy did not connect to the provider",
            Self::CertificateUntrusted => "no trusted authority signed the certificate; ca_file can name one",
            Self::CertificateIsAuthority => {
                "the certificate is an authority (CA:TRUE): create one with basicConstraints=critical,CA:FALSE"
            }
            Self::CertificateExpired => "the certificate has expired or is not valid yet",
            Self::CertificateName => "the certificate is for another name",
            Self::NoAuthorities => "https is not possible: no certificate authorities found; set ca_file",
            Self::NoTls => "the port does not respond in TLS; is the address http://?",
            Self::TlsFailed => "TLS failed",
            Self::Http11Required => {
                "the provider requires HTTP/1.1; remove http2_prior_knowledge, or switch off HTTP/2 at the provider"
            }
            Self::AccountExhausted => "the account at the provider has no balance, credit or quota left",
            Self::KeyRejected => "the provider rejected the API key",
        }
    }

    /// Returns true for trouble with our account, which the content of a request cannot cause.
    pub fn is_of_account(self) -> bool {
        matches!(self, Self::AccountExhausted | Self::KeyRejected)
    }
}

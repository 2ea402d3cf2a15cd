//! Failures of attempts, and the error that the failures of a request result in.

use std::fmt;
use std::time::Duration;

use crate::error::ErrorKind;
use crate::pricing::ReportedUsage;
use crate::usage::AttemptOutcome;

/// How one attempt at one endpoint failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailureKind {
    /// No connection: DNS, TCP, TLS or a proxy failed, or connecting timed out. No request reached the provider.
    ConnectFailed,
    /// The connection was reset or closed before the response began. The request may have been sent.
    ConnectionLost,
    /// An error status without a more specific kind: 3xx (redirects are not followed), 404, 408, 5xx.
    HttpError,
    /// A response that is incomplete, too large, not HTTP, not JSON, or does not match the questions.
    InvalidResponse,
    /// 401, 402 or 403, or another error about our account: the provider rejected our credentials.
    ProviderAuthFailed,
    /// 429, 503 or 529.
    Overloaded,
    /// The attempt's deadline passed.
    TimedOut,
    /// 400, 413 or 422: this provider rejected the request; another one may accept it.
    RejectedByProvider,
    /// The provider responded, but the model did not answer the question. The input causes this, so it does not count
    /// against the endpoint.
    NoUsableAnswer,
    /// The memory for requests and answers is used up, so the response was not read to its end.
    MemoryExhausted,
    /// The client disconnected, so the attempt was cancelled.
    ClientDisconnected,
    /// A failure that a sandbox model simulates. It is returned to the client without a fallback.
    Simulated(ErrorKind),
}

impl AttemptFailureKind {
    /// Returns the outcome of an attempt with this failure.
    pub fn outcome(self) -> AttemptOutcome {
        match self {
            Self::ConnectFailed | Self::ConnectionLost => AttemptOutcome::ConnectError,
            Self::HttpError => AttemptOutcome::HttpError,
            Self::InvalidResponse => AttemptOutcome::InvalidResponse,
            Self::ProviderAuthFailed => AttemptOutcome::ProviderAuthFailed,
            Self::Overloaded => AttemptOutcome::Overloaded,
            Self::TimedOut => AttemptOutcome::TimedOut,
            Self::RejectedByProvider => AttemptOutcome::RejectedByProvider,
            Self::NoUsableAnswer => AttemptOutcome::NoUsableAnswer,
            Self::MemoryExhausted => AttemptOutcome::MemoryExhausted,
            Self::ClientDisconnected => AttemptOutcome::ClientDisconnected,
            Self::Simulated(_) => AttemptOutcome::Simulated,
        }
    }

    /// Returns the name of the outcome.
    pub fn as_str(self) -> &'static str {
        self.outcome().as_str()
    }
}

impl AttemptFailureKind {
    /// Returns true if the request ends with this failure: another endpoint would not help.
    pub fn ends_request(self) -> bool {
        matches!(self, Self::ClientDisconnected | Self::MemoryExhausted | Self::Simulated(_))
    }
}

/// The error that a provider reported in its response. For the log only, because the message may repeat the client's
/// input. The adapter bounds it and redacts keys. `Debug` omits it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The provider's error code, at most [`Self::MAX_CODE_CHARS`] characters.
    pub code: Option<String>,
    /// The provider's message, at most [`Self::MAX_MESSAGE_CHARS`] characters.
    pub message: Option<String>,
}

impl ProviderError {
    /// The longest code.
    pub const MAX_CODE_CHARS: usize = 64;
    /// The longest message.
    pub const MAX_MESSAGE_CHARS: usize = 256;
}

impl fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderError(…)")
    }
}

/// A failed attempt, as the provider adapter reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the attempt failed: {detail}")]
pub struct AttemptFailure {
    /// The kind of the failure.
    pub kind: AttemptFailureKind,
    /// The HTTP status of the provider, if it sent one.
    pub upstream_status: Option<u16>,
    /// The `Retry-After` of the provider.
    pub retry_after: Option<Duration>,
    /// Bytes of the request that may have reached the provider: 0 if it was not sent.
    pub sent_bytes: u64,
    /// The usage that the provider reported in an invalid response.
    pub usage: Option<ReportedUsage>,
    /// A sentence of our own for logs and records. MUST NOT contain text of the provider, which may repeat the client's
    /// input or a secret.
    pub detail: String,
    /// The cause, if it is one that an operator can mend.
    pub cause: Option<FailureCause>,
    /// The error that the provider reported, if any.
    pub provider_error: Option<Box<ProviderError>>,
}

impl AttemptFailure {
    /// Creates a failure without a status.
    pub fn new(kind: AttemptFailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            upstream_status: None,
            retry_after: None,
            sent_bytes: 0,
            usage: None,
            detail: detail.into(),
            cause: None,
            provider_error: None,
        }
    }

    /// Creates a failure of a cause, which determines its kind.
    pub fn of_cause(cause: FailureCause) -> Self {
        let kind = if cause.is_of_account() {
            AttemptFailureKind::ProviderAuthFailed
        } else {
            AttemptFailureKind::ConnectFailed
        };
        Self { cause: Some(cause), ..Self::new(kind, cause.sentence()) }
    }

    /// Classifies an error status of a provider. `retry_after` is the value of its `Retry-After` header.
    pub fn from_status(status: u16, retry_after: Option<Duration>) -> Self {
        let of_cause = |cause| Self { upstream_status: Some(status), retry_after, ..Self::of_cause(cause) };
        let kind = match status {
            402 => return of_cause(FailureCause::AccountExhausted),
            // Providers do not send it.
            407 => return of_cause(FailureCause::ProxyCredentials),
            400 | 413 | 422 => AttemptFailureKind::RejectedByProvider,
            401 | 403 => AttemptFailureKind::ProviderAuthFailed,
            429 | 503 | 529 => AttemptFailureKind::Overloaded,
            200..=299 => AttemptFailureKind::InvalidResponse,
            _ => AttemptFailureKind::HttpError,
        };
        Self {
            upstream_status: Some(status),
            retry_after,
            ..Self::new(kind, format!("the provider answered {status}"))
        }
    }
}

/// Returns the error of a request whose attempts failed, in this order:
///
/// - overloaded if every attempt was overloaded;
/// - an invalid request if providers rejected all other attempts;
/// - otherwise the last other failure decides: a passed deadline is a timeout, the rest are provider failures.
pub fn verdict(failures: &[AttemptFailureKind]) -> ErrorKind {
    use AttemptFailureKind as Kind;
    let last_other = |not: &[Kind]| failures.iter().rev().find(|kind| !not.contains(kind)).copied();
    match last_other(&[Kind::Overloaded, Kind::RejectedByProvider]) {
        Some(Kind::TimedOut) => ErrorKind::TimedOut,
        Some(Kind::ClientDisconnected) => ErrorKind::ClientDisconnected,
        Some(Kind::MemoryExhausted) => ErrorKind::Unavailable,
        Some(Kind::Simulated(kind)) => kind,
        Some(_) => ErrorKind::ProviderFailure,
        None if last_other(&[Kind::Overloaded]).is_some() => ErrorKind::InvalidRequest,
        None if failures.is_empty() => ErrorKind::ProviderFailure,
        None => ErrorKind::ProviderOverloaded,
    }
}

named_enum! {
    /// The cause of a failed attempt that lies between the client and the request: in the network, in the
    /// configuration, or in the account at the provider. A closed list, so that it can be shown to every client.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FailureCause {
        /// The host name has no address.
        NameNotFound = "name_not_found",
        /// The port is closed.
        ConnectionRefused = "connection_refused",
        /// No route leads to the address.
        Unreachable = "unreachable",
        /// The time to connect passed.
        ConnectTimedOut = "connect_timed_out",
        /// The peer ended the connection before the request.
        ConnectionEnded = "connection_ended",
        /// No connection to the proxy.
        ProxyUnreachable = "proxy_unreachable",
        /// 407: the proxy needs credentials, or others.
        ProxyCredentials = "proxy_credentials",
        /// The proxy answered `CONNECT` with another status than 200 and 407, or not at all.
        ProxyRejected = "proxy_rejected",
        /// No trusted authority signed the certificate.
        CertificateUntrusted = "certificate_untrusted",
        /// The provider presents a certificate authority as its own certificate.
        CertificateIsAuthority = "certificate_is_authority",
        /// The certificate is not valid at this time.
        CertificateExpired = "certificate_expired",
        /// The certificate does not contain the host name.
        CertificateName = "certificate_name",
        /// No certificate authority is known.
        NoAuthorities = "no_authorities",
        /// The port does not respond in TLS.
        NoTls = "no_tls",
        /// TLS failed in another way.
        TlsFailed = "tls_failed",
        /// `HTTP_1_1_REQUIRED`.
        Http11Required = "http_1_1_required",
        /// The account has no balance, credit or quota left, or its billing is not active.
        AccountExhausted = "account_exhausted",
        /// The API key is missing, unknown, expired or disabled.
        KeyRejected = "key_rejected",
    }
}

impl FailureCause {
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

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptFailureKind::{
        HttpError, InvalidResponse, Overloaded, ProviderAuthFailed, RejectedByProvider, TimedOut,
    };
    use rstest::rstest;

    #[rstest]
    #[case(&[HttpError], ErrorKind::ProviderFailure)]
    #[case(&[ProviderAuthFailed], ErrorKind::ProviderFailure)]
    #[case(&[Overloaded], ErrorKind::ProviderOverloaded)]
    #[case(&[Overloaded, Overloaded], ErrorKind::ProviderOverloaded)]
    #[case(&[TimedOut, Overloaded], ErrorKind::TimedOut)]
    #[case(&[Overloaded, HttpError], ErrorKind::ProviderFailure)]
    #[case(&[TimedOut], ErrorKind::TimedOut)]
    #[case(&[HttpError, TimedOut], ErrorKind::TimedOut)]
    #[case(&[TimedOut, HttpError], ErrorKind::ProviderFailure)]
    #[case(&[AttemptFailureKind::NoUsableAnswer], ErrorKind::ProviderFailure)]
    #[case(&[HttpError, AttemptFailureKind::MemoryExhausted], ErrorKind::Unavailable)]
    #[case(&[RejectedByProvider], ErrorKind::InvalidRequest)]
    #[case(&[RejectedByProvider, RejectedByProvider], ErrorKind::InvalidRequest)]
    #[case(&[RejectedByProvider, Overloaded], ErrorKind::InvalidRequest)]
    #[case(&[RejectedByProvider, HttpError], ErrorKind::ProviderFailure)]
    #[case(&[HttpError, RejectedByProvider], ErrorKind::ProviderFailure)]
    fn verdict_combines_failures_of_attempts(#[case] failures: &[AttemptFailureKind], #[case] expected: ErrorKind) {
        assert_eq!(verdict(failures), expected);
    }

    #[rstest]
    #[case(&[301, 302, 307, 404, 405, 408, 418, 500, 501, 502, 504, 520], HttpError)]
    #[case(&[201, 204], InvalidResponse)]
    #[case(&[401, 402, 403], ProviderAuthFailed)]
    #[case(&[407], AttemptFailureKind::ConnectFailed)]
    #[case(&[429, 503, 529], Overloaded)]
    #[case(&[400, 413, 422], RejectedByProvider)]
    fn from_status_classifies_status(#[case] statuses: &[u16], #[case] expected: AttemptFailureKind) {
        for &status in statuses {
            assert_eq!(AttemptFailure::from_status(status, None).kind, expected, "{status}");
        }
    }
}

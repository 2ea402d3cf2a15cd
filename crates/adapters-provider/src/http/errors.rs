//! Errors of building a client and of calls.

use std::error::Error;
use std::path::PathBuf;

use domain::routing::{AttemptFailure, AttemptFailureKind, FailureCause};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use rustls::CertificateError;
use tower_service::Service;

use super::frames::TooManyBytes;
use super::meter::Meter;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

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

/// Opening a connection took longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the connection took too long")]
pub(super) struct ConnectTimedOut;

/// Builds the failure of a response that cannot be used.
pub(super) fn invalid_response(detail: &str) -> AttemptFailure {
    AttemptFailure::new(AttemptFailureKind::InvalidResponse, detail)
}

/// The error of a call without an answer.
pub(super) enum CallError {
    /// No connection was made.
    Connect(BoxError),
    /// The connection ended between its opening and the first request.
    Handshake,
    /// The provider exceeded a limit before its answer.
    TooManyBytes(TooManyBytes),
    /// The connection broke.
    Http(hyper::Error),
}

impl CallError {
    /// Classifies an error of a connection with this meter.
    pub(super) fn of(error: hyper::Error, meter: &Meter) -> Self {
        meter.violation().map_or(Self::Http(error), Self::TooManyBytes)
    }

    /// Converts to a failure. The libraries' messages may repeat text of the provider (the debug data of an HTTP/2
    /// GOAWAY, for example), so they are not logged.
    pub(super) fn into_failure(self) -> AttemptFailure {
        match self {
            Self::Connect(error) => connect_cause(&*error).map_or_else(
                || AttemptFailure::new(AttemptFailureKind::ConnectFailed, "the connection could not be made"),
                AttemptFailure::of_cause,
            ),
            Self::Handshake => AttemptFailure::of_cause(FailureCause::ConnectionEnded),
            Self::TooManyBytes(violation) => invalid_response(&violation.to_string()),
            Self::Http(error) if error.is_parse() => invalid_response("the provider's answer is not HTTP"),
            Self::Http(error) => {
                let requires_http1 =
                    http2_error(&error).and_then(h2::Error::reason) == Some(h2::Reason::HTTP_1_1_REQUIRED);
                let cause = requires_http1.then_some(FailureCause::Http11Required);
                let detail = cause.map_or("the connection broke before the answer", FailureCause::sentence);
                AttemptFailure { cause, ..AttemptFailure::new(AttemptFailureKind::ConnectionLost, detail) }
            }
        }
    }
}

/// Returns the HTTP/2 error behind an error, if any. An I/O error is none.
pub(super) fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    ErrorCauses(Some(error)).find_map(|cause| cause.downcast_ref())
}

/// A connection to a proxy that failed.
#[derive(Debug, thiserror::Error)]
#[error("the proxy cannot be reached")]
pub(super) struct ProxyUnreachable(#[source] pub(super) BoxError);

/// The error of a tunnel, whatever connects to the proxy.
type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;

/// Returns the cause of a failed connection, if it is known.
fn connect_cause(error: &(dyn Error + 'static)) -> Option<FailureCause> {
    ErrorCauses(Some(error)).find_map(|cause| {
        if cause.is::<ConnectTimedOut>() {
            return Some(FailureCause::ConnectTimedOut);
        }
        if cause.is::<ProxyUnreachable>() {
            return Some(FailureCause::ProxyUnreachable);
        }
        if let Some(tunnel) = cause.downcast_ref::<TunnelError>() {
            return Some(tunnel_cause(tunnel));
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return Some(tls_cause(tls));
        }
        // The resolver of the standard library has no kind of its own.
        if cause.to_string().starts_with("failed to lookup address information") {
            return Some(FailureCause::NameNotFound);
        }
        io_cause(cause.downcast_ref::<std::io::Error>()?.kind())
    })
}

fn tunnel_cause(error: &TunnelError) -> FailureCause {
    match error {
        TunnelError::ConnectFailed(_) => FailureCause::ProxyUnreachable,
        TunnelError::ProxyAuthRequired => FailureCause::ProxyCredentials,
        _ => FailureCause::ProxyRejected,
    }
}

fn tls_cause(error: &rustls::Error) -> FailureCause {
    match error {
        rustls::Error::InvalidCertificate(invalid) => match invalid {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => FailureCause::CertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                FailureCause::CertificateName
            }
            // The error of the verifier has no kind of its own.
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                FailureCause::CertificateIsAuthority
            }
            _ => FailureCause::CertificateUntrusted,
        },
        rustls::Error::InvalidMessage(_) => FailureCause::NoTls,
        _ => FailureCause::TlsFailed,
    }
}

fn io_cause(kind: std::io::ErrorKind) -> Option<FailureCause> {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::ConnectionRefused => Some(FailureCause::ConnectionRefused),
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable => Some(FailureCause::Unreachable),
        ErrorKind::TimedOut => Some(FailureCause::ConnectTimedOut),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(FailureCause::ConnectionEnded),
        _ => None,
    }
}

/// An iterator over an error and its causes, including the ones wrapped in I/O errors.
struct ErrorCauses<'a>(Option<&'a (dyn Error + 'static)>);

impl<'a> Iterator for ErrorCauses<'a> {
    type Item = &'a (dyn Error + 'static);

    fn next(&mut self) -> Option<Self::Item> {
        let error = self.0?;
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        self.0 = wrapped.or_else(|| error.source());
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use rustls_pki_types::{ServerName, UnixTime};
    use std::io::{Error as IoError, ErrorKind};
    use std::time::Duration;

    fn time() -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(1))
    }

    fn expired() -> CertificateError {
        CertificateError::ExpiredContext { time: time(), not_after: time() }
    }

    fn of_another_name() -> CertificateError {
        let expected = ServerName::try_from("a.example").unwrap();
        CertificateError::NotValidForNameContext { expected, presented: Vec::new() }
    }

    #[rstest]
    #[case(CertificateError::Expired, FailureCause::CertificateExpired)]
    #[case(expired(), FailureCause::CertificateExpired)]
    #[case(CertificateError::NotValidYet, FailureCause::CertificateExpired)]
    #[case(CertificateError::NotValidForName, FailureCause::CertificateName)]
    #[case(of_another_name(), FailureCause::CertificateName)]
    #[case(CertificateError::UnknownIssuer, FailureCause::CertificateUntrusted)]
    #[case(CertificateError::BadSignature, FailureCause::CertificateUntrusted)]
    fn connect_cause_reads_certificate_errors(#[case] error: CertificateError, #[case] expected: FailureCause) {
        // As the TLS connector wraps it.
        let wrapped: BoxError = IoError::new(ErrorKind::InvalidData, rustls::Error::InvalidCertificate(error)).into();
        assert_eq!(connect_cause(&*wrapped), Some(expected));
    }

    #[rstest]
    #[case(ErrorKind::ConnectionRefused, Some(FailureCause::ConnectionRefused))]
    #[case(ErrorKind::HostUnreachable, Some(FailureCause::Unreachable))]
    #[case(ErrorKind::NetworkUnreachable, Some(FailureCause::Unreachable))]
    #[case(ErrorKind::TimedOut, Some(FailureCause::ConnectTimedOut))]
    #[case(ErrorKind::ConnectionReset, Some(FailureCause::ConnectionEnded))]
    #[case(ErrorKind::UnexpectedEof, Some(FailureCause::ConnectionEnded))]
    #[case(ErrorKind::Other, None)]
    fn connect_cause_reads_io_errors(#[case] kind: ErrorKind, #[case] expected: Option<FailureCause>) {
        assert_eq!(connect_cause(&IoError::from(kind)), expected);
        let by_proxy = ProxyUnreachable(IoError::from(kind).into());
        assert_eq!(connect_cause(&by_proxy), Some(FailureCause::ProxyUnreachable));
    }
}

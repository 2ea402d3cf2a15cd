//! Errors of calls.

use std::error::Error as StdError;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use rustls::CertificateError;
use tower_service::Service;

use crate::body::BoxError;
use crate::dialer::{ForbiddenAddress, UnresolvedName};
use crate::frames::TooManyBytes;
use crate::meter::Meter;

/// Opening a connection took longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the connection took too long")]
pub(crate) struct ConnectTimedOut;

/// A call without the head of an answer. The messages of the libraries may repeat text of the server (the debug data of
/// an HTTP/2 GOAWAY, for example), so they are sources only.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No certificate authority is known, so that no `https://` call can succeed.
    #[error("no certificate authority is known")]
    NoAuthorities,
    /// No connection was made.
    #[error("the connection could not be made")]
    Connect {
        /// The cause, if it is known.
        cause: Option<ConnectCause>,
        /// The error of the connector.
        source: BoxError,
    },
    /// The connection ended between its opening and the first request.
    #[error("the connection ended before the request")]
    Handshake(#[source] hyper::Error),
    /// The server exceeded a limit before its answer.
    #[error("{violation}")]
    TooManyBytes {
        /// The state of the request.
        loss: Loss,
        /// The exceeded limit.
        violation: TooManyBytes,
    },
    /// The answer is not HTTP.
    #[error("the answer is not HTTP")]
    NotHttp {
        /// The state of the request.
        loss: Loss,
        /// The error of the connection.
        source: hyper::Error,
    },
    /// The connection broke.
    #[error("the connection broke before the answer")]
    Lost {
        /// The state of the request.
        loss: Loss,
        /// The error of the connection.
        source: hyper::Error,
    },
}

/// The state of a request whose connection ended without the head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The server certainly did not process the request: it was not sent, or the server refused it (RFC 9113, section
    /// 8.7).
    NotProcessed,
    /// A reused connection ended without a byte of an answer. Most servers had closed it before the request arrived.
    Silent,
    /// The server may have processed the request.
    Unknown,
}

/// The cause of a connection that could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectCause {
    /// The host name has no address.
    NameNotFound,
    /// This machine could not look up the host name, without open files left for example.
    LookUpFailed,
    /// An address of the host is not public.
    ForbiddenAddress,
    /// The port is closed.
    ConnectionRefused,
    /// No route leads to the address.
    Unreachable,
    /// The time to connect passed.
    TimedOut,
    /// The peer ended the connection.
    ConnectionEnded,
    /// No connection to the proxy.
    ProxyUnreachable,
    /// 407: the proxy needs credentials, or others.
    ProxyCredentials,
    /// The proxy answered `CONNECT` with another status than 200 and 407, or not at all.
    ProxyRejected,
    /// No trusted authority signed the certificate.
    CertificateUntrusted,
    /// The server presents a certificate authority as its own certificate.
    CertificateIsAuthority,
    /// The certificate is not valid at this time.
    CertificateExpired,
    /// The certificate does not contain the host name.
    CertificateName,
    /// The port does not respond in TLS.
    NoTls,
    /// TLS failed in another way.
    TlsFailed,
}

impl Error {
    pub(crate) fn connect(source: BoxError) -> Self {
        Self::Connect { cause: connect_cause(&*source), source }
    }

    /// Classifies an error of a connection with this meter.
    pub(crate) fn lost(source: hyper::Error, loss: Loss, meter: &Meter) -> Self {
        if let Some(violation) = meter.violation() {
            return Self::TooManyBytes { loss, violation };
        }
        if source.is_parse() {
            return Self::NotHttp { loss, source };
        }
        Self::Lost { loss, source }
    }

    /// Returns true if the server rejected HTTP/2.
    pub fn requires_http1(&self) -> bool {
        let Self::Lost { source, .. } = self else { return false };
        http2_error(source).and_then(h2::Error::reason) == Some(h2::Reason::HTTP_1_1_REQUIRED)
    }

    /// Returns true unless the server certainly did not process the request.
    pub fn may_be_processed(&self) -> bool {
        match self {
            Self::NoAuthorities | Self::Connect { .. } | Self::Handshake(_) => false,
            Self::TooManyBytes { loss, .. } | Self::NotHttp { loss, .. } | Self::Lost { loss, .. } => {
                *loss != Loss::NotProcessed
            }
        }
    }

    /// Returns true if there was no connection for the request.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::NoAuthorities | Self::Connect { .. } | Self::Handshake(_))
    }

    /// Returns true if TLS is not possible or failed: in the handshake, or later by an alert of the server.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::NoAuthorities) || ErrorCauses(Some(self)).any(<dyn StdError>::is::<rustls::Error>)
    }

    /// Returns the cause of a connection that could not be made, if it is known.
    pub fn connect_cause(&self) -> Option<ConnectCause> {
        match self {
            Self::Connect { cause, .. } => *cause,
            Self::Handshake(_) => Some(ConnectCause::ConnectionEnded),
            _ => None,
        }
    }
}

/// Returns the HTTP/2 error behind an error, if any. An I/O error is none.
pub(crate) fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    ErrorCauses(Some(error)).find_map(|cause| cause.downcast_ref())
}

/// A connection to a proxy that failed.
#[derive(Debug, thiserror::Error)]
#[error("the proxy cannot be reached")]
pub(crate) struct ProxyUnreachable(#[source] pub(crate) BoxError);

/// The error of a tunnel, with any connector to the proxy.
type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;

/// Returns the cause of a failed connection, if it is known.
fn connect_cause(error: &(dyn StdError + 'static)) -> Option<ConnectCause> {
    ErrorCauses(Some(error)).find_map(|cause| {
        if cause.is::<ConnectTimedOut>() {
            return Some(ConnectCause::TimedOut);
        }
        if cause.is::<ProxyUnreachable>() {
            return Some(ConnectCause::ProxyUnreachable);
        }
        if let Some(tunnel) = cause.downcast_ref::<TunnelError>() {
            return Some(tunnel_cause(tunnel));
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return Some(tls_cause(tls));
        }
        if let Some(UnresolvedName(lookup)) = cause.downcast_ref() {
            // The answers of a resolver are no errors of the operating system.
            let is_own = lookup.raw_os_error().is_some();
            return Some(if is_own { ConnectCause::LookUpFailed } else { ConnectCause::NameNotFound });
        }
        if cause.is::<ForbiddenAddress>() {
            return Some(ConnectCause::ForbiddenAddress);
        }
        io_cause(cause.downcast_ref::<std::io::Error>()?.kind())
    })
}

fn tunnel_cause(error: &TunnelError) -> ConnectCause {
    match error {
        TunnelError::ConnectFailed(_) => ConnectCause::ProxyUnreachable,
        TunnelError::ProxyAuthRequired => ConnectCause::ProxyCredentials,
        _ => ConnectCause::ProxyRejected,
    }
}

fn tls_cause(error: &rustls::Error) -> ConnectCause {
    match error {
        rustls::Error::InvalidCertificate(invalid) => match invalid {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => ConnectCause::CertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                ConnectCause::CertificateName
            }
            // The error of the verifier has no kind of its own.
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                ConnectCause::CertificateIsAuthority
            }
            _ => ConnectCause::CertificateUntrusted,
        },
        rustls::Error::InvalidMessage(_) => ConnectCause::NoTls,
        _ => ConnectCause::TlsFailed,
    }
}

fn io_cause(kind: std::io::ErrorKind) -> Option<ConnectCause> {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::ConnectionRefused => Some(ConnectCause::ConnectionRefused),
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable => Some(ConnectCause::Unreachable),
        ErrorKind::TimedOut => Some(ConnectCause::TimedOut),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(ConnectCause::ConnectionEnded),
        _ => None,
    }
}

/// An iterator over an error and its causes, including the ones wrapped in I/O errors.
struct ErrorCauses<'a>(Option<&'a (dyn StdError + 'static)>);

impl<'a> Iterator for ErrorCauses<'a> {
    type Item = &'a (dyn StdError + 'static);

    fn next(&mut self) -> Option<Self::Item> {
        let error = self.0?;
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .map(|inner| inner as &(dyn StdError + 'static));
        self.0 = wrapped.or_else(|| error.source());
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::full;
    use crate::meter::MeteredStream;
    use http::Request;
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use rstest::rstest;
    use rustls_pki_types::{ServerName, UnixTime};
    use std::io::{Error as IoError, ErrorKind};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Returns the error of a connection whose server answers in another protocol.
    async fn parse_error() -> hyper::Error {
        let (client, mut server) = tokio::io::duplex(1 << 10);
        let (mut sender, driver) = http1::handshake(TokioIo::new(client)).await.unwrap();
        let answering = async {
            server.read_buf(&mut Vec::new()).await.unwrap();
            server.write_all(b"220 mail.example ESMTP\r\n").await.unwrap();
        };
        tokio::join!(sender.send_request(Request::new(full(""))), driver, answering).0.unwrap_err()
    }

    #[tokio::test]
    async fn unprocessed_request_stays_unprocessed_with_every_error() {
        let mut flood = MeteredStream::new(tokio::io::repeat(b'x'), 1, false);
        flood.read_exact(&mut [0; 2]).await.unwrap_err();
        let within_limit = Meter::new(1);
        for loss in [Loss::NotProcessed, Loss::Silent, Loss::Unknown] {
            let is_processed = loss != Loss::NotProcessed;
            let flooded = Error::lost(parse_error().await, loss, flood.meter());
            assert!(matches!(flooded, Error::TooManyBytes { .. }) && flooded.may_be_processed() == is_processed);
            let not_http = Error::lost(parse_error().await, loss, &within_limit);
            assert!(matches!(not_http, Error::NotHttp { .. }) && not_http.may_be_processed() == is_processed);
        }
    }

    #[test]
    fn connect_cause_tells_names_without_address_from_failed_look_ups() {
        let cause = |error| connect_cause(&UnresolvedName(error));
        assert_eq!(cause(IoError::other("failed to lookup address information")), Some(ConnectCause::NameNotFound));
        // Too many open files.
        assert_eq!(cause(IoError::from_raw_os_error(24)), Some(ConnectCause::LookUpFailed));
    }

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
    #[case(CertificateError::Expired, ConnectCause::CertificateExpired)]
    #[case(expired(), ConnectCause::CertificateExpired)]
    #[case(CertificateError::NotValidYet, ConnectCause::CertificateExpired)]
    #[case(CertificateError::NotValidForName, ConnectCause::CertificateName)]
    #[case(of_another_name(), ConnectCause::CertificateName)]
    #[case(CertificateError::UnknownIssuer, ConnectCause::CertificateUntrusted)]
    #[case(CertificateError::BadSignature, ConnectCause::CertificateUntrusted)]
    fn connect_cause_reads_certificate_errors(#[case] error: CertificateError, #[case] expected: ConnectCause) {
        // As the TLS connector wraps it.
        let wrapped: BoxError = IoError::new(ErrorKind::InvalidData, rustls::Error::InvalidCertificate(error)).into();
        assert_eq!(connect_cause(&*wrapped), Some(expected));
    }

    #[rstest]
    #[case(ErrorKind::ConnectionRefused, Some(ConnectCause::ConnectionRefused))]
    #[case(ErrorKind::HostUnreachable, Some(ConnectCause::Unreachable))]
    #[case(ErrorKind::NetworkUnreachable, Some(ConnectCause::Unreachable))]
    #[case(ErrorKind::TimedOut, Some(ConnectCause::TimedOut))]
    #[case(ErrorKind::ConnectionReset, Some(ConnectCause::ConnectionEnded))]
    #[case(ErrorKind::UnexpectedEof, Some(ConnectCause::ConnectionEnded))]
    #[case(ErrorKind::Other, None)]
    fn connect_cause_reads_io_errors(#[case] kind: ErrorKind, #[case] expected: Option<ConnectCause>) {
        assert_eq!(connect_cause(&IoError::from(kind)), expected);
        let by_proxy = ProxyUnreachable(IoError::from(kind).into());
        assert_eq!(connect_cause(&by_proxy), Some(ConnectCause::ProxyUnreachable));
    }
}

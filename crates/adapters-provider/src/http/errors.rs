//! Errors of building a client and of calls.

use std::error::Error;
use std::path::PathBuf;

use domain::routing::{AttemptFailure, AttemptFailureKind};

use super::connector::BoxError;
use super::meter::{Meter, TooManyBytes};

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
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file of extra certificate authorities holds none.
    #[error("the certificate authority file {} holds no usable certificate", .0.display())]
    EmptyCaFile(PathBuf),
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
            Self::Connect(error) => {
                AttemptFailure::new(AttemptFailureKind::ConnectFailed, connect_error_detail(&*error))
            }
            Self::Handshake => {
                AttemptFailure::new(AttemptFailureKind::ConnectFailed, "the connection ended before the request")
            }
            Self::TooManyBytes(violation) => invalid_response(&violation.to_string()),
            Self::Http(error) if error.is_parse() => invalid_response("the provider's answer is not HTTP"),
            Self::Http(_) => {
                AttemptFailure::new(AttemptFailureKind::ConnectionLost, "the connection broke before the answer")
            }
        }
    }
}

/// Returns the HTTP/2 error behind an error, if any. An I/O error is none.
pub(super) fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    ErrorCauses(Some(error)).find_map(|cause| cause.downcast_ref())
}

fn connect_error_detail(error: &(dyn Error + 'static)) -> &'static str {
    for cause in ErrorCauses(Some(error)) {
        if cause.is::<ConnectTimedOut>() {
            return "the connection could not be made in time";
        }
        if cause.is::<rustls::Error>() {
            return "the connection could not be made: TLS failed";
        }
        if cause.downcast_ref().map(std::io::Error::kind) == Some(std::io::ErrorKind::ConnectionRefused) {
            return "the connection could not be made: connection refused";
        }
    }
    "the connection could not be made"
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

//! Why no client could be built, and why a call broke.

use std::error::Error;
use std::path::PathBuf;

use domain::routing::{AttemptFailure, AttemptFailureKind};

use super::connector::BoxError;
use super::meter::{Meter, TooManyBytes};

/// Settings from which no client can be built.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The file of extra certificate authorities cannot be used.
    #[error("the certificate authority file {} cannot be read as PEM", path.display())]
    CaFile {
        /// Which file.
        path: PathBuf,
        /// Why not.
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

/// Making a connection took longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the connection took too long")]
pub(super) struct ConnectTimedOut;

/// A break that tells nothing about the request.
pub(super) fn broken(detail: &str) -> AttemptFailure {
    AttemptFailure::new(AttemptFailureKind::Broken, detail)
}

/// Why a call has no answer.
pub(super) enum CallError {
    /// No connection was made.
    Connect(BoxError),
    /// The provider exceeded a limit before its answer.
    TooManyBytes(TooManyBytes),
    /// The connection broke.
    Http(hyper::Error),
}

impl CallError {
    /// Of a connection with that meter.
    pub(super) fn of(error: hyper::Error, meter: &Meter) -> Self {
        meter.violation().map_or(Self::Http(error), Self::TooManyBytes)
    }

    /// In a sentence of our own. The libraries' own texts may repeat the provider's (the debug data of an HTTP/2
    /// GOAWAY, say), so they are not even logged.
    pub(super) fn into_failure(self) -> AttemptFailure {
        match self {
            Self::Connect(error) => AttemptFailure::new(AttemptFailureKind::ConnectFailed, not_connected(&*error)),
            Self::TooManyBytes(violation) => broken(&violation.to_string()),
            Self::Http(error) if error.is_parse() => broken("the provider's answer is not HTTP"),
            Self::Http(_) => broken("the connection broke before the answer"),
        }
    }
}

fn not_connected(error: &(dyn Error + 'static)) -> &'static str {
    for cause in Causes(Some(error)) {
        if cause.is::<ConnectTimedOut>() {
            return "the connection could not be made in time";
        }
        if cause.is::<rustls::Error>() {
            return "the connection could not be made: TLS failed";
        }
        if cause.downcast_ref().map(std::io::Error::kind) == Some(std::io::ErrorKind::ConnectionRefused) {
            return "the connection could not be made: nobody listens there";
        }
    }
    "the connection could not be made"
}

/// An error and what caused it; looks into I/O errors, whose `source` skips what they wrap.
struct Causes<'a>(Option<&'a (dyn Error + 'static)>);

impl<'a> Iterator for Causes<'a> {
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

//! Errors in the request head, before routing.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_http::StatusCode;
use actix_http::error::ParseError;
use actix_web::HttpResponse;
use thiserror::Error;

/// Builds and logs the response to a request whose head cannot be read.
pub type RejectHead = Arc<dyn Fn(HeadError, Option<SocketAddr>) -> HttpResponse + Send + Sync>;

/// The reason why a request head cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// The head is not HTTP/1.0 or HTTP/1.1, or its framing is ambiguous.
    #[error("The request head is malformed: {0}")]
    Malformed(&'static str),
    /// The head exceeds the bound on its bytes or on the number of its header fields.
    #[error("The request head is too large: at most 128 KiB and 96 header fields are read")]
    TooLarge,
    /// The head did not end in time.
    #[error("The request head did not arrive within {0} ms")]
    TimedOut(u64),
    /// The client speaks HTTP/2.
    #[error("HTTP/2 is not supported; use HTTP/1.1")]
    Http2,
}

impl HeadError {
    /// Returns the status of the error response.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TimedOut(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Http2 => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        }
    }
}

impl From<ParseError> for HeadError {
    fn from(error: ParseError) -> Self {
        Self::Malformed(match error {
            ParseError::TooLarge => return Self::TooLarge,
            ParseError::Method => "the method is not valid",
            ParseError::Uri(_) => "the request target is not valid, or is longer than 65,534 bytes",
            ParseError::Version => "the version is not HTTP/1.0 or HTTP/1.1",
            ParseError::Header => "a header field is not valid, is repeated, is missing, or contradicts another one",
            _ => "it is not HTTP/1.1",
        })
    }
}

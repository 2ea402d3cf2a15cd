//! The error formats of the routes.

use std::time::Duration;

use actix_web::http::StatusCode;

use crate::detection::Entry;
use wires::formats::Shape;

/// The format of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The service's own envelope.
    Contract,
    /// System One's format, in which an invalid request is 422.
    SystemOne,
    /// System One's format on the service's own paths, where an invalid request is 400.
    SystemOneUnderBase,
    /// OpenAI's.
    OpenAi,
    /// Gemini's.
    Gemini,
    /// SGLang's.
    Sglang,
}

impl ErrorFormat {
    /// Returns the error format of a Decisions request. If the path serves several wires and the body is unknown, the
    /// most common wire decides.
    pub(crate) const fn for_entry(entry: Entry, shape: Option<Shape>, under_base: bool) -> Self {
        match (entry, shape) {
            (Entry::Contract, _) => Self::Contract,
            (_, Some(Shape::SystemOne)) if under_base => Self::SystemOneUnderBase,
            (_, Some(Shape::SystemOne)) => Self::SystemOne,
            (_, Some(Shape::OpenAi) | None) => Self::OpenAi,
            (_, Some(Shape::Gemini)) => Self::Gemini,
            (_, Some(Shape::Sglang)) => Self::Sglang,
        }
    }

    /// Maps the status to this format. `lies_in_request` is true for an error with a location in the request.
    pub(crate) fn status(self, status: StatusCode, lies_in_request: bool) -> StatusCode {
        match self {
            Self::SystemOne if status == StatusCode::BAD_REQUEST && lies_in_request => StatusCode::UNPROCESSABLE_ENTITY,
            _ => status,
        }
    }

    /// Returns the retry delay to send with temporary failures; vendor clients read it from the body.
    pub(crate) fn retry_after(self, status: StatusCode, known: Option<Duration>) -> Option<Duration> {
        if self == Self::Contract {
            return None;
        }
        let passes = matches!(status.as_u16(), 429 | 503 | 529);
        known.or(passes.then_some(Duration::from_secs(1)))
    }
}

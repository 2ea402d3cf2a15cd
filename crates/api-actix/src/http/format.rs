//! The forms in which failures are told, each the one that the clients of a route read.

use std::time::Duration;

use actix_web::http::StatusCode;

use super::routes::{Operation, Route, Target};
use crate::wires::dispatch::{Entry, Shape};

/// The form of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The service's own envelope.
    Contract,
    /// System One's, in which a fault of the request is 422.
    SystemOne,
    /// The same for clients of the service's own paths, to which a fault of the request is 400.
    SystemOneUnderBase,
    /// OpenAI's.
    OpenAi,
    /// Gemini's.
    Gemini,
    /// SGLang's.
    Sglang,
}

impl ErrorFormat {
    /// The form of a route's failures, as long as nothing is known of the body.
    pub(crate) fn of(route: &Route) -> Self {
        match route.target {
            Target::Operation(Operation::SubmitDecision(entry)) => {
                Self::of_entry(entry, entry.shape(), route.under_base)
            }
            _ => Self::Contract,
        }
    }

    /// The form of the failures of a Decisions request; where several wires arrive and nothing is known of the body,
    /// that of the wire that more clients speak.
    pub(crate) fn of_entry(entry: Entry, shape: Option<Shape>, under_base: bool) -> Self {
        match (entry, shape) {
            (Entry::Contract, _) => Self::Contract,
            (_, Some(Shape::SystemOne)) if under_base => Self::SystemOneUnderBase,
            (_, Some(Shape::SystemOne)) => Self::SystemOne,
            (_, Some(Shape::OpenAi) | None) => Self::OpenAi,
            (_, Some(Shape::Gemini)) => Self::Gemini,
            (_, Some(Shape::Sglang)) => Self::Sglang,
        }
    }

    /// The status in this form. `lies_in_request` tells a fault that has a place in the request.
    pub(crate) fn status(self, status: StatusCode, lies_in_request: bool) -> StatusCode {
        match self {
            Self::SystemOne if status == StatusCode::BAD_REQUEST && lies_in_request => StatusCode::UNPROCESSABLE_ENTITY,
            _ => status,
        }
    }

    /// How long to wait, told with every refusal that passes by itself: vendors' clients look for it there.
    pub(crate) fn retry_after(self, status: StatusCode, known: Option<Duration>) -> Option<Duration> {
        if self == Self::Contract {
            return None;
        }
        let passes = matches!(status.as_u16(), 429 | 503 | 529);
        known.or(passes.then_some(Duration::from_secs(1)))
    }
}

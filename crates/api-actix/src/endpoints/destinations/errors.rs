//! Error mapping of the destination endpoints.

use domain::observability::{DestinationError, InvalidDestination};

use crate::http::error::ApiError;
use wires::client::ErrorLocation;

impl From<InvalidDestination> for ApiError {
    fn from(invalid: InvalidDestination) -> Self {
        Self::invalid(invalid.to_string()).location(ErrorLocation::Member(invalid.path))
    }
}

impl From<DestinationError> for ApiError {
    fn from(error: DestinationError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            DestinationError::Invalid(invalid) => invalid.into(),
            DestinationError::NothingToChange => plain.message("No update fields provided"),
            DestinationError::UnknownWorkspace => plain.message("workspace_id: workspace not found"),
            DestinationError::TestFailed(reason) => {
                plain.message(format!("The test call to the destination failed: {reason}"))
            }
            DestinationError::TooMany(_) | DestinationError::Changed => {
                let sentence = error.to_string();
                let (first, rest) = sentence.split_at(1);
                plain.message(format!("{}{rest}", first.to_uppercase()))
            }
            DestinationError::NotFound => plain,
            DestinationError::Store(store) => Self::store(store),
        }
    }
}

//! `…/observability/destinations`: the trace destinations of a workspace. Management keys only.

pub(crate) mod act;
pub(crate) mod change;
mod fields;
pub(crate) mod read;
mod record;

use domain::observability::{Destination, DestinationError, InvalidDestination, find_key_hashes};
use wires::client::ErrorLocation;

use crate::endpoints::prelude::*;

/// Renders a stored destination, with key ids if the hashes cannot be read: a write has succeeded.
async fn stored_response(call: &Call<'_>, destination: &Destination) -> RecordResponse {
    let hashes = find_key_hashes(&*call.gateway.services.destinations.keys, std::slice::from_ref(destination)).await;
    record::respond(StatusCode::OK, destination, &hashes.unwrap_or_default())
}

impl From<InvalidDestination> for ApiError {
    fn from(invalid: InvalidDestination) -> Self {
        Self::invalid(invalid.to_string()).location(ErrorLocation::Member(invalid.path))
    }
}

api_error!(DestinationError {
    pass: Restricted, Invalid, PreconditionFailed, Name, Store;
    said: WorkspaceRequired;
    with |plain|
        DestinationError::NothingToChange => plain.message("No update fields provided"),
        DestinationError::UnknownWorkspace => plain.message("workspace_id: workspace not found"),
        DestinationError::TestFailed(reason) => {
            plain.message(format!("The test call to the destination failed: {reason}"))
        },
        error @ (DestinationError::TooMany(_) | DestinationError::Changed) => {
            let sentence = error.to_string();
            let (first, rest) = sentence.split_at(1);
            plain.message(format!("{}{rest}", first.to_uppercase()))
        };
});

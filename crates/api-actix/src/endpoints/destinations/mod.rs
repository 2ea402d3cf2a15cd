//! `…/observability/destinations`: the trace destinations of a workspace. Management keys only.

mod errors;
mod fields;
mod manage;
mod record;
mod use_cases;

pub use record::DestinationView;
pub use use_cases::DestinationUseCases;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use domain::api_key::Principal;

use crate::http::edge::Call;
use crate::http::error::ApiError;

/// The operations on destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationOperation {
    List,
    Create,
    Get,
    Update,
    Delete,
}

impl DestinationOperation {
    /// Returns true if the operation reads a body.
    pub(crate) fn reads_body(self) -> bool {
        matches!(self, Self::Create | Self::Update)
    }
}

pub(crate) async fn handle(
    operation: DestinationOperation,
    call: &Call<'_>,
    caller: &Principal,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let authority = caller.management()?;
    match operation {
        DestinationOperation::List => manage::list(call).await,
        DestinationOperation::Create => manage::create(call, authority, payload).await,
        DestinationOperation::Get => manage::get(call).await,
        DestinationOperation::Update => manage::update(call, authority, payload).await,
        DestinationOperation::Delete => manage::delete(call, authority).await,
    }
}

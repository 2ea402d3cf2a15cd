//! `…/observability/destinations`: the trace destinations of a workspace. Management keys only.

pub(crate) mod create;
pub(crate) mod delete;
mod errors;
mod fields;
pub(crate) mod get;
pub(crate) mod list;
mod record;
mod request;
pub(crate) mod update;

pub use fields::read_destination;
pub use record::DestinationView;

use std::borrow::Cow;

use actix_web::web::Payload;
use domain::ids::WorkspaceId;
use domain::observability::{Destination, DestinationFields};

use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::segment;

/// Returns the view of a stored destination, with key ids if the hashes cannot be read: the write has succeeded.
async fn stored_view(call: &Call<'_>, destination: &Destination) -> DestinationView {
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(destination)).await;
    DestinationView::new(destination, &hashes.unwrap_or_default())
}

/// Returns the destination id in the path. A segment that is not valid UTF-8 names no destination.
fn id<'a>(call: &Call<'a>) -> Result<Cow<'a, str>, ApiError> {
    segment::decode(call.parameters[0]).ok_or_else(ApiError::not_found)
}

fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    text.parse().map_err(|_| ApiError::invalid("workspace_id must be a UUID"))
}

async fn read_fields(call: &Call<'_>, payload: Payload) -> Result<(DestinationFields, Option<String>), ApiError> {
    let body = call.read_json(payload).await?;
    fields::read(body.text()?)
}

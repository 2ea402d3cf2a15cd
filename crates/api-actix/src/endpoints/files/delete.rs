//! Deletes documents.

use domain::ids::DocumentId;

use super::shapes::{Shape, deleted_schema};
use super::{QUERY, workspace};
use crate::endpoints::prelude::*;

/// `DELETE /files/{id}`: deletes a document with its bytes.
pub(crate) const ROUTE: Route = Route::any_key(Delete, "/files/{id}", tags::FILES, handler!(handle))
    .operation("deleteFile", "Delete a file")
    .description("Deletes the file for good and returns its bytes to the workspace's storage quota.")
    .query(&QUERY)
    .answer(deleted_schema, "The file is deleted");

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller, Right::Write).await?;
    let id: DocumentId = call.id()?.parse().map_err(|_| ApiError::not_found())?;
    let deleted = call.gateway.services.delete_document.execute(workspace_id, &id, &call.actor(caller)).await;
    let deleted = deleted?.ok_or_else(ApiError::not_found)?;
    Ok(Shape::of(call).deleted(&deleted))
}

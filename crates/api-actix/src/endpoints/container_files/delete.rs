//! Deletes container files.

use super::{access, file};
use crate::endpoints::prelude::*;

/// `DELETE …/files/{file_id}`: deletes a container file.
pub(crate) const ROUTE: Route =
    Route::any_key(Delete, "/containers/{container_id}/files/{file_id}", tags::FILES, handler!(handle))
        .operation("deleteContainerFile", "Delete a container file")
        .description("Documents that were promoted from the file stay.")
        .query(&[FILES_WORKSPACE])
        .answer(BodySchema::of::<ContainerFileDeleted>, "The file is deleted");

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let access = access(call, caller).await?;
    let (container, path) = file(call)?;
    let deleted = call.gateway.services.container_files.delete(access, &container, &path).await;
    if !deleted? {
        return Err(ApiError::not_found());
    }
    let (id, object) = (path.file_id(), "container.file.deleted");
    Ok(HttpResponse::Ok().json(ContainerFileDeleted { id, object, deleted: true }))
}

/// The deletion of a container file.
#[derive(Serialize, ToSchema)]
struct ContainerFileDeleted {
    id: String,
    #[schema(pattern = "^container\\.file\\.deleted$")]
    object: &'static str,
    deleted: bool,
}

//! Deletes container files.

use super::{access, container_parameter, file, file_parameter, workspace_parameter};
use crate::endpoints::prelude::*;

/// `DELETE …/files/{file_id}`: deletes a container file.
pub(crate) const ROUTE: Route = Route::any_key(
    Method::Delete,
    "/containers/{container_id}/files/{file_id}",
    |call, caller, _| Box::pin(handle(call, caller)),
    tags::FILES,
    describe,
);

fn describe() -> Operation {
    Operation::new("deleteContainerFile", "Delete a container file")
        .description("Documents that were promoted from the file stay.")
        .parameter(container_parameter())
        .parameter(file_parameter())
        .parameter(workspace_parameter())
        .answer(BodySchema::of::<ContainerFileDeleted>(), "The file is deleted", &[400, 404, 409])
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let access = access(call, caller, &[]).await?;
    let (container, path) = file(call)?;
    let deleted = call.gateway.services.container_files.delete(access, &container, &path).await;
    if !deleted.map_err(ApiError::store)? {
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

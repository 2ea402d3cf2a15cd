//! Writes container files.

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use domain::operation::{ContainerPlace, PutContainerFileError};

use super::read::ContainerFileView;
use super::{container, invalid};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::of_filter;
use crate::http::upload::upload;

/// `PUT …/files?path=…`: writes a file into a container.
pub(crate) const ROUTE: Route =
    Route::management(Put, "/containers/{container_id}/files", tags::FILES, handler!(handle, payload))
        .operation("putContainerFile", "Write a container file")
        .description(
            "The body is the content of the file, of any type, and is not held in memory. An existing file is \
             replaced as a whole; a broken upload leaves nothing. A container may have 10,000 files and 10 GiB.",
        )
        .query(&[
            Query::new("path", "The relative path of the file in the container. Required.", || {
                text().min_length(Some(1)).max_length(Some(1_024))
            }),
            FILES_WORKSPACE,
        ])
        .with_body()
        .answer(BodySchema::of::<ContainerFileView>, "The written file")
        .complete(|operation| operation.bytes("The content of the file"));

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let query = call.request.query_string();
    let workspace = parameters::resource(query, "workspace_id")?;
    let container = container(call)?;
    let path = parameters::value(query, "path")?.ok_or_else(|| ApiError::invalid("path is required"))?;
    let path = path.parse().map_err(|error| invalid(format!("path: {error}")))?;
    let headers = call.request.headers();
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::unsupported_encoding("identity"));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let place = ContainerPlace { workspace: workspace.as_ref(), container: &container, path: &path };
    let put = &call.gateway.services.put_container_file;
    let written = upload(call, payload, async |source| put.execute(by, place, announced, source).await).await?;
    Ok(HttpResponse::Ok().json(ContainerFileView::new(&container, &written)))
}

api_error!(PutContainerFileError {
    pass: Restricted, Store;
    said: TooLarge, TooManyFiles, ContainerFull, PathConflict, IsFolder, Occupied, Deleted, NameTooLong;
    with |plain| PutContainerFileError::Workspace(error) => of_filter(error);
});

//! Reads container files.

use domain::container::ContainerId;
use domain::file::{ContainerFile, FilePosition};

use super::{access, container, file, invalid};
use crate::endpoints::prelude::*;
use crate::http::route_parameters::AFTER;

/// `GET …/files`: lists the files of a container.
pub(crate) const LIST: Route =
    Route::any_key(Get, "/containers/{container_id}/files", tags::FILES, handler!(handle_list))
        .operation("listContainerFiles", "List the files of a container")
        .description("In bytewise order of their paths. An unknown container is an empty page.")
        .query(&[FILES_WORKSPACE, CURSOR_LIMIT, AFTER])
        .answer(BodySchema::of::<ContainerFileListView>, "The files");

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let access = access(call, caller).await?;
    let container = container(call)?;
    let query = call.request.query_string();
    let limit = parameters::page_limit(query)?;
    let after = parameters::value(query, "after")?.map(|id| FilePosition::from_id(&id).map_err(invalid)).transpose()?;
    let list = call.gateway.services.container_files.list(access, &container, after.as_ref(), limit).await;
    let list = list?;
    let data: Vec<ContainerFileView> = list.files.iter().map(|file| ContainerFileView::new(&container, file)).collect();
    Ok(HttpResponse::Ok().json(ContainerFileListView {
        object: "list",
        first_id: data.first().map(|file| file.id.clone()),
        last_id: list.last.map(|last| last.id()),
        data,
        has_more: list.has_more,
    }))
}

/// `GET …/files/{file_id}`: reads the record of a container file.
pub(crate) const GET: Route =
    Route::any_key(Get, "/containers/{container_id}/files/{file_id}", tags::FILES, handler!(handle_get))
        .operation("getContainerFile", "Get the record of a container file")
        .query(&[FILES_WORKSPACE])
        .answer(BodySchema::of::<ContainerFileView>, "The file");

async fn handle_get(call: &Call<'_>, caller: &Principal) -> Outcome {
    let access = access(call, caller).await?;
    let (container, path) = file(call)?;
    let found = call.gateway.services.container_files.get(access, &container, &path).await;
    let found = found?.ok_or_else(ApiError::not_found)?;
    Ok(HttpResponse::Ok().json(ContainerFileView::new(&container, &found)))
}

/// A file of a container.
#[derive(Serialize, ToSchema)]
#[schema(as = ContainerFile)]
pub(super) struct ContainerFileView {
    id: String,
    #[schema(pattern = "^container\\.file$")]
    object: &'static str,
    container_id: String,
    bytes: u64,
    /// The time of the last write, in Unix epoch seconds.
    created_at: i64,
    /// The path in the container.
    path: String,
    #[schema(pattern = "^assistant$")]
    source: &'static str,
}

/// A page of container files.
#[derive(Serialize, ToSchema)]
#[schema(as = ContainerFileList)]
struct ContainerFileListView {
    #[schema(pattern = "^list$")]
    object: &'static str,
    data: Vec<ContainerFileView>,
    #[schema(required)]
    first_id: Option<String>,
    /// The value of `after` for the next page. It may be that of no file.
    #[schema(required)]
    last_id: Option<String>,
    has_more: bool,
}

impl ContainerFileView {
    pub(super) fn new(container: &ContainerId, file: &ContainerFile) -> Self {
        Self {
            id: file.path.file_id(),
            object: "container.file",
            container_id: container.to_string(),
            bytes: file.size_bytes,
            created_at: file.modified_at.timestamp(),
            path: file.path.as_str().to_owned(),
            source: "assistant",
        }
    }
}

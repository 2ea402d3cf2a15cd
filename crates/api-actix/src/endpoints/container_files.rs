//! `…/containers/{container_id}/files`: the files of a container.

use std::borrow::Cow;

use actix_web::http::Method as HttpMethod;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use domain::api_key::ContentAccess;
use domain::container::{ContainerId, ContainerPath};
use domain::file::{ContainerFile, FilePosition};
use domain::operation::{ContainerPlace, PutContainerFileError};
use utoipa::openapi::schema::Type;

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::of_filter;
use crate::http::download::{self, OCTET_STREAM};
use crate::http::route_parameters::AFTER;
use crate::http::upload::upload;

/// Returns the segment of the path that names the container.
pub(super) fn container_id(call: &Call<'_>) -> Result<String, ApiError> {
    text_of(call.parameters[0], "container_id")
}

/// Returns the segment of the path that names the file.
pub(super) fn file_id(call: &Call<'_>) -> Result<String, ApiError> {
    text_of(call.parameters[1], "file_id")
}

fn text_of(segment: &str, name: &str) -> Result<String, ApiError> {
    parameters::segment(segment)
        .map(Cow::into_owned)
        .ok_or_else(|| ApiError::invalid(format!("{name} is not UTF-8 without NUL when decoded")))
}

/// Parses the container of the path.
///
/// # Errors
/// 400 for a malformed id.
fn container(call: &Call<'_>) -> Result<ContainerId, ApiError> {
    container_id(call)?.parse().map_err(invalid)
}

/// Parses the container and the file of the path.
///
/// # Errors
/// 400 for malformed ids.
fn file(call: &Call<'_>) -> Result<(ContainerId, ContainerPath), ApiError> {
    let container = container(call)?;
    let path = ContainerPath::from_file_id(&file_id(call)?).map_err(invalid)?;
    Ok((container, path))
}

/// Returns the access to the files of the workspace.
///
/// # Errors
/// 400 for the query and for another workspace than that of an inference key, 403 for a management key.
async fn access(call: &Call<'_>, caller: &Principal) -> Result<ContentAccess, ApiError> {
    let named = parameters::resource(call.request.query_string(), "workspace_id")?;
    Ok(call.gateway.services.choose_files_workspace.of_content(caller, named.as_ref()).await?)
}

fn invalid(error: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(error.to_string())
}

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
struct ContainerFileView {
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
    fn new(container: &ContainerId, file: &ContainerFile) -> Self {
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

/// `PUT …/files?path=…`: writes a file into a container.
pub(crate) const PUT: Route =
    Route::management(Put, "/containers/{container_id}/files", tags::FILES, handler!(handle_put, payload))
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

async fn handle_put(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
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

/// `DELETE …/files/{file_id}`: deletes a container file.
pub(crate) const DELETE: Route =
    Route::any_key(Delete, "/containers/{container_id}/files/{file_id}", tags::FILES, handler!(handle_delete))
        .operation("deleteContainerFile", "Delete a container file")
        .description("Documents that were promoted from the file stay.")
        .query(&[FILES_WORKSPACE])
        .answer(BodySchema::of::<ContainerFileDeleted>, "The file is deleted");

async fn handle_delete(call: &Call<'_>, caller: &Principal) -> Outcome {
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

/// `GET …/files/{file_id}/content`: the bytes of a container file.
pub(crate) const CONTENT: Route =
    Route::any_key(Get, "/containers/{container_id}/files/{file_id}/content", tags::FILES, handler!(handle_content))
        .operation("downloadContainerFile", "Download a container file")
        .description(
            "The bytes of the file. A file that is written meanwhile may be a mixture of its versions; promote it for \
             one version. A body that is shorter than `Content-Length` is incomplete.",
        )
        .query(&[FILES_WORKSPACE])
        .complete(|operation| {
            operation.text("The bytes", OCTET_STREAM, Type::String, json!("month,total\n2026-11,7\n"))
        });

async fn handle_content(call: &Call<'_>, caller: &Principal) -> Outcome {
    let access = access(call, caller).await?;
    let (container, path) = file(call)?;
    let files = &call.gateway.services.container_files;
    let found = if call.request.method() == HttpMethod::HEAD {
        let found = files.get(access, &container, &path).await?;
        found.map(|file| (file.size_bytes, None))
    } else {
        let found = files.open(access, &container, &path).await?;
        found.map(|open| (open.size_bytes, Some(open.source)))
    };
    let (bytes, source) = found.ok_or_else(ApiError::not_found)?;
    download::respond(call, StatusCode::OK, path.as_str(), bytes, source)
}

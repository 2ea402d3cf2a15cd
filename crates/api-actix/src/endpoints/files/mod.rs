//! `…/files`: the documents of a workspace.

pub(crate) mod shapes;

use actix_web::http::Method as HttpMethod;
use actix_web::http::header::{ACCEPT_RANGES, CONTENT_RANGE, ETAG, HeaderValue};
use domain::file::{Document, ReadDocuments};
use domain::ids::{DocumentId, WorkspaceId};
use domain::naming::ResourceName;
use domain::workspace::ChooseFilesWorkspaceError;
use utoipa::openapi::schema::Type;

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::of_filter;
use crate::http::download::{self, OCTET_STREAM, Selection};
use crate::http::response::{is_known, not_modified};
use crate::http::route_parameters::{AFTER, Header};
use shapes::{Shape, deleted_schema, file_schema, list_schema};

/// The parameters of every operation on files. Clients of one vendor send `beta`, which has no function here.
const QUERY: [Query; 3] = [FILES_WORKSPACE, PROVIDER, BETA];
const PROVIDER: Query = Query::undescribed("provider");
const BETA: Query = Query::undescribed("beta");

/// Checks the query and returns the workspace of the caller.
///
/// # Errors
/// 400 for a parameter that is not supported, and for another workspace than that of an inference key.
async fn workspace(call: &Call<'_>, caller: &Principal, right: Right) -> Result<WorkspaceId, ApiError> {
    let named = named_workspace(call)?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, right, named.as_ref()).await?)
}

/// Checks the query of a call and returns its `workspace_id`.
fn named_workspace(call: &Call<'_>) -> Result<Option<ResourceName>, ApiError> {
    let query = call.request.query_string();
    if parameters::value(query, "provider")?.is_some() {
        return Err(ApiError::invalid("provider is not supported: the gateway keeps files itself"));
    }
    parameters::resource(query, "workspace_id")
}

/// Returns the document that the path names.
///
/// # Errors
/// 404 where the workspace has no such document.
async fn find(call: &Call<'_>, workspace_id: WorkspaceId) -> Result<Document, ApiError> {
    let found = call.gateway.services.read_documents.get(workspace_id, &call.id()?).await;
    found?.ok_or_else(ApiError::not_found)
}

api_error!(ChooseFilesWorkspaceError {
    pass: WrongKeyKind, Restricted;
    said: NotOwn;
    with |plain| ChooseFilesWorkspaceError::Workspace(error) => of_filter(error);
});

/// The names of the position after which a page begins; the first is a cursor, the others are ids.
const POSITIONS: [&str; 3] = ["cursor", "after", "after_id"];

/// `GET /files`: lists documents.
pub(crate) const LIST: Route = Route::any_key(Get, "/files", tags::FILES, handler!(handle_list))
    .operation("listFiles", "List the files of the workspace")
    .description(
        "Oldest first. At most one of `cursor`, `after` and `after_id` selects the page. The shape of the answer \
         follows the headers `anthropic-version`, `User-Agent` and `X-Stainless-*`.",
    )
    .query(&[
        CURSOR_LIMIT,
        Query::new("cursor", "The `cursor` of the page before.", || text().max_length(Some(256))),
        AFTER,
        Query::text("after_id", "The same as `after`."),
        Query::new("order", "The order of the list.", || text().enum_values(Some(["asc"]))),
        FILES_WORKSPACE,
        PROVIDER,
        BETA,
        Query::undescribed("before_id"),
    ])
    .answer(list_schema, "The files");

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller, Right::Read).await?;
    let query = call.request.query_string();
    let limit = parameters::page_limit(query)?;
    if parameters::value(query, "order")?.is_some_and(|order| order != "asc") {
        return Err(ApiError::invalid("order must be asc: files are listed oldest first"));
    }
    if parameters::value(query, "before_id")?.is_some() {
        return Err(ApiError::invalid("before_id is not supported: use after_id"));
    }
    let after = position(query, workspace_id)?;
    let list = call.gateway.services.read_documents.list(workspace_id, after.as_ref(), limit).await;
    Ok(Shape::of(call).list(&list?))
}

/// Returns the document after which the page begins.
fn position(query: &str, workspace_id: WorkspaceId) -> Result<Option<DocumentId>, ApiError> {
    let mut given = Vec::new();
    for name in POSITIONS {
        given.extend(parameters::value(query, name)?.map(|value| (name, value)));
    }
    match &given[..] {
        [] => Ok(None),
        [("cursor", cursor)] => ReadDocuments::parse_cursor(workspace_id, cursor)
            .map(Some)
            .map_err(|error| ApiError::invalid(error.to_string())),
        [(name, id)] => id.parse().map(Some).map_err(|_| ApiError::invalid(format!("{name} must be the id of a file"))),
        _ => Err(ApiError::invalid("at most one of cursor, after and after_id selects a page")),
    }
}

/// `GET /files/{id}`: reads the record of a document.
pub(crate) const GET: Route = Route::any_key(Get, "/files/{id}", tags::FILES, handler!(handle_get))
    .operation("getFile", "Get the record of a file")
    .query(&QUERY)
    .answer(file_schema, "The file");

async fn handle_get(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller, Right::Read).await?;
    Ok(Shape::of(call).file(&find(call, workspace_id).await?))
}

/// `DELETE /files/{id}`: deletes a document with its bytes.
pub(crate) const DELETE: Route = Route::any_key(Delete, "/files/{id}", tags::FILES, handler!(handle_delete))
    .operation("deleteFile", "Delete a file")
    .description("Deletes the file for good and returns its bytes to the workspace's storage quota.")
    .query(&QUERY)
    .answer(deleted_schema, "The file is deleted");

async fn handle_delete(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller, Right::Write).await?;
    let id: DocumentId = call.id()?.parse().map_err(|_| ApiError::not_found())?;
    let deleted = call.gateway.services.delete_document.execute(workspace_id, &id, &call.actor(caller)).await;
    let deleted = deleted?.ok_or_else(ApiError::not_found)?;
    Ok(Shape::of(call).deleted(&deleted))
}

/// `GET /files/{id}/content`: the bytes of a document, or one range of them.
pub(crate) const CONTENT: Route = Route::any_key(Get, "/files/{id}/content", tags::FILES, handler!(handle_content))
    .operation("downloadFile", "Download a file")
    .description(
        "The bytes of the file. Its media type is the `mime_type` of its record. The entity tag is the SHA-256 of \
         the content. A body that is shorter than `Content-Length` is incomplete.",
    )
    .query(&QUERY)
    .headers(&[RANGE, IF_RANGE, IF_NONE_MATCH])
    .complete(|operation| operation.text("The bytes", OCTET_STREAM, Type::String, json!("month,total\n2026-11,7\n")));

const RANGE: Header =
    Header::new("Range", "One range of bytes. Several ranges and malformed ones select the whole.", 256, &[206, 416]);
const IF_RANGE: Header = Header::new("If-Range", "The entity tag of the version that `Range` is of.", 256, &[]);

async fn handle_content(call: &Call<'_>, caller: &Principal) -> Outcome {
    let named = named_workspace(call)?;
    let access = call.gateway.services.choose_files_workspace.of_content(caller, named.as_ref()).await?;
    let document = find(call, access.workspace_id()).await?;
    let (headers, size) = (call.request.headers(), document.size_bytes);
    let etag = HeaderValue::try_from(format!("\"{}\"", document.sha256));
    let etag = etag.map_err(|error| ApiError::from_kind(domain::error::ErrorKind::Internal).caused_by(error))?;
    if is_known(headers, etag.as_bytes()) {
        return Ok(not_modified(etag));
    }
    let is_head = call.request.method() == HttpMethod::HEAD;
    // A range has no meaning for HEAD.
    let selection = if is_head { Selection::Whole } else { download::select(headers, &etag, size) };
    let range = match selection {
        Selection::Whole => None,
        Selection::Part(range) => Some(range),
        Selection::Unsatisfiable => return Err(ApiError::range_not_satisfiable(size).header(ETAG, etag)),
    };
    let source = if is_head {
        None
    } else {
        let opened = call.gateway.services.read_documents.open(access, &document, range.clone()).await;
        Some(opened?.ok_or_else(ApiError::not_found)?)
    };
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let bytes = range.as_ref().map_or(size, |range| range.end - range.start);
    let mut response = download::respond(call, status, &document.filename, bytes, source)?;
    response.headers_mut().insert(ETAG, etag);
    response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(range) = range
        && let Ok(value) = HeaderValue::try_from(format!("bytes {}-{}/{size}", range.start, range.end - 1))
    {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_one_cursor_or_id() {
        let workspace = WorkspaceId::from_uuid(uuid::Uuid::nil());
        let position = |query| position(query, workspace).map_err(|error| error.text().to_owned());
        assert_eq!(position("limit=3"), Ok(None));
        for query in ["after=tgfile_1", "after_id=tgfile_1"] {
            assert_eq!(position(query), Ok(Some("tgfile_1".parse().unwrap())));
        }
        assert_eq!(position("after=cfile_YQ").unwrap_err(), "after must be the id of a file");
        assert_eq!(position("after_id=").unwrap_err(), "after_id must be the id of a file");
        assert!(position("cursor=").unwrap_err().starts_with("cursor must be"));
        for query in ["cursor=a&after=tgfile_1", "after=tgfile_1&after_id=tgfile_1"] {
            assert!(position(query).unwrap_err().starts_with("at most one"), "{query}");
        }
    }
}

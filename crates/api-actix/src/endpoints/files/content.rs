//! Downloads documents.

use actix_web::http::Method as HttpMethod;
use actix_web::http::header::{ACCEPT_RANGES, CONTENT_RANGE, ETAG, HeaderValue};
use utoipa::openapi::schema::Type;

use super::{QUERY, find, named_workspace};
use crate::endpoints::prelude::*;
use crate::http::download::{self, OCTET_STREAM, Selection};
use crate::http::response::{is_known, not_modified};
use crate::http::route_parameters::Header;

/// `GET /files/{id}/content`: the bytes of a document, or one range of them.
pub(crate) const ROUTE: Route = Route::any_key(Get, "/files/{id}/content", tags::FILES, handler!(handle))
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

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
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

//! Downloads container files.

use actix_web::http::Method as HttpMethod;
use utoipa::openapi::schema::Type;

use super::{access, file};
use crate::endpoints::prelude::*;
use crate::http::download::{self, OCTET_STREAM};

/// `GET …/files/{file_id}/content`: the bytes of a container file.
pub(crate) const ROUTE: Route =
    Route::any_key(Get, "/containers/{container_id}/files/{file_id}/content", tags::FILES, handler!(handle))
        .operation("downloadContainerFile", "Download a container file")
        .description(
            "The bytes of the file. A file that is written meanwhile may be a mixture of its versions; promote it for \
             one version. A body that is shorter than `Content-Length` is incomplete.",
        )
        .query(&[FILES_WORKSPACE])
        .complete(|operation| {
            operation.text("The bytes", OCTET_STREAM, Type::String, json!("month,total\n2026-11,7\n"))
        });

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
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

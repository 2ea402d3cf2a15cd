//! Reads documents.

use domain::authority::Right;
use domain::file::ReadDocuments;
use domain::ids::{DocumentId, WorkspaceId};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::shapes::{Shape, file_schema, list_schema};
use super::{find, id_parameter, workspace, workspace_parameter};
use crate::endpoints::prelude::*;
use crate::http::operation;

/// The size of a page without `limit`.
const DEFAULT_LIMIT: usize = 100;
/// The largest page.
const MAX_LIMIT: usize = 1_000;
/// The names of the position after which a page begins; the first is a cursor, the others are ids.
const POSITIONS: [&str; 3] = ["cursor", "after", "after_id"];

/// `GET /files`: lists documents.
pub(crate) const LIST: Route = Route::any_key(
    Method::Get,
    "/files",
    |call, caller, _| Box::pin(handle_list(call, caller)),
    tags::FILES,
    describe_list,
);

fn describe_list() -> Operation {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX_LIMIT));
    Operation::new("listFiles", "List the files of the workspace")
        .description(
            "Oldest first. At most one of `cursor`, `after` and `after_id` selects the page. The shape of the answer \
             follows the headers `anthropic-version`, `User-Agent` and `X-Stainless-*`.",
        )
        .parameter(operation::query("limit", "The size of a page; 100 by default.", limit))
        .parameter(operation::query("cursor", "The `cursor` of the page before.", text().max_length(Some(256))))
        .parameter(operation::query("after", "The `last_id` of the page before.", text()))
        .parameter(operation::query("after_id", "The same as `after`.", text()))
        .parameter(operation::query("order", "The order of the list.", text().enum_values(Some(["asc"]))))
        .parameter(workspace_parameter())
        .answer(list_schema(), "The files", &[400, 404, 409])
}

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let further = [&POSITIONS[..], &["limit", "order", "before_id"]].concat();
    let workspace_id = workspace(call, caller, Right::Read, &further).await?;
    let query = call.request.query_string();
    let limit = parameters::count(query, "limit")?.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid(format!("limit must be 1 to {MAX_LIMIT}")));
    }
    if parameters::value(query, "order")?.is_some_and(|order| order != "asc") {
        return Err(ApiError::invalid("order must be asc: files are listed oldest first"));
    }
    if parameters::value(query, "before_id")?.is_some() {
        return Err(ApiError::invalid("before_id is not supported: use after_id"));
    }
    let after = position(query, workspace_id)?;
    let list = call.gateway.services.read_documents.list(workspace_id, after.as_ref(), limit).await;
    Ok(Shape::of(call).list(&list.map_err(ApiError::store)?))
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
pub(crate) const GET: Route = Route::any_key(
    Method::Get,
    "/files/{id}",
    |call, caller, _| Box::pin(handle_get(call, caller)),
    tags::FILES,
    describe_get,
);

fn describe_get() -> Operation {
    Operation::new("getFile", "Get the record of a file")
        .parameter(id_parameter())
        .parameter(workspace_parameter())
        .answer(file_schema(), "The file", &[400, 404, 409])
}

async fn handle_get(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller, Right::Read, &[]).await?;
    Ok(Shape::of(call).file(&find(call, workspace_id).await?))
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

//! Reads documents.

use domain::file::ReadDocuments;
use domain::ids::{DocumentId, WorkspaceId};

use super::shapes::{Shape, file_schema, list_schema};
use super::{BETA, PROVIDER, QUERY, find, workspace};
use crate::endpoints::prelude::*;
use crate::http::route_parameters::AFTER;

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

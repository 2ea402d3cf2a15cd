//! `DELETE …/workspaces/{id}`: deletes a workspace with the named contents.

use domain::json::unknown_name;
use domain::retention::DeleteWorkspaceError;
use domain::workspace::WorkspaceContent;

use super::name;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(Delete, "/workspaces/{id}", tags::WORKSPACES, handler!(handle))
    .operation("deleteWorkspace", "Delete a workspace")
    .description(
        "Other contents than those of `with` are 400, with their counts, and nothing is deleted; so is the \
         default workspace. Usage records stay. Needs an unrestricted key.",
    )
    .query(&[
        Query::text(
            "with",
            "The contents that are deleted, too, separated by commas: `keys`, `documents`, `guardrails`, \
             `destinations`, `presets`, `container_files`.",
        ),
        Query::flag(CONFIRMATION, "Only false is supported."),
    ])
    .headers(&[IF_MATCH])
    .answer(
        || BodySchema::named::<Deleted>("WorkspaceDeletedResponse", "Confirms the deletion of a workspace."),
        "Deleted",
    );

/// The parameter of a published client that has no function here: the default workspace is never deleted.
const CONFIRMATION: &str = "confirm_default_workspace_deletion";

async fn handle(call: &Call<'_>, by: &Authority) -> Outcome {
    let with = read_contents(call.request.query_string())?;
    call.routed().delete_workspace.execute(&call.change(by)?, &name(call)?, &with).await?;
    Ok(Deleted::respond())
}

/// Reads the kinds of contents in the query.
fn read_contents(query: &str) -> Result<Vec<WorkspaceContent>, ApiError> {
    if parameters::switch(query, CONFIRMATION)? == Some(true) {
        return Err(ApiError::invalid(format!("{CONFIRMATION} is not supported")));
    }
    let Some(with) = parameters::value(query, "with")? else { return Ok(Vec::new()) };
    let kind = |text: &str| {
        let names = WorkspaceContent::ALL.map(WorkspaceContent::as_str);
        WorkspaceContent::from_name(text)
            .ok_or_else(|| ApiError::invalid(unknown_name("kind of contents", text, names)))
    };
    with.split(',').map(kind).collect()
}

impl From<DeleteWorkspaceError> for ApiError {
    fn from(error: DeleteWorkspaceError) -> Self {
        match error {
            DeleteWorkspaceError::Workspace(error) => error.into(),
            DeleteWorkspaceError::Key(error) => error.into(),
            DeleteWorkspaceError::Guardrail(error) => error.into(),
            DeleteWorkspaceError::Destination(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_known_kinds_separated_by_commas() {
        let read = |query: &str| read_contents(query).map_err(|error| error.text().to_owned());
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("with=keys%2Cdocuments&confirm_default_workspace_deletion=false"), {
            Ok(vec![WorkspaceContent::Keys, WorkspaceContent::Documents])
        });
        assert_eq!(
            read("with=keys,documents,guardrails,destinations,presets,container_files"),
            Ok(WorkspaceContent::ALL.to_vec())
        );
        let nearest = r#"unknown kind of contents "key"; the nearest known kind of contents is "keys""#;
        assert_eq!(read("with=key").unwrap_err(), nearest);
        for query in ["with=", "with=keys,", "with=keys&with=documents", "with=%ff"] {
            assert!(read(query).is_err(), "{query}");
        }
        let confirmed = read("confirm_default_workspace_deletion=true").unwrap_err();
        assert_eq!(confirmed, "confirm_default_workspace_deletion is not supported");
    }
}

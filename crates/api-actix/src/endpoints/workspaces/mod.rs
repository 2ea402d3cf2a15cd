//! `…/workspaces` and `…/credits`: the workspaces, their budgets and their credit. Management keys only.

pub(crate) mod budgets;
pub(crate) mod change;
pub(crate) mod credits;
pub(crate) mod delete;
mod fields;
pub(crate) mod read;
mod record;

use domain::ids::WorkspaceId;
use domain::naming::{NameError, ResourceName};
use domain::workspace::WorkspaceError;

use crate::endpoints::prelude::*;

/// Returns the name in the path. A segment that is not valid UTF-8 names no workspace.
fn name(call: &Call<'_>) -> Result<ResourceName, ApiError> {
    Ok(ResourceName::new(call.id()?))
}

/// Returns the workspace that the query of a list or of one record names.
pub(crate) async fn filter(call: &Call<'_>, by: &Authority) -> Result<Option<WorkspaceId>, ApiError> {
    let Some(name) = parameters::value(call.request.query_string(), "workspace_id")? else { return Ok(None) };
    let found = call.gateway.services.workspaces.read.find(by, &ResourceName::new(name)).await;
    found.map(|workspace| Some(workspace.id)).map_err(of_filter)
}

/// Returns the error of a workspace that the query names.
pub(crate) fn of_filter(error: WorkspaceError) -> ApiError {
    match error {
        WorkspaceError::Name(NameError::Unknown) => {
            located(ApiError::not_found(), "workspace_id", &"workspace not found")
        }
        error => error.into(),
    }
}

api_error!(WorkspaceError {
    pass: Restricted, Name, PreconditionFailed, Store;
    said: BudgetNotPositive, BudgetsDoNotFall, UnknownBudget, UnknownCredit, NoRate, Required, IsDefault, Contended;
    at "name": InvalidName, NoName, NameTaken;
    at "slug": InvalidSlug, SlugTaken;
    at "default_guardrail_id": UnknownGuardrail;
    at "add_usd": NoCreditToAdd, NoCreditToTake, CreditOutOfRange;
    with |plain|
        WorkspaceError::NothingToChange => plain.message("No update fields provided"),
        error @ WorkspaceError::InvalidLabel { member, .. } => located(plain, member, &error),
        ref error @ WorkspaceError::NotEmpty(ref contents) => {
            let message = format!("{error}: delete them first, or name them in the parameter with");
            let counts = contents.counts().into_iter();
            counts.fold(plain.message(message), |error, (kind, count)| error.metadata(kind.as_str(), count))
        };
});

//! `…/workspaces` and `…/credits`: the workspaces, their budgets and their credit. Management keys only.

pub(crate) mod budgets;
pub(crate) mod change;
pub(crate) mod credits;
pub(crate) mod delete;
mod fields;
pub(crate) mod read;
mod record;

use domain::naming::ResourceName;
use domain::workspace::WorkspaceError;
use utoipa::openapi::path::Parameter;

use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::members::located;
use crate::http::operation::path;

/// Returns the name in the path. A segment that is not valid UTF-8 names no workspace.
fn name(call: &Call<'_>) -> Result<ResourceName, ApiError> {
    Ok(ResourceName::new(call.id()?))
}

/// Describes the name in the path.
fn path_name() -> Parameter {
    path("id", "The workspace's id, its slug, or its unique name.")
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            WorkspaceError::Restricted(restricted) => restricted.into(),
            WorkspaceError::Name(name) => name.into(),
            WorkspaceError::PreconditionFailed(failed) => failed.into(),
            WorkspaceError::Store(store) => Self::store(store),
            WorkspaceError::NothingToChange => plain.message("No update fields provided"),
            WorkspaceError::NotEmpty(contents) => {
                let message = format!("{error}: delete them first, or name them in the parameter with");
                let counts = contents.counts().into_iter();
                counts.fold(plain.message(message), |error, (kind, count)| error.metadata(kind.as_str(), count))
            }
            WorkspaceError::InvalidName(_) | WorkspaceError::NoName | WorkspaceError::NameTaken(_) => {
                located(plain, "name", &error)
            }
            WorkspaceError::InvalidSlug(_) | WorkspaceError::SlugTaken(_) => located(plain, "slug", &error),
            WorkspaceError::InvalidLabel { member, .. } => located(plain, member, &error),
            WorkspaceError::UnknownGuardrail => located(plain, "default_guardrail_id", &error),
            WorkspaceError::BudgetNotPositive(_) | WorkspaceError::BudgetsDoNotFall { .. } => {
                located(plain, "limit_usd", &error)
            }
            WorkspaceError::NoCreditToAdd | WorkspaceError::NoCreditToTake | WorkspaceError::CreditOutOfRange => {
                located(plain, "add_usd", &error)
            }
            WorkspaceError::UnknownBudget
            | WorkspaceError::UnknownCredit
            | WorkspaceError::NoRate
            | WorkspaceError::Required
            | WorkspaceError::IsDefault
            | WorkspaceError::Contended => plain.message(error.to_string()),
        }
    }
}

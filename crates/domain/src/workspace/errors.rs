//! Errors of workspaces.

use super::{InvalidWorkspaceName, InvalidWorkspaceSlug, WorkspaceContents};
use crate::authority::Restricted;
use crate::change::PreconditionFailed;
use crate::error::{ErrorKind, StoreError};
use crate::money::Usd;
use crate::naming::NameError;

/// An error of creating, changing or deleting a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The name is unknown or ambiguous.
    #[error("workspace {0}")]
    Name(#[from] NameError),
    /// The caller names no workspace, manages several, and the default one is none of them.
    #[error("workspace_id is required: the key manages several workspaces")]
    Required,
    /// The workspace has another version than the caller accepts.
    #[error(transparent)]
    PreconditionFailed(#[from] PreconditionFailed),
    /// The workspace has no budget of the period.
    #[error("the workspace has no budget of this period")]
    UnknownBudget,
    /// The workspace has no credit to clear.
    #[error("the workspace has no credit")]
    UnknownCredit,
    /// The added credit is zero.
    #[error("the added credit must not be 0")]
    NoCreditToAdd,
    /// The balance would leave the range of [`Usd`].
    #[error("the credit would leave the range {} to {} USD", Usd::MIN, Usd::MAX)]
    CreditOutOfRange,
    /// A negative amount for a workspace without credit.
    #[error("the workspace has no credit limit, so there is no credit to subtract")]
    NoCreditToTake,
    /// The budget is not above zero.
    #[error("the {0} budget must be more than 0 USD")]
    BudgetNotPositive(&'static str),
    /// The budget is not above that of a shorter period.
    #[error("the {longer} budget of {amount} USD must be more than the {shorter} one of {least} USD")]
    BudgetsDoNotFall {
        /// The longer period.
        longer: &'static str,
        /// The budget of the longer period.
        amount: Usd,
        /// The next shorter period that has a budget.
        shorter: &'static str,
        /// The budget of the shorter period.
        least: Usd,
    },
    /// The rate is below one per minute.
    #[error("a rate must be at least 1 per minute")]
    NoRate,
    /// The name is missing.
    #[error("name is required")]
    NoName,
    /// The name is invalid.
    #[error(transparent)]
    InvalidName(#[from] InvalidWorkspaceName),
    /// Another workspace has the name.
    #[error(
        "a workspace named {0:?} exists already: choose another name, or allow a second one (--allow-duplicate, without unique_name=true)"
    )]
    NameTaken(String),
    /// The slug is invalid.
    #[error(transparent)]
    InvalidSlug(#[from] InvalidWorkspaceSlug),
    /// Another workspace has the slug.
    #[error("another workspace has the slug {0}")]
    SlugTaken(String),
    /// The description or the owner's id is too long or has control characters.
    #[error("{member} has 1 to {max_chars} characters and no control characters; null clears it")]
    InvalidLabel {
        /// The member of the record.
        member: &'static str,
        /// The most characters.
        max_chars: usize,
    },
    /// The default guardrail does not exist in the workspace.
    #[error("the default guardrail must be a guardrail of the workspace")]
    UnknownGuardrail,
    /// The change names no member.
    #[error("no fields to update")]
    NothingToChange,
    /// The default workspace cannot be deleted.
    #[error("the default workspace cannot be deleted")]
    IsDefault,
    /// The workspace to delete has contents.
    #[error("the workspace still has {0}")]
    NotEmpty(WorkspaceContents),
    /// Concurrent changes came first, in every attempt.
    #[error("the workspace was changed concurrently; try again")]
    Contended,
    /// The store failed.
    #[error("the workspace store failed")]
    Store(#[from] StoreError),
}

impl WorkspaceError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(error) => error.kind(),
            Self::Name(error) => error.kind(),
            Self::PreconditionFailed(error) => error.kind(),
            Self::UnknownBudget | Self::UnknownCredit => ErrorKind::NotFound,
            Self::Required
            | Self::NoCreditToAdd
            | Self::CreditOutOfRange
            | Self::NoCreditToTake
            | Self::BudgetNotPositive(_)
            | Self::BudgetsDoNotFall { .. }
            | Self::NoRate
            | Self::NoName
            | Self::InvalidName(_)
            | Self::InvalidSlug(_)
            | Self::InvalidLabel { .. }
            | Self::UnknownGuardrail
            | Self::NothingToChange
            | Self::IsDefault
            | Self::NotEmpty(_) => ErrorKind::InvalidRequest,
            Self::NameTaken(_) | Self::SlugTaken(_) | Self::Contended => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

/// An error of [`super::choose_workspace`].
#[derive(Debug, thiserror::Error)]
pub enum ChooseWorkspaceError {
    /// The workspace does not exist for the caller.
    #[error("workspace not found")]
    Unknown,
    /// The caller names none, manages several, and the default workspace is none of them.
    #[error("workspace_id is required: the key manages several workspaces")]
    Required,
    /// The store failed.
    #[error("the workspace store failed")]
    Store(#[from] StoreError),
}

impl From<ChooseWorkspaceError> for WorkspaceError {
    fn from(error: ChooseWorkspaceError) -> Self {
        match error {
            ChooseWorkspaceError::Unknown => Self::Name(NameError::Unknown),
            ChooseWorkspaceError::Required => Self::Required,
            ChooseWorkspaceError::Store(error) => Self::Store(error),
        }
    }
}

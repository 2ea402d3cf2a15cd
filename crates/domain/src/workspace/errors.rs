//! What can go wrong with workspaces.

use crate::error::{ErrorKind, StoreError};
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// A name that is empty, too long or holds control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace name has 1 to 100 characters and no control characters")]
pub struct InvalidWorkspaceName;

/// Why a workspace was not made, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The name breaks the rules.
    #[error(transparent)]
    InvalidName(#[from] InvalidWorkspaceName),
    /// The store failed.
    #[error("the workspace store failed")]
    Store(#[from] StoreError),
}

impl WorkspaceError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(_) => ErrorKind::InvalidRequest,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Why a workspace was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeWorkspaceError {
    /// There is no such workspace.
    #[error("there is no workspace {0}")]
    UnknownWorkspace(WorkspaceId),
    /// The balance would leave the range of money.
    #[error("the credit would be beyond what can be counted: from {} to {} USD", Usd::MIN, Usd::MAX)]
    CreditOutOfRange,
    /// An amount to take away where there is no credit.
    #[error("the workspace has no credit that could be taken away: none limits it until some is added")]
    NoCreditToTake,
    /// A budget of nothing or less.
    #[error("the {0} budget must be more than 0 USD")]
    BudgetNotPositive(&'static str),
    /// A budget that is no more than that of a shorter period.
    #[error("the {longer} budget of {amount} USD must be more than the {shorter} one of {least} USD")]
    BudgetsDoNotFall {
        /// The longer period.
        longer: &'static str,
        /// Its budget.
        amount: Usd,
        /// The next shorter period that has a budget.
        shorter: &'static str,
        /// That budget.
        least: Usd,
    },
    /// No request, or no token, a minute.
    #[error("a rate is at least 1 a minute")]
    NoRate,
    /// Others changed it each time before this change was written.
    #[error("the workspace was changed by others at the same time; try again")]
    Contended,
    /// The store failed.
    #[error("the workspace store failed")]
    Store(#[from] StoreError),
}

impl ChangeWorkspaceError {
    /// Its meaning.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownWorkspace(_) => ErrorKind::NotFound,
            Self::CreditOutOfRange
            | Self::NoCreditToTake
            | Self::BudgetNotPositive(_)
            | Self::BudgetsDoNotFall { .. }
            | Self::NoRate => ErrorKind::InvalidRequest,
            Self::Contended => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

//! Setting the rate limits of a workspace.

use std::sync::Arc;

use super::model::{before_and_after, rates};
use super::{ChangeWorkspaceError, MAX_ATTEMPTS, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::rate::RateLimits;

/// The changes of rates. A cleared rate follows the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct RatesChange {
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
}

impl RatesChange {
    fn of(self, before: RateLimits) -> Result<RateLimits, ChangeWorkspaceError> {
        let after = RateLimits {
            requests_per_minute: self.requests_per_minute.of(before.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.of(before.tokens_per_minute),
        };
        let none = [after.requests_per_minute, after.tokens_per_minute].contains(&Some(0));
        if none { Err(ChangeWorkspaceError::NoRate) } else { Ok(after) }
    }
}

/// Sets the rate limits of a workspace.
pub struct SetWorkspaceRates {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SetWorkspaceRates {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Changes rates, and returns all of them. Concurrent changes are not lost.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        change: RatesChange,
    ) -> Result<RateLimits, ChangeWorkspaceError> {
        for _ in 0..MAX_ATTEMPTS {
            let found = self.workspaces.find(id).await?.ok_or(ChangeWorkspaceError::UnknownWorkspace(id))?;
            let (before, after) = (found.rates, change.of(found.rates)?);
            if after == before {
                return Ok(after);
            }
            let details = before_and_after(&rates(before), &rates(after));
            let audit = AuditDraft::done(actor, "workspace.set_rates", format!("workspace {id}"), details);
            if self.workspaces.set_rates(id, before, after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }
}

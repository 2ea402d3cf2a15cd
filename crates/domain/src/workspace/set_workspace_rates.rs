//! Setting how often all keys of a workspace together may call.

use std::sync::Arc;

use super::audited::{before_and_after, rates};
use super::{ChangeWorkspaceError, ROUNDS, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::rate::RateLimits;

/// Which rates change. One that is cleared follows the configuration again.
#[derive(Debug, Clone, Copy, Default)]
pub struct RatesChange {
    /// At least one.
    pub requests_per_minute: Edit<u32>,
    /// At least one.
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

/// Sets a workspace's rates.
pub struct SetWorkspaceRates {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SetWorkspaceRates {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Returns the rates as they are then. Of two changes at once none is lost.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        change: RatesChange,
    ) -> Result<RateLimits, ChangeWorkspaceError> {
        for _ in 0..ROUNDS {
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

//! The caller of a management operation.

use super::{ManagementAccess, ManagementScope};
use crate::audit::Actor;
use crate::error::ErrorKind;
use crate::ids::WorkspaceId;

named_enum! {
    /// A right that a management operation needs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Right {
        /// To read lists and records.
        Read = "read",
        /// To create, change, rotate, disable and delete inference keys.
        Keys = "keys",
        /// To change guardrails, their assignments and destinations, and to delete documents.
        Write = "write",
        /// To read the audit log and the status, which are of all workspaces.
        ReadAll = "read_all",
        /// To change the bounds of workspaces, workspaces, management keys and the catalogue.
        Unrestricted = "unrestricted",
    }
}

/// The caller lacks a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("This management key may not perform this operation; it needs: {}", needs.as_str())]
pub struct Restricted {
    /// The missing right.
    pub needs: Right,
}

impl Restricted {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Forbidden
    }
}

/// The caller of a management operation, with its rights. Use cases check it themselves: first the right (403), then
/// the workspace of each resource. A resource of a workspace that the caller does not see is unknown to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    actor: Actor,
    scope: ManagementScope,
    is_operator: bool,
}

impl Authority {
    /// Returns the authority of the operator: of a command, or of the service itself.
    pub fn operator(actor: Actor) -> Self {
        Self { actor, scope: ManagementScope::UNRESTRICTED, is_operator: true }
    }

    /// Returns the authority of the service itself.
    pub fn system() -> Self {
        Self::operator(Actor::system())
    }

    /// Returns the authority of a management key: [`crate::api_key::ManagementKey::authority`].
    pub(crate) fn of_key(actor: Actor, scope: ManagementScope) -> Self {
        Self { actor, scope, is_operator: false }
    }

    /// Returns the actor for the audit log.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the scope.
    pub fn scope(&self) -> &ManagementScope {
        &self.scope
    }

    /// Returns true for the operator, who holds no key and so cannot be locked out.
    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// Returns true if the resources of the workspace exist for the caller.
    pub fn sees(&self, workspace: WorkspaceId) -> bool {
        self.scope.contains(workspace)
    }

    /// Returns true if the caller sees every workspace.
    pub fn sees_all(&self) -> bool {
        self.scope.workspaces().is_none()
    }

    /// Returns the scope of a list of one workspace, or with `None` of all workspaces of the caller; `None` if the
    /// workspace does not exist for the caller.
    pub fn list_scope(&self, workspace: Option<WorkspaceId>) -> Option<ManagementScope> {
        match workspace {
            Some(id) => self.sees(id).then(|| ManagementScope::of_one(id)),
            None => Some(self.scope.clone()),
        }
    }

    /// Checks a right.
    ///
    /// # Errors
    /// The caller lacks it.
    pub fn check(&self, right: Right) -> Result<(), Restricted> {
        let has_access = |needed| self.scope.access() >= needed;
        let is_granted = match right {
            Right::Read => has_access(ManagementAccess::Read),
            Right::Keys => has_access(ManagementAccess::Keys),
            Right::Write => has_access(ManagementAccess::Write),
            Right::ReadAll => has_access(ManagementAccess::Read) && self.sees_all(),
            Right::Unrestricted => self.scope.is_unrestricted(),
        };
        if is_granted { Ok(()) } else { Err(Restricted { needs: right }) }
    }
}

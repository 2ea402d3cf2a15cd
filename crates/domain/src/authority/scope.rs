//! The scope of a management key.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ids::WorkspaceId;
use crate::json::{Json, ObjectWriter};

named_enum! {
    /// The access of a management key. Each includes the ones before it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ManagementAccess {
        /// Reads lists and records.
        Read = "read",
        /// Manages inference keys.
        Keys = "keys",
        /// Manages guardrails, their assignments, presets, destinations and documents.
        Write = "write",
    }
}

/// The scope of a management key names no workspace, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a management key has all workspaces, or 1 to {}", ManagementScope::MAX_WORKSPACES)]
pub struct InvalidManagementScope;

/// The access of a management key, and the workspaces that it manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementScope {
    access: ManagementAccess,
    /// In the given order, without duplicates; `None` is all workspaces.
    workspaces: Option<Arc<[WorkspaceId]>>,
}

impl ManagementScope {
    /// The most workspaces of a scope that does not contain all.
    pub const MAX_WORKSPACES: usize = 100;

    /// The scope that permits everything: write access to all workspaces.
    pub const UNRESTRICTED: Self = Self { access: ManagementAccess::Write, workspaces: None };

    /// Creates a scope over all workspaces (`None`), or over 1 to 100. Duplicates do not count.
    ///
    /// # Errors
    /// No workspace, or more than 100.
    pub fn try_new(
        access: ManagementAccess,
        workspaces: Option<Vec<WorkspaceId>>,
    ) -> Result<Self, InvalidManagementScope> {
        let Some(mut workspaces) = workspaces else { return Ok(Self { access, workspaces: None }) };
        let mut seen = HashSet::new();
        workspaces.retain(|id| seen.insert(*id));
        if !(1..=Self::MAX_WORKSPACES).contains(&workspaces.len()) {
            return Err(InvalidManagementScope);
        }
        Ok(Self { access, workspaces: Some(workspaces.into()) })
    }

    /// Returns the scope that reads one workspace.
    pub fn of_one(workspace: WorkspaceId) -> Self {
        Self { access: ManagementAccess::Read, workspaces: Some([workspace].into()) }
    }

    /// Returns the access.
    pub fn access(&self) -> ManagementAccess {
        self.access
    }

    /// Returns the workspaces, in the order in which they were given; `None` is all.
    pub fn workspaces(&self) -> Option<&[WorkspaceId]> {
        self.workspaces.as_deref()
    }

    /// Returns true for write access to all workspaces.
    pub fn is_unrestricted(&self) -> bool {
        self.access == ManagementAccess::Write && self.workspaces.is_none()
    }

    /// Returns true if the scope contains the workspace.
    pub fn contains(&self, workspace: WorkspaceId) -> bool {
        self.workspaces.as_deref().is_none_or(|own| own.contains(&workspace))
    }

    /// Returns the scope as an object, for audit entries.
    pub fn view(&self) -> Json {
        let view = ObjectWriter::new().text("access", self.access.as_str());
        match self.workspaces() {
            Some(ids) => view.texts("workspaces", ids.iter().map(ToString::to_string)),
            None => view.json("workspaces", "null"),
        }
        .finish()
    }
}

//! Access to the content of a workspace's files.

use super::InferenceKey;
use crate::authority::Authority;
use crate::ids::WorkspaceId;

/// Proof that the caller may read the content of a workspace's documents and container files: it has an inference key of
/// the workspace, or is the operator. Management keys read records only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentAccess(WorkspaceId);

impl ContentAccess {
    /// Returns the access of an inference key.
    pub fn of_key(key: &InferenceKey) -> Self {
        Self(key.workspace_id())
    }

    /// Returns the access of the operator to a workspace; `None` for a management key.
    pub fn of_operator(by: &Authority, workspace: WorkspaceId) -> Option<Self> {
        by.is_operator().then_some(Self(workspace))
    }

    /// Returns the workspace.
    pub fn workspace_id(self) -> WorkspaceId {
        self.0
    }
}

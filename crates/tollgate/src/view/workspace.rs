//! Workspaces.

use domain::workspace::Workspace;
use serde::Serialize;

use super::{UsdNumber, time};

/// A workspace that was made now.
#[derive(Serialize)]
pub struct CreatedWorkspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A workspace.
#[derive(Serialize)]
pub struct WorkspaceView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its owner's id in the operator's directory.
    pub owner_id: Option<String>,
    /// True for the default one.
    pub is_default: bool,
    /// True while its keys' calls are refused.
    pub suspended: bool,
    /// Its balance in USD; null is unlimited.
    pub credit_usd: Option<UsdNumber>,
    /// Bytes that its documents hold.
    pub storage_used_bytes: u64,
    /// When it was made.
    pub created_at: String,
}

impl From<&Workspace> for WorkspaceView {
    fn from(workspace: &Workspace) -> Self {
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.as_str().to_owned(),
            owner_id: workspace.owner_id.clone(),
            is_default: workspace.is_default,
            suspended: workspace.suspended,
            credit_usd: workspace.credit.map(UsdNumber),
            storage_used_bytes: workspace.storage_used_bytes,
            created_at: time(workspace.created_at),
        }
    }
}

/// A workspace's new balance.
#[derive(Serialize)]
pub struct Credited {
    /// The workspace.
    pub id: String,
    /// Its balance in USD.
    pub credit_usd: UsdNumber,
}

/// Whether a workspace is suspended now.
#[derive(Serialize)]
pub struct Suspended {
    /// The workspace.
    pub id: String,
    /// True while its keys' calls are refused.
    pub suspended: bool,
}

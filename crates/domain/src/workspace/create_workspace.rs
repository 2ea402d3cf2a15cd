//! Creating a workspace.

use std::sync::Arc;

use super::{Workspace, WorkspaceError, WorkspaceName, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::budget::WorkspaceBudgets;
use crate::json::Json;
use crate::rate::RateLimits;
use crate::system::{Clock, IdGenerator};

/// Creates workspaces.
pub struct CreateWorkspace {
    workspaces: Arc<dyn WorkspaceRepository>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
}

impl CreateWorkspace {
    /// Wires the ports.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { workspaces, clock, ids }
    }

    /// Creates a workspace, which is unlimited and not the default.
    pub async fn execute(
        &self,
        actor: &Actor,
        name: &str,
        owner_id: Option<String>,
    ) -> Result<Workspace, WorkspaceError> {
        let workspace = self.draft(WorkspaceName::try_new(name)?, owner_id);
        self.workspaces.insert(&workspace, &created(actor, &workspace)).await?;
        Ok(workspace)
    }

    /// Creates a workspace like [`Self::execute`], unless another one has its name.
    pub async fn execute_unique(
        &self,
        actor: &Actor,
        name: &str,
        owner_id: Option<String>,
    ) -> Result<Workspace, WorkspaceError> {
        let workspace = self.draft(WorkspaceName::try_new(name)?, owner_id);
        if self.workspaces.insert_unique(&workspace, &created(actor, &workspace)).await? {
            Ok(workspace)
        } else {
            Err(WorkspaceError::NameTaken(name.to_owned()))
        }
    }

    /// Returns the default workspace; creates it if there is none.
    pub async fn default(&self, actor: &Actor) -> Result<Workspace, WorkspaceError> {
        let draft = Workspace { is_default: true, ..self.draft(WorkspaceName::try_new("default")?, None) };
        Ok(self.workspaces.default_or_insert(&draft, &created(actor, &draft)).await?)
    }

    fn draft(&self, name: WorkspaceName, owner_id: Option<String>) -> Workspace {
        Workspace {
            id: self.ids.workspace_id(),
            name,
            owner_id,
            is_default: false,
            suspended: false,
            credit: None,
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at: self.clock.now(),
        }
    }
}

fn created(actor: &Actor, workspace: &Workspace) -> AuditDraft {
    let name = Json::string(workspace.name.as_str());
    let after = Json::object([("name", name.text())]);
    let details = Json::object([("after", after.text())]);
    AuditDraft::done(actor, "workspace.create", format!("workspace {}", workspace.id), details)
}

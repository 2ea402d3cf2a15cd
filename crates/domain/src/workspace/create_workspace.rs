//! Creating a workspace, and the first one of an instance with its first key.

use std::sync::Arc;

use super::model::named;
use super::{Workspace, WorkspaceError, WorkspaceName, WorkspaceRepository};
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyScope};
use crate::audit::{Actor, AuditDraft};
use crate::authority::{Authority, ManagementScope, Right};
use crate::json::Json;
use crate::rate::RateLimits;
use crate::secret::ApiKeySecret;
use crate::system::{Clock, IdGenerator, SecretGenerator};

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
        by: &Authority,
        name: &str,
        owner_id: Option<String>,
    ) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let workspace = self.draft(WorkspaceName::try_new(name)?, owner_id);
        self.workspaces.insert(&workspace, &created(by, &workspace)).await?;
        Ok(workspace)
    }

    /// Creates a workspace like [`Self::execute`], unless another one has its name.
    pub async fn execute_unique(
        &self,
        by: &Authority,
        name: &str,
        owner_id: Option<String>,
    ) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let workspace = self.draft(WorkspaceName::try_new(name)?, owner_id);
        if self.workspaces.insert_unique(&workspace, &created(by, &workspace)).await? {
            Ok(workspace)
        } else {
            Err(WorkspaceError::NameTaken(name.to_owned()))
        }
    }

    /// Returns the default workspace; creates it if there is none.
    pub async fn default(&self, by: &Authority) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let draft = Workspace { is_default: true, ..self.draft(WorkspaceName::try_new("default")?, None) };
        Ok(self.workspaces.default_or_insert(&draft, &created(by, &draft)).await?)
    }

    fn draft(&self, name: WorkspaceName, owner_id: Option<String>) -> Workspace {
        Workspace::draft(self.ids.workspace_id(), name, owner_id, self.clock.now())
    }
}

fn created(by: &Authority, workspace: &Workspace) -> AuditDraft {
    let subject = format!("workspace {}", workspace.id);
    AuditDraft::change(by.actor(), "workspace.create", subject, None, Some(named(&workspace.name)))
}

/// Creates the default workspace and the first management key, once.
pub struct BootstrapInstance {
    workspaces: Arc<dyn WorkspaceRepository>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    secrets: Arc<dyn SecretGenerator>,
}

impl BootstrapInstance {
    /// Wires the ports.
    pub fn new(
        workspaces: Arc<dyn WorkspaceRepository>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGenerator>,
        secrets: Arc<dyn SecretGenerator>,
    ) -> Self {
        Self { workspaces, clock, ids, secrets }
    }

    /// Returns the secret of the management key if this call created it. It cannot be read later.
    pub async fn execute(&self) -> Result<Option<ApiKeySecret>, WorkspaceError> {
        let now = self.clock.now();
        let secret = self.secrets.api_key_secret()?;
        let default = Workspace::draft(self.ids.workspace_id(), WorkspaceName::try_new("default")?, None, now);
        let workspace = Workspace { is_default: true, ..default };
        let key = ApiKey {
            id: self.ids.api_key_id(),
            hash: secret.hash(),
            label: secret.label(),
            name: ApiKeyName::first_management_key(),
            scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
            disabled: false,
            expires_at: None,
            limit: None,
            rates: RateLimits::default(),
            guardrail_id: None,
            created_at: now,
        };
        let details = Json::object([("workspace_id", Json::string(&workspace.id.to_string()).text())]);
        let subject = format!("key {}", key.id);
        let audit = AuditDraft::done(&Actor::system(), "instance.bootstrap", subject, details);
        Ok(self.workspaces.bootstrap(&workspace, &key, &audit).await?.then_some(secret))
    }
}

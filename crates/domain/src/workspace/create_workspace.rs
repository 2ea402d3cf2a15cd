//! Creating a workspace, and the first one of an instance with its first key.

use std::sync::Arc;

use super::changes::differences;
use super::{Workspace, WorkspaceChange, WorkspaceError, WorkspaceInsertion, WorkspaceName, WorkspaceRepository};
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyScope};
use crate::audit::{Actor, AuditDraft};
use crate::authority::{Authority, ManagementScope, Right};
use crate::change::Change;
use crate::json::ObjectWriter;
use crate::rate::RateLimits;
use crate::secret::ApiKeySecret;
use crate::system::{Clock, IdGenerator, SecretGenerator};

/// The number of attempts at a slug. Each that fails means that another workspace got it.
const MAX_SLUGS: u32 = 256;

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

    /// Creates a workspace with these settings, which has no budget and no credit limit and is not the default. Other
    /// workspaces may have its name unless `unique_name`.
    ///
    /// # Errors
    /// A missing right; an invalid setting; a slug, or with `unique_name` a name, of another workspace; a store failure.
    pub async fn execute(
        &self,
        change: &Change<'_, Workspace>,
        settings: &WorkspaceChange,
        unique_name: bool,
    ) -> Result<Workspace, WorkspaceError> {
        let by = change.by();
        by.check(Right::Unrestricted)?;
        let name = WorkspaceName::try_new(settings.name.as_deref().ok_or(WorkspaceError::NoName)?)?;
        let draft = settings.of(&Workspace::draft(self.ids.workspace_id(), name, self.clock.now()))?;
        if draft.default_guardrail_id.is_some() {
            return Err(WorkspaceError::UnknownGuardrail);
        }
        for _ in 0..MAX_SLUGS {
            let slug = match settings.slug {
                Some(_) => draft.slug.clone(),
                None => self.workspaces.free_slug(&draft.slug).await?,
            };
            let workspace = Workspace { slug, ..draft.clone() };
            let audit = change.audited(created(by, &workspace), &workspace);
            match self.workspaces.insert(&workspace, unique_name, &audit).await? {
                WorkspaceInsertion::Inserted => return Ok(workspace),
                WorkspaceInsertion::NameTaken => {
                    return Err(WorkspaceError::NameTaken(workspace.name.as_str().to_owned()));
                }
                WorkspaceInsertion::SlugTaken if settings.slug.is_some() => {
                    return Err(WorkspaceError::SlugTaken(workspace.slug.as_str().to_owned()));
                }
                WorkspaceInsertion::SlugTaken => {}
            }
        }
        Err(WorkspaceError::Contended)
    }

    /// Returns the default workspace; creates it if there is none.
    pub async fn default(&self, by: &Authority) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let name = WorkspaceName::try_new("default")?;
        let draft = Workspace::draft(self.ids.workspace_id(), name, self.clock.now());
        let draft = Workspace { is_default: true, ..draft };
        Ok(self.workspaces.default_or_insert(&draft, &created(by, &draft)).await?)
    }
}

fn created(by: &Authority, workspace: &Workspace) -> AuditDraft {
    let subject = format!("workspace {}", workspace.id);
    AuditDraft::change(by.actor(), "workspace.create", subject, None, Some(differences(None, workspace).1))
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
        let default = Workspace::draft(self.ids.workspace_id(), WorkspaceName::try_new("default")?, now);
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
            users: crate::api_key::KeyUsers::default(),
            previous_secret: None,
            created_at: now,
            updated_at: None,
        };
        let details = ObjectWriter::new().text("workspace_id", workspace.id.to_string()).finish();
        let subject = format!("key {}", key.id);
        let audit = AuditDraft::done(&Actor::system(), "instance.bootstrap", subject, details);
        Ok(self.workspaces.bootstrap(&workspace, &key, &audit).await?.then_some(secret))
    }
}

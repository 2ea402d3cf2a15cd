//! Workspaces in memory.

use async_trait::async_trait;

use super::memory_state::{State, StoredDocument, StoredKey};
use super::memory_store::MemoryWorkspaces;
use crate::api_key::{ApiKey, ApiKeyScope};
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::budget::Account;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::naming::ResourceName;
use crate::workspace::{
    Credit, CreditEdit, Workspace, WorkspaceContent, WorkspaceContents, WorkspaceDeletion, WorkspaceError,
    WorkspaceInsertion, WorkspaceRepository, WorkspaceSlug, WorkspaceUpdate,
};

impl State {
    fn seen(&self, workspace: &Workspace) -> Workspace {
        let spent = self.ledger.spent_of_credit(Account::Workspace(workspace.id));
        let left = |granted: Usd| Usd::from_pico(granted.pico().saturating_sub(spent.pico()));
        Workspace {
            storage_used_bytes: self.used_bytes(workspace.id),
            credit: workspace.credit.map(left),
            ..workspace.clone()
        }
    }

    fn credit(&self, workspace: &Workspace) -> Credit {
        let account = Account::Workspace(workspace.id);
        let spent = match workspace.credit {
            Some(_) => self.ledger.spent_of_credit(account),
            None => self.ledger.spent(account),
        };
        Credit { granted: workspace.credit, spent }
    }

    fn workspaces_within(&self, within: &ManagementScope) -> Vec<Workspace> {
        let own = self.workspaces.iter().filter(|workspace| within.contains(workspace.id));
        let mut own: Vec<Workspace> = own.map(|workspace| self.seen(workspace)).collect();
        own.sort_by_key(|workspace| (workspace.created_at, workspace.id));
        own
    }

    fn default_or_insert(&mut self, workspace: &Workspace) -> Workspace {
        if let Some(found) = self.workspaces.iter().find(|stored| stored.is_default) {
            return self.seen(found);
        }
        let made = Workspace { is_default: true, slug: self.free_slug(&workspace.slug), ..workspace.clone() };
        self.workspaces.push(made.clone());
        made
    }

    fn has_slug(&self, slug: &WorkspaceSlug) -> bool {
        self.workspaces.iter().any(|stored| stored.slug == *slug)
    }

    fn free_slug(&self, slug: &WorkspaceSlug) -> WorkspaceSlug {
        let numbered = (2..).map(|number| slug.numbered(number));
        let mut candidates = std::iter::once(slug.clone()).chain(numbered);
        candidates.find(|slug| !self.has_slug(slug)).unwrap_or_else(|| slug.clone())
    }

    fn contents(&self, id: WorkspaceId) -> WorkspaceContents {
        let scope = ApiKeyScope::Inference(id);
        let is_here = |document: &&StoredDocument| match document {
            StoredDocument::Pending(pending) => pending.workspace_id == id,
            StoredDocument::Ready(document, _) => document.workspace_id == id,
        };
        WorkspaceContents {
            keys: self.keys.values().filter(|stored| !stored.deleted && stored.key.scope == scope).count() as u64,
            documents: self.documents.values().filter(is_here).count() as u64,
            guardrails: self.guardrails.iter().filter(|one| one.workspace_id == id).count() as u64,
            destinations: self.destinations.iter().filter(|one| one.workspace_id == id).count() as u64,
            presets: self.presets.iter().filter(|(preset, _)| preset.workspace_id == id).count() as u64,
            container_files: 0,
        }
    }

    pub(super) fn workspace(&self, id: WorkspaceId) -> Option<&Workspace> {
        self.workspaces.iter().find(|stored| stored.id == id)
    }
}

#[async_trait]
impl WorkspaceRepository for MemoryWorkspaces {
    async fn insert(
        &self,
        workspace: &Workspace,
        unique_name: bool,
        audit: &AuditDraft,
    ) -> Result<WorkspaceInsertion, StoreError> {
        let mut state = self.0.begin(audit)?;
        if state.workspace(workspace.id).is_some() {
            return Err(StoreError::Corrupt("a workspace of this id is there already".to_owned()));
        }
        if unique_name && state.workspaces.iter().any(|stored| stored.name == workspace.name) {
            return Ok(WorkspaceInsertion::NameTaken);
        }
        if state.has_slug(&workspace.slug) {
            return Ok(WorkspaceInsertion::SlugTaken);
        }
        state.workspaces.push(Workspace { is_default: false, ..workspace.clone() });
        state.note(audit, self.0.now());
        Ok(WorkspaceInsertion::Inserted)
    }

    async fn free_slug(&self, slug: &WorkspaceSlug) -> Result<WorkspaceSlug, StoreError> {
        Ok(self.0.state().free_slug(slug))
    }

    async fn default_or_insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<Workspace, StoreError> {
        let mut state = self.0.begin(audit)?;
        let before = state.workspaces.len();
        let found = state.default_or_insert(workspace);
        if state.workspaces.len() > before {
            state.note(audit, self.0.now());
        }
        Ok(found)
    }

    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let before = state.workspaces.len();
        state.default_or_insert(workspace);
        let added = state.workspaces.len() > before;
        if state.keys.values().any(|stored| stored.key.scope.management().is_some()) {
            if added {
                state.note(audit, self.0.now());
            }
            return Ok(false);
        }
        state.keys.insert(key.id, StoredKey { key: key.clone(), deleted: false, assigned: None });
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let state = self.0.state();
        Ok(state.workspace(id).map(|found| state.seen(found)))
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Workspace>, StoreError> {
        let text = name.as_str();
        let mut own = self.0.state().workspaces_within(within);
        if let Some(id) = name.id::<WorkspaceId>() {
            own.retain(|workspace| workspace.id == id);
        } else if own.iter().any(|workspace| workspace.slug.as_str() == text) {
            own.retain(|workspace| workspace.slug.as_str() == text);
        } else {
            own.retain(|workspace| workspace.name.as_str() == text);
        }
        own.truncate(ResourceName::MAX_MATCHES);
        Ok(own)
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Workspace>, u64), StoreError> {
        let own = self.0.state().workspaces_within(within);
        let total = own.len() as u64;
        let [offset, limit] = [offset, limit].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok((own.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn list(&self) -> Result<Vec<Workspace>, StoreError> {
        Ok(self.0.state().workspaces_within(&ManagementScope::UNRESTRICTED))
    }

    async fn update(
        &self,
        before: &Workspace,
        after: &Workspace,
        audit: &AuditDraft,
    ) -> Result<WorkspaceUpdate, StoreError> {
        let mut state = self.0.begin(audit)?;
        let Some(stored) = state.workspace(before.id).filter(|stored| stored.has_settings_of(before)).cloned() else {
            return Ok(WorkspaceUpdate::Differs);
        };
        if after.slug != stored.slug && state.has_slug(&after.slug) {
            return Ok(WorkspaceUpdate::SlugTaken);
        }
        let is_own = |id| state.guardrails.iter().any(|one| one.id == id && one.workspace_id == stored.id);
        if after.default_guardrail_id.is_some_and(|id| !is_own(id)) {
            return Ok(WorkspaceUpdate::UnknownGuardrail);
        }
        let credit = stored.credit;
        if let Some(slot) = state.workspaces.iter_mut().find(|one| one.id == stored.id) {
            *slot = Workspace { credit, is_default: stored.is_default, created_at: stored.created_at, ..after.clone() };
        }
        let subjects = [ChangeSubject::Workspace(stored.id)];
        if after.budgets == stored.budgets {
            state.changed(self.0.now(), subjects);
        } else {
            state.limits_changed(self.0.now(), subjects);
        }
        state.note(audit, self.0.now());
        Ok(WorkspaceUpdate::Updated)
    }

    async fn delete(
        &self,
        before: &Workspace,
        with_presets: bool,
        container_files: u64,
        audit: &AuditDraft,
    ) -> Result<WorkspaceDeletion, StoreError> {
        let mut state = self.0.begin(audit)?;
        let id = before.id;
        let Some(workspace) = state.workspace(id) else { return Ok(WorkspaceDeletion::Unknown) };
        if !workspace.has_settings_of(before) {
            return Ok(WorkspaceDeletion::Differs);
        }
        if workspace.is_default {
            return Ok(WorkspaceDeletion::IsDefault);
        }
        let contents = WorkspaceContents { container_files, ..state.contents(id) };
        let contents = if with_presets { contents.without(&[WorkspaceContent::Presets]) } else { contents };
        if !contents.is_empty() {
            return Ok(WorkspaceDeletion::NotEmpty(contents));
        }
        state.workspaces.retain(|stored| stored.id != id);
        state.deleted_workspaces.push(id);
        state.presets.retain(|(preset, _)| preset.workspace_id != id);
        state.changed(self.0.now(), [ChangeSubject::Workspace(id)]);
        state.note(audit, self.0.now());
        Ok(WorkspaceDeletion::Deleted)
    }

    async fn credit(&self, id: WorkspaceId) -> Result<Option<Credit>, StoreError> {
        let state = self.0.state();
        Ok(state.workspace(id).map(|workspace| state.credit(workspace)))
    }

    async fn change_credit<'a>(
        &self,
        id: WorkspaceId,
        edit: &'a CreditEdit<'a>,
    ) -> Result<Option<Credit>, WorkspaceError> {
        let mut state = self.0.state();
        let Some(workspace) = state.workspace(id) else { return Ok(None) };
        let before = state.credit(workspace);
        let (granted, audit) = edit(&before)?;
        state.check_repetition(&audit, self.0.now())?;
        if granted == before.granted {
            return Ok(Some(before));
        }
        if before.granted.is_none() {
            state.ledger.begin_credit(Account::Workspace(id), self.0.now());
        }
        if granted.is_none() || before.granted.is_none_or(|before| granted < Some(before)) {
            state.limits_changed(self.0.now(), [ChangeSubject::Workspace(id)]);
        }
        if let Some(workspace) = state.workspaces.iter_mut().find(|stored| stored.id == id) {
            workspace.credit = granted;
        }
        state.note(&audit, self.0.now());
        Ok(state.workspace(id).map(|workspace| state.credit(workspace)))
    }
}

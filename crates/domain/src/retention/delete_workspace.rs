//! Deletes a workspace, with its contents.

use std::sync::Arc;

use crate::api_key::{ChangeApiKeyError, ManageApiKeys};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::change::Change;
use crate::container::{BlobKey, BlobMeta};
use crate::error::{ErrorKind, StoreError};
use crate::file::DeleteDocument;
use crate::guardrail::{GuardrailError, ManageGuardrails};
use crate::ids::WorkspaceId;
use crate::json::ObjectWriter;
use crate::naming::{NameError, ResourceName};
use crate::observability::{DestinationError, ManageDestinations};
use crate::workspace::{
    Workspace, WorkspaceContent, WorkspaceContents, WorkspaceDeletion, WorkspaceError, WorkspaceRepository,
    find_visible,
};

/// Documents, or files of containers, that are read at a time.
const PAGE: u16 = 1_000;
/// The most rounds over contents that others add at the same time.
const MAX_ROUNDS: usize = 8;

/// Deletes workspaces, each with the contents of the named kinds.
pub struct DeleteWorkspace {
    /// The workspaces.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Deletes keys.
    pub keys: ManageApiKeys,
    /// Deletes documents, whose store has the files of containers, too.
    pub documents: DeleteDocument,
    /// Deletes destinations.
    pub destinations: ManageDestinations,
    /// Deletes guardrails.
    pub guardrails: ManageGuardrails,
}

/// A deleted workspace, and the number of contents that were deleted with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedWorkspace {
    /// The workspace before its deletion.
    pub workspace: Workspace,
    /// The contents that it had when the deletion began.
    pub contents: WorkspaceContents,
}

/// An error of [`DeleteWorkspace`].
#[derive(Debug, thiserror::Error)]
pub enum DeleteWorkspaceError {
    /// The workspace cannot be deleted.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A key was not deleted.
    #[error(transparent)]
    Key(#[from] ChangeApiKeyError),
    /// A guardrail was not deleted.
    #[error(transparent)]
    Guardrail(#[from] GuardrailError),
    /// A destination was not deleted.
    #[error(transparent)]
    Destination(#[from] DestinationError),
}

impl DeleteWorkspaceError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Workspace(error) => error.kind(),
            Self::Key(error) => error.kind(),
            Self::Guardrail(error) => error.kind(),
            Self::Destination(error) => error.kind(),
        }
    }
}

impl From<StoreError> for DeleteWorkspaceError {
    fn from(error: StoreError) -> Self {
        Self::Workspace(error.into())
    }
}

impl DeleteWorkspace {
    /// Deletes the contents of the kinds in `with`, and then the workspace, with its presets. Keys, documents, guardrails
    /// and destinations have an audit entry each. Usage records and spending stay. The id is never reused; the slug is
    /// free.
    ///
    /// # Errors
    /// A missing right; an unknown workspace; the default workspace, contents of other kinds, or a version that the
    /// caller does not accept, before anything is deleted; a store failure, after which a repeated call continues.
    pub async fn execute(
        &self,
        change: &Change<'_, DeletedWorkspace>,
        name: &ResourceName,
        with: &[WorkspaceContent],
    ) -> Result<DeletedWorkspace, DeleteWorkspaceError> {
        let by = change.by();
        by.check(Right::Unrestricted).map_err(WorkspaceError::from)?;
        let mut workspace = find_visible(&*self.workspaces, by, name).await?;
        let id = workspace.id;
        let mut first = None;
        for _ in 0..MAX_ROUNDS {
            // The deletion of contents changes the workspace, which the caller accepted before.
            if first.is_none() {
                change.check_version(workspace.version()).map_err(WorkspaceError::from)?;
            }
            let before = ObjectWriter::new()
                .text("name", workspace.name.as_str())
                .text("slug", workspace.slug.as_str())
                .finish();
            let subject = format!("workspace {id}");
            let audit = AuditDraft::change(by.actor(), "workspace.delete", subject, Some(before), None);
            let (with_presets, files) = (with.contains(&WorkspaceContent::Presets), self.count_files(id).await?);
            match self.workspaces.delete(&workspace, with_presets, files, &audit).await? {
                WorkspaceDeletion::Deleted => {
                    // An upload that ended in between either sees the deletion, or its file is seen here.
                    if let Err(error) = self.delete_files(id).await {
                        let error: &(dyn std::error::Error + 'static) = &error;
                        tracing::warn!(workspace.id = %id, error, "files of a deleted workspace not looked up");
                    }
                    return Ok(DeletedWorkspace { workspace, contents: first.unwrap_or_default() });
                }
                WorkspaceDeletion::Unknown => return Err(WorkspaceError::Name(NameError::Unknown).into()),
                WorkspaceDeletion::IsDefault => return Err(WorkspaceError::IsDefault.into()),
                WorkspaceDeletion::Differs => {}
                WorkspaceDeletion::NotEmpty(contents) => {
                    let remaining = contents.without(with);
                    if !remaining.is_empty() {
                        return Err(WorkspaceError::NotEmpty(remaining).into());
                    }
                    first.get_or_insert(contents);
                    self.delete_contents(by, id, with).await?;
                }
            }
            workspace = find_visible(&*self.workspaces, by, &(&id).into()).await?;
        }
        Err(WorkspaceError::Contended.into())
    }

    /// Deletes the contents of these kinds. Keys come first, so that running servers reject requests while the rest is
    /// deleted.
    async fn delete_contents(
        &self,
        by: &Authority,
        id: WorkspaceId,
        with: &[WorkspaceContent],
    ) -> Result<(), DeleteWorkspaceError> {
        if with.contains(&WorkspaceContent::Keys) {
            for key in self.keys.keys.list(Some(id)).await? {
                unless_gone(self.keys.delete(&Change::plain(by), &(&key.id).into()).await)?;
            }
        }
        if with.contains(&WorkspaceContent::Documents) {
            loop {
                let page = self.documents.documents.list(Some(id), None, PAGE.into()).await?;
                if page.is_empty() {
                    break;
                }
                for document in page {
                    self.documents.execute(id, &document.id, by.actor()).await?;
                }
            }
        }
        if with.contains(&WorkspaceContent::ContainerFiles) {
            self.delete_files(id).await?;
        }
        if with.contains(&WorkspaceContent::Destinations) {
            for destination in self.destinations.destinations.names(Some(id)).await? {
                unless_gone(self.destinations.delete(&Change::plain(by), &destination.id.to_string()).await)?;
            }
        }
        if with.contains(&WorkspaceContent::Guardrails) {
            for guardrail in self.guardrails.guardrails.list(id).await? {
                unless_gone(self.guardrails.delete(&Change::plain(by), &guardrail.id.to_string()).await)?;
            }
        }
        Ok(())
    }

    async fn delete_files(&self, id: WorkspaceId) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.files_after(id, after.as_ref()).await?;
            for file in &page {
                self.documents.blobs.delete(&file.key).await?;
            }
            after = page.last().map(|file| file.key.clone());
            if page.len() < usize::from(PAGE) {
                return Ok(());
            }
        }
    }

    async fn count_files(&self, id: WorkspaceId) -> Result<u64, StoreError> {
        let (mut count, mut after) = (0_u64, None);
        loop {
            let page = self.files_after(id, after.as_ref()).await?;
            count = count.saturating_add(page.len() as u64);
            after = page.last().map(|file| file.key.clone());
            if page.len() < usize::from(PAGE) {
                return Ok(count);
            }
        }
    }

    /// Returns the next files of the workspace's containers.
    async fn files_after(&self, id: WorkspaceId, after: Option<&BlobKey>) -> Result<Vec<BlobMeta>, StoreError> {
        self.documents.blobs.list(&BlobKey::containers_prefix(id), after, PAGE.into()).await
    }
}

/// Ignores that a content is unknown: another call deleted it meanwhile.
fn unless_gone<T, E: Into<DeleteWorkspaceError>>(deleted: Result<T, E>) -> Result<(), DeleteWorkspaceError> {
    match deleted.map_err(Into::into) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

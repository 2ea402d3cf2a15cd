//! The stores of presets.

use std::sync::Arc;

use async_trait::async_trait;

use super::{DesignatedPreset, Preset, PresetSlug, PresetVersion};
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::error::StoreError;
use crate::ids::{PresetId, WorkspaceId};

/// Finds the presets of requests. It is usually a cache over the repository.
///
/// # Contract
/// - While the store can be read, a change MUST be visible after one second.
/// - A failure of the store MUST be an error, never `Ok(None)`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Presets: Send + Sync {
    /// Returns the preset of a workspace with this slug, of any status, with its designated version.
    async fn find_designated(
        &self,
        workspace_id: WorkspaceId,
        slug: &PresetSlug,
    ) -> Result<Option<Arc<DesignatedPreset>>, StoreError>;
}

/// The effect of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresetSave {
    /// The preset is stored.
    Saved,
    /// The stored preset is another one than expected, the slug is taken, or the workspace does not exist.
    Conflict,
    /// The workspace has [`Preset::MAX_IN_WORKSPACE`] presets.
    TooMany,
}

/// Stores presets with their versions.
///
/// # Contract
/// - Every method is one transaction.
/// - A slug is unique in its workspace. Versions never change.
/// - `save` writes its audit entry and [`crate::change_feed::ChangeSubject::Preset`] in its transaction. Of concurrent
///   changes of one state exactly one succeeds.
/// - The deletion of a workspace with its presets deletes them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[cfg_attr(feature = "mock", allow(clippy::ref_option_ref, reason = "mockall's own expansion"))]
#[async_trait]
pub trait PresetRepository: Send + Sync {
    /// Replaces the preset `before`, or adds a preset with `None`, and adds the version if there is one.
    async fn save<'a>(
        &self,
        before: Option<&'a Preset>,
        after: &Preset,
        added: Option<&'a PresetVersion>,
        audit: &AuditDraft,
    ) -> Result<PresetSave, StoreError>;

    /// Returns the preset of a workspace with this slug, of any status, with its designated version.
    async fn find(&self, workspace_id: WorkspaceId, slug: &PresetSlug) -> Result<Option<DesignatedPreset>, StoreError>;

    /// Returns a page of the presets within a scope, last changed first, and their number.
    async fn page(&self, within: &ManagementScope, offset: u64, limit: u64) -> Result<(Vec<Preset>, u64), StoreError>;

    /// Returns versions of a preset from the number `first` on, oldest first.
    async fn versions(&self, id: PresetId, first: u32, limit: u64) -> Result<Vec<PresetVersion>, StoreError>;
}

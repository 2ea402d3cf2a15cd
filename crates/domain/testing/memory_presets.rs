//! Presets in memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::memory_store::MemoryPresets;
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::{PresetId, WorkspaceId};
use crate::preset::{DesignatedPreset, Preset, PresetRepository, PresetSave, PresetSlug, PresetVersion, Presets};

#[async_trait]
impl PresetRepository for MemoryPresets {
    async fn save<'a>(
        &self,
        before: Option<&'a Preset>,
        after: &Preset,
        added: Option<&'a PresetVersion>,
        audit: &AuditDraft,
    ) -> Result<PresetSave, StoreError> {
        let mut state = self.0.begin(audit)?;
        let is_named = |(stored, _): &(Preset, Vec<PresetVersion>)| {
            (stored.workspace_id, &stored.slug) == (after.workspace_id, &after.slug)
        };
        let position = state.presets.iter().position(is_named);
        if position.map(|position| &state.presets[position].0) != before
            || state.workspace(after.workspace_id).is_none()
        {
            return Ok(PresetSave::Conflict);
        }
        let of_workspace =
            state.presets.iter().filter(|(preset, _)| preset.workspace_id == after.workspace_id).count() as u64;
        if before.is_none() && of_workspace >= Preset::MAX_IN_WORKSPACE {
            return Ok(PresetSave::TooMany);
        }
        let versions = position.map(|position| state.presets.remove(position).1).unwrap_or_default();
        let versions = versions.into_iter().chain(added.cloned()).collect();
        state.presets.push((after.clone(), versions));
        state.changed(self.0.now(), [ChangeSubject::Preset(after.id)]);
        state.note(audit, self.0.now());
        Ok(PresetSave::Saved)
    }

    async fn find(&self, workspace_id: WorkspaceId, slug: &PresetSlug) -> Result<Option<DesignatedPreset>, StoreError> {
        let state = self.0.state();
        let is_named =
            |(stored, _): &&(Preset, Vec<PresetVersion>)| stored.workspace_id == workspace_id && stored.slug == *slug;
        let Some((preset, versions)) = state.presets.iter().find(is_named) else { return Ok(None) };
        let version = versions.iter().find(|version| version.number == preset.designated_version);
        let version = version.cloned().ok_or_else(|| StoreError::Corrupt("the version is missing".to_owned()))?;
        Ok(Some(DesignatedPreset { preset: preset.clone(), version }))
    }

    async fn page(&self, within: &ManagementScope, offset: u64, limit: u64) -> Result<(Vec<Preset>, u64), StoreError> {
        let state = self.0.state();
        let presets = state.presets.iter().map(|(preset, _)| preset.clone());
        let mut found: Vec<Preset> = presets.filter(|preset| within.contains(preset.workspace_id)).collect();
        found.sort_by_key(|preset| std::cmp::Reverse((preset.updated_at, preset.id)));
        let total = found.len() as u64;
        let [offset, limit] = [offset, limit].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok((found.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn versions(&self, id: PresetId, first: u32, limit: u64) -> Result<Vec<PresetVersion>, StoreError> {
        let state = self.0.state();
        let own = state.presets.iter().filter(|(preset, _)| preset.id == id).flat_map(|(_, versions)| versions);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(own.filter(|version| version.number >= first).take(limit).cloned().collect())
    }
}

#[async_trait]
impl Presets for MemoryPresets {
    async fn find_designated(
        &self,
        workspace_id: WorkspaceId,
        slug: &PresetSlug,
    ) -> Result<Option<Arc<DesignatedPreset>>, StoreError> {
        Ok(self.find(workspace_id, slug).await?.map(Arc::new))
    }
}

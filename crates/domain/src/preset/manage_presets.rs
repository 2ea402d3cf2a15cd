//! Reads and changes presets.

use std::sync::Arc;

use super::{
    DesignatedPreset, Preset, PresetConfig, PresetError, PresetRepository, PresetSave, PresetSlug, PresetStatus,
    PresetVersion,
};
use crate::audit::AuditDraft;
use crate::authority::{Authority, ManagementScope, Right};
use crate::change::{Change, MAX_ATTEMPTS};
use crate::ids::WorkspaceId;
use crate::model::{Catalogue, Model, NEAREST, SANDBOX_AUTHOR};
use crate::system::{Clock, IdGenerator};
use crate::workspace::{WorkspaceRepository, choose_workspace};

/// The use cases of presets, over their ports. Changes need [`Right::Write`]. The caller of a read has chosen a
/// workspace that it sees.
#[derive(Clone)]
pub struct ManagePresets {
    /// The presets.
    pub presets: Arc<dyn PresetRepository>,
    /// The workspaces of the presets.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The catalogue, which has the models of new versions.
    pub catalogue: Arc<dyn Catalogue>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Generates ids.
    pub ids: Arc<dyn IdGenerator>,
}

/// A change of a preset; `None` keeps a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresetChange {
    /// The display name.
    pub name: Option<String>,
    /// The status.
    pub status: Option<PresetStatus>,
    /// The id of the designated version.
    pub designated_version_id: Option<String>,
}

impl ManagePresets {
    /// Returns a page of the presets within a scope, last changed first, and their number.
    ///
    /// # Errors
    /// A store failure.
    pub async fn list(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Preset>, u64), PresetError> {
        Ok(self.presets.page(within, offset, limit).await?)
    }

    /// Returns a preset with its designated version.
    ///
    /// # Errors
    /// The preset does not exist, or the store failed.
    pub async fn get(&self, workspace_id: WorkspaceId, slug: &str) -> Result<DesignatedPreset, PresetError> {
        let slug = PresetSlug::try_new(slug).map_err(|_| PresetError::NotFound)?;
        self.presets.find(workspace_id, &slug).await?.ok_or(PresetError::NotFound)
    }

    /// Returns a preset and up to `limit` of its versions after the first `offset`, oldest first.
    ///
    /// # Errors
    /// The preset does not exist, or the store failed.
    pub async fn list_versions(
        &self,
        workspace_id: WorkspaceId,
        slug: &str,
        offset: u64,
        limit: u64,
    ) -> Result<(Preset, Vec<PresetVersion>), PresetError> {
        let preset = self.get(workspace_id, slug).await?.preset;
        let first = u32::try_from(offset).unwrap_or(u32::MAX).saturating_add(1);
        let versions = self.presets.versions(preset.id, first, limit).await?;
        Ok((preset, versions))
    }

    /// Returns a preset and one of its versions.
    ///
    /// # Errors
    /// The preset or the version does not exist, or the store failed.
    pub async fn get_version(
        &self,
        workspace_id: WorkspaceId,
        slug: &str,
        number: u32,
    ) -> Result<(Preset, PresetVersion), PresetError> {
        let preset = self.get(workspace_id, slug).await?.preset;
        let version = self.version(&preset, number).await?;
        Ok((preset, version))
    }

    async fn version(&self, preset: &Preset, number: u32) -> Result<PresetVersion, PresetError> {
        let found = self.presets.versions(preset.id, number, 1).await?.into_iter().next();
        found.filter(|version| version.number == number).ok_or(PresetError::NotFound)
    }

    /// Adds a version to the preset with this slug and designates it; adds the preset if there is none. The status stays.
    /// The workspace is that of `named`, else the default one or the only one of the caller.
    ///
    /// # Errors
    /// A missing right; an invalid slug; an unknown workspace or model; a state of the preset that the caller does not
    /// accept; too many versions or presets; concurrent changes; a store failure.
    pub async fn add_version(
        &self,
        change: &Change<'_, DesignatedPreset>,
        named: Option<WorkspaceId>,
        slug: &str,
        config: &PresetConfig,
    ) -> Result<DesignatedPreset, PresetError> {
        let by = change.by();
        by.check(Right::Write)?;
        let slug = PresetSlug::try_new(slug)?;
        let workspace_id = choose_workspace(&*self.workspaces, by, named).await?.id;
        self.check_models(&config.models)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.presets.find(workspace_id, &slug).await?.map(|found| found.preset);
            change.check_version(before.as_ref().map(Preset::version))?;
            let (now, created_by) = (self.clock.now(), by.actor().name.clone());
            let number = before.as_ref().map_or(0, |before| before.newest_version) + 1;
            if number > Preset::MAX_VERSIONS {
                return Err(PresetError::TooManyVersions);
            }
            let preset = before.clone().unwrap_or_else(|| Preset {
                id: self.ids.preset_id(),
                workspace_id,
                slug: slug.clone(),
                name: slug.as_str().to_owned(),
                status: PresetStatus::Active,
                status_updated_at: None,
                designated_version: number,
                newest_version: number,
                created_by: created_by.clone(),
                created_at: now,
                updated_at: now,
            });
            let preset = Preset { designated_version: number, newest_version: number, updated_at: now, ..preset };
            let version = PresetVersion { number, config: config.clone(), created_by, created_at: now };
            let after = DesignatedPreset { preset, version };
            let audit = change.audited(audit_draft(by, "preset.add_version", before.as_ref(), &after.preset), &after);
            match self.presets.save(before.as_ref(), &after.preset, Some(&after.version), &audit).await? {
                PresetSave::Saved => return Ok(after),
                PresetSave::TooMany => return Err(PresetError::TooManyPresets),
                PresetSave::Conflict => {}
            }
        }
        Err(PresetError::Conflict)
    }

    /// Checks that the models answer Decisions requests: a request would skip a stage of an unknown model. Models of the
    /// sandbox may be named before it is switched on.
    fn check_models(&self, names: &[String]) -> Result<(), PresetError> {
        let snapshot = self.catalogue.snapshot();
        let is_known = |name: &str| {
            let is_of_sandbox = name.split_once('/').is_some_and(|(author, _)| author == SANDBOX_AUTHOR);
            is_of_sandbox || snapshot.resolve_any(name).is_some_and(|found| found.model.serves_decisions())
        };
        names.iter().find(|name| !is_known(name)).map_or(Ok(()), |name| {
            let nearest = snapshot.nearest(name, NEAREST, Model::serves_decisions);
            Err(PresetError::UnknownModel { name: name.clone(), nearest })
        })
    }

    /// Changes only the members that the change names. The workspace is chosen as in [`Self::add_version`].
    ///
    /// # Errors
    /// A missing right; no member, or an invalid one; an unknown preset, or a state of it that the caller does not
    /// accept; concurrent changes; a store failure.
    pub async fn update(
        &self,
        change: &Change<'_, DesignatedPreset>,
        named: Option<WorkspaceId>,
        slug: &str,
        members: &PresetChange,
    ) -> Result<DesignatedPreset, PresetError> {
        let by = change.by();
        by.check(Right::Write)?;
        if *members == PresetChange::default() {
            return Err(PresetError::NothingToChange);
        }
        let workspace_id = choose_workspace(&*self.workspaces, by, named).await?.id;
        for _ in 0..MAX_ATTEMPTS {
            let found = self.get(workspace_id, slug).await?;
            change.check_version(found.preset.version())?;
            let preset = self.changed(&found.preset, members)?;
            if preset == found.preset {
                return Ok(found);
            }
            let version = self.version(&preset, preset.designated_version).await?;
            let after = DesignatedPreset { preset, version };
            let audit = audit_draft(by, "preset.update", Some(&found.preset), &after.preset);
            let audit = change.audited(audit, &after);
            if self.presets.save(Some(&found.preset), &after.preset, None, &audit).await? == PresetSave::Saved {
                return Ok(after);
            }
        }
        Err(PresetError::Conflict)
    }

    /// Returns the preset with the change, with new times if something differs.
    fn changed(&self, before: &Preset, members: &PresetChange) -> Result<Preset, PresetError> {
        let mut after = before.clone();
        if let Some(name) = &members.name {
            let fits = (1..=200).contains(&name.chars().count()) && !name.trim().is_empty();
            if !fits || name.chars().any(char::is_control) {
                return Err(PresetError::InvalidName);
            }
            after.name.clone_from(name);
        }
        after.status = members.status.unwrap_or(before.status);
        if let Some(id) = &members.designated_version_id {
            after.designated_version = before.version_number(id).ok_or(PresetError::UnknownDesignation)?;
        }
        if after != *before {
            after.updated_at = self.clock.now();
        }
        if after.status != before.status {
            after.status_updated_at = Some(after.updated_at);
        }
        Ok(after)
    }
}

fn audit_draft(by: &Authority, action: &'static str, before: Option<&Preset>, after: &Preset) -> AuditDraft {
    let subject = format!("preset {}", after.id);
    AuditDraft::change(by.actor(), action, subject, before.map(Preset::describe), Some(after.describe()))
}

#[cfg(test)]
mod tests;

//! A preset and its versions.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Cascade;
use crate::audit::RowHasher;
use crate::ids::{PresetId, WorkspaceId};
use crate::json::{Json, ObjectWriter};
use crate::question::Questions;
use crate::usage::PresetReference;
use crate::version::Version;
use crate::workspace::WorkspaceSlug;

/// The slug of a preset. Presets and workspaces have one grammar of slugs.
pub type PresetSlug = WorkspaceSlug;

named_enum! {
    /// The status of a preset. Requests use active presets only.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PresetStatus {
        /// Requests use it.
        Active = "active",
        /// Requests do not use it for now.
        Disabled = "disabled",
        /// Requests do not use it anymore.
        Archived = "archived",
    }
}

/// A named set of questions of a workspace. One of its versions is designated: requests use that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// The id.
    pub id: PresetId,
    /// The workspace whose keys use it.
    pub workspace_id: WorkspaceId,
    /// The name in requests, unique in the workspace.
    pub slug: PresetSlug,
    /// The display name: 1 to 200 characters without control characters.
    pub name: String,
    /// The status.
    pub status: PresetStatus,
    /// The time of the last change of the status.
    pub status_updated_at: Option<DateTime<Utc>>,
    /// The number of the designated version.
    pub designated_version: u32,
    /// The number of the newest version. Versions are numbered from 1 without gaps.
    pub newest_version: u32,
    /// The actor who created it.
    pub created_by: String,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last change.
    pub updated_at: DateTime<Utc>,
}

/// A version of a preset. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetVersion {
    /// The number, from 1.
    pub number: u32,
    /// The models and the questions.
    pub config: PresetConfig,
    /// The actor who created it.
    pub created_by: String,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
}

/// The models and the questions of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetConfig {
    /// The names of 1 to 16 models, in the order of preference; those of the stages, each once.
    pub models: Vec<String>,
    /// The questions, which are typed.
    pub questions: Questions,
    /// The stages, if it has any.
    pub cascade: Option<Arc<Cascade>>,
}

/// A preset with its designated version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignatedPreset {
    /// The preset.
    pub preset: Preset,
    /// The designated version.
    pub version: PresetVersion,
}

impl Preset {
    /// The most versions of a preset.
    pub const MAX_VERSIONS: u32 = 10_000;

    /// The most presets of a workspace. Creations at the same time may exceed it.
    pub const MAX_IN_WORKSPACE: u64 = 1_000;

    /// Returns the version of the writable members.
    pub fn version(&self) -> Version {
        let hasher = RowHasher::new("preset").text(self.id.to_string().as_str()).text(self.name.as_str());
        hasher.text(self.status.as_str()).number(i64::from(self.designated_version)).finish().into()
    }

    /// Returns the id of a version: that of the preset, a full stop, and the number.
    pub fn version_id(&self, number: u32) -> String {
        format!("{}.{number}", self.id)
    }

    /// Returns the number of the version with this id; `None` if the preset has no such version.
    pub fn version_number(&self, id: &str) -> Option<u32> {
        let number: u32 = id.rsplit_once('.')?.1.parse().ok()?;
        let exists = (1..=self.newest_version).contains(&number) && self.version_id(number) == id;
        exists.then_some(number)
    }

    /// Describes the preset for audit entries, without its id and its times.
    pub(super) fn describe(&self) -> Json {
        ObjectWriter::new()
            .text("workspace_id", self.workspace_id.to_string())
            .text("slug", self.slug.as_str())
            .text("name", self.name.as_str())
            .text("status", self.status.as_str())
            .shown("designated_version", self.designated_version)
            .finish()
    }
}

impl PresetVersion {
    /// Estimates its size without the structures of its parsed questions.
    pub fn text_bytes(&self) -> u64 {
        const VERSION: usize = 1 << 10;
        (VERSION + self.config.questions.json.text().len()) as u64
    }
}

impl PresetConfig {
    /// The longest configuration, in bytes of JSON: requests that name a preset are small, but each holds its questions.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Returns the configuration as an object with the members `models` and `questions`, or `stages`, `otherwise` and
    /// `questions`.
    pub fn to_json(&self) -> Json {
        let config = match &self.cascade {
            Some(cascade) => ObjectWriter::new()
                .json("stages", cascade.stages_json().text())
                .text("otherwise", cascade.otherwise.as_str()),
            None => ObjectWriter::new().texts("models", &self.models),
        };
        config.json("questions", self.questions.json.text()).finish()
    }
}

impl DesignatedPreset {
    /// Returns the reference for usage records.
    pub fn reference(&self) -> PresetReference {
        PresetReference { id: self.preset.id, version: self.version.number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::fixtures::preset;

    #[test]
    fn version_id_names_a_version_of_the_preset() {
        let found = Preset { newest_version: 2, ..preset(7) };
        let id = |number: u32| found.version_id(number);
        assert_eq!(id(2), format!("{}.2", found.id));
        assert_eq!([1, 2].map(|number| found.version_number(&id(number))), [Some(1), Some(2)]);
        let foreign = preset(8).version_id(1);
        let padded = format!("{}.01", found.id);
        for none in [id(0), id(3), foreign, padded, found.id.to_string(), String::new(), ".1".to_owned()] {
            assert_eq!(found.version_number(&none), None, "{none}");
        }
    }

    #[test]
    fn version_changes_with_writable_members_only() {
        let before = preset(7);
        let same = [
            Preset { updated_at: before.updated_at + chrono::TimeDelta::hours(1), ..before.clone() },
            Preset { newest_version: 9, ..before.clone() },
        ];
        assert!(same.iter().all(|other| other.version() == before.version()));
        let others = [
            Preset { name: "other".to_owned(), ..before.clone() },
            Preset { status: PresetStatus::Archived, ..before.clone() },
            Preset { designated_version: 2, ..before.clone() },
            preset(8),
        ];
        assert!(others.iter().all(|other| other.version() != before.version()));
    }
}

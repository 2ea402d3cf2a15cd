//! Presets for tests.

use chrono::{DateTime, Utc};

use super::{Preset, PresetConfig, PresetSlug, PresetStatus};
use crate::ids::{PresetId, WorkspaceId};
use crate::json::Json;
use crate::testing::SequentialIds;

pub(crate) fn preset(number: u64) -> Preset {
    let created_at = DateTime::<Utc>::from_timestamp_millis(1_790_000_000_123).unwrap();
    Preset {
        id: PresetId::from_uuid(SequentialIds::uuid(number)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        slug: PresetSlug::try_new("triage").unwrap(),
        name: "Triage".to_owned(),
        status: PresetStatus::Active,
        status_updated_at: None,
        designated_version: 1,
        newest_version: 1,
        created_by: "system".to_owned(),
        created_at,
        updated_at: created_at,
    }
}

/// Returns a configuration of one model with one question of this name.
pub(crate) fn config(model: &str, question: &str) -> PresetConfig {
    let text = format!(r#"{{"model":"{model}","questions":{{"{question}":{{"type":"noul","instructions":"?"}}}}}}"#);
    PresetConfig::read(&Json::parse(&text).unwrap()).unwrap()
}

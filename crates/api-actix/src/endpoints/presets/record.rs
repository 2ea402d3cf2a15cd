//! A preset and its versions as JSON: their views, and the schemas of requests.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use domain::preset::{DesignatedPreset, Preset, PresetVersion};

use crate::endpoints::prelude::*;

/// A preset.
#[derive(Serialize, ToSchema)]
#[schema(as = Preset)]
pub(super) struct PresetView<'a> {
    id: Uuid,
    /// The name in requests: `@preset/` and the slug as the model.
    slug: &'a str,
    name: &'a str,
    /// Not supported: always null.
    #[schema(required, value_type = Option<String>)]
    description: Option<()>,
    workspace_id: Uuid,
    #[schema(value_type = PresetStatus)]
    status: &'static str,
    #[schema(required)]
    status_updated_at: Option<DateTime>,
    /// The id of the version that requests use.
    designated_version_id: String,
    /// That version; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    designated_version: Option<PresetVersionView<'a>>,
    /// The author: `key:` and the id of a management key, or `user:` and an operating system user.
    creator_user_id: &'a str,
    created_at: DateTime,
    updated_at: DateTime,
}

/// A version of a preset. It never changes.
#[derive(Serialize, ToSchema)]
#[schema(as = PresetVersion)]
pub(super) struct PresetVersionView<'a> {
    id: String,
    preset_id: Uuid,
    #[schema(value_type = u64, minimum = 1)]
    version: u32,
    /// `questions`, and either `models`, in the order of preference, or `stages` and `otherwise`.
    config: Object,
    /// Not supported: always null.
    #[schema(required, value_type = Option<String>)]
    system_prompt: Option<()>,
    /// The author, as of the preset.
    creator_id: &'a str,
    created_at: DateTime,
    /// Equals `created_at`.
    updated_at: DateTime,
}

/// The status of a preset; requests use active ones only.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
enum PresetStatus {
    Active,
    Disabled,
    Archived,
}

/// A version to add to a preset: its questions, and `model`, `models` or `stages`.
#[derive(ToSchema)]
pub(super) struct PresetConfigRequest {
    /// The first model.
    model: Option<String>,
    /// The further models, or all, in the order of preference.
    #[schema(max_items = 16)]
    models: Option<Vec<String>>,
    /// Typed questions by name, as of a Decisions request.
    #[schema(value_type = Object)]
    questions: serde_json::Value,
    /// Models that are asked in turn: a question whose answer a stage does not accept goes to the next one.
    #[schema(min_items = 1, max_items = 4)]
    stages: Option<Vec<PresetStage>>,
    /// The fate of an answer that no stage accepts: it is the answer (the default), or the question has no decision.
    otherwise: Option<Otherwise>,
}

/// A stage of a preset.
#[derive(ToSchema)]
struct PresetStage {
    model: String,
    /// The least scores of accepted answers, from 0 to 1: by question, or `*` for the others, a number or an object with
    /// a number by decision (`yes` and `no`, an option, a level). Only the last stage may do without: it accepts all.
    #[schema(value_type = Option<Object>)]
    accept: Option<serde_json::Value>,
}

/// The fate of an answer that no stage accepts.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
enum Otherwise {
    Answer,
    Abstain,
}

/// A change to a preset, with at least one member.
#[derive(ToSchema)]
pub(super) struct PresetUpdate {
    /// The display name, without control characters.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    status: Option<PresetStatus>,
    /// The id of one of its versions.
    #[schema(nullable = false)]
    designated_version_id: Option<String>,
}

/// Returns the schema of one preset.
pub(super) fn response() -> BodySchema {
    BodySchema::data::<PresetView<'_>>("PresetResponse", "One preset.")
}

/// Renders one preset with its entity tag.
pub(super) fn respond(found: &DesignatedPreset) -> RecordResponse {
    let designated_version = Some(PresetVersionView::new(&found.preset, &found.version));
    let view = PresetView { designated_version, ..PresetView::new(&found.preset) };
    RecordResponse::data(StatusCode::OK, view).version(found.preset.version())
}

impl<'a> PresetView<'a> {
    /// Builds the view without the designated version.
    pub(super) fn new(preset: &'a Preset) -> Self {
        Self {
            id: preset.id.to_string(),
            slug: preset.slug.as_str(),
            name: &preset.name,
            description: None,
            workspace_id: preset.workspace_id.to_string(),
            status: preset.status.as_str(),
            status_updated_at: preset.status_updated_at.map(time),
            designated_version_id: preset.version_id(preset.designated_version),
            designated_version: None,
            creator_user_id: &preset.created_by,
            created_at: time(preset.created_at),
            updated_at: time(preset.updated_at),
        }
    }
}

impl<'a> PresetVersionView<'a> {
    /// Builds the view of a version of the preset.
    pub(super) fn new(preset: &Preset, version: &'a PresetVersion) -> Self {
        Self {
            id: preset.version_id(version.number),
            preset_id: preset.id.to_string(),
            version: version.number,
            config: opaque(&version.config.to_json()),
            system_prompt: None,
            creator_id: &version.created_by,
            created_at: time(version.created_at),
            updated_at: time(version.created_at),
        }
    }
}

//! Adds versions to presets, and changes presets.

use domain::ids::WorkspaceId;
use domain::preset::{PresetChange, PresetConfig, PresetStatus};
use wires::client::read_object;

use super::record;
use super::record::{PresetConfigRequest, PresetUpdate};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;
use crate::http::members::{MemberNames, Members, NeutralMember, invalid, string};

/// `POST …/presets/{slug}/decisions`: adds a version to a preset.
pub(crate) const ADD_VERSION: Route =
    Route::management(Post, "/presets/{slug}/decisions", tags::PRESETS, handler!(handle_add_version, payload))
        .operation("addPresetVersion", "Add a version to a preset")
        .description(
            "The version is designated: requests with the model `@preset/` and the slug use it on every replica \
             within a second. The first version creates the preset.",
        )
        .query(&[PRESET_WORKSPACE])
        .body(BodySchema::of::<PresetConfigRequest>)
        .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
        .answer(record::response, "The preset");

async fn handle_add_version(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let body = call.read_json(payload).await?;
    let (config, slug) = (read_config(body.text()?)?, call.id()?);
    let add = async |change: &Change<'_, _>| {
        let workspace = workspaces::filter(call, by).await?;
        Ok::<_, ApiError>(call.gateway.services.presets.add_version(change, workspace, &slug, &config).await?)
    };
    call.post(by, body.text()?, add, record::respond).await
}

/// `PATCH …/presets/{slug}`: changes a preset.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/presets/{slug}", tags::PRESETS, handler!(handle_update, payload))
        .operation("updatePreset", "Update a preset")
        .description(
            "Changes the given members. An earlier version as the designated one is a roll back. A change is \
             effective on every replica within a second.",
        )
        .query(&[PRESET_WORKSPACE])
        .body(BodySchema::of::<PresetUpdate>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated preset");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let workspace = workspaces::filter(call, by).await?;
    let slug = call.id()?;
    let change = read_change(call.read_json(payload).await?.text()?, &slug, workspace)?;
    let presets = &call.gateway.services.presets;
    let changed = presets.update(&call.change(by)?, workspace, &slug, &change).await?;
    Ok(record::respond(&changed).respond())
}

/// The members of a version.
const CONFIG: [&str; 5] = ["model", "models", "questions", "stages", "otherwise"];

fn read_config(text: &str) -> Result<PresetConfig, ApiError> {
    Members::read(text, MemberNames { writable: &CONFIG, read_only: &[], neutral: &[] })?;
    Ok(PresetConfig::read(&read_object(text)?)?)
}

const PRESET: MemberNames = MemberNames {
    writable: &["name", "status", "designated_version_id"],
    read_only: &[
        "id",
        "slug",
        "workspace_id",
        "status_updated_at",
        "designated_version",
        "creator_user_id",
        "created_at",
        "updated_at",
    ],
    neutral: &[NeutralMember::new("description", &[])],
};

fn read_change(text: &str, slug: &str, workspace: Option<WorkspaceId>) -> Result<PresetChange, ApiError> {
    let members = Members::read(text, PRESET)?;
    members.fixed("slug", Some(slug))?;
    if let Some(workspace) = workspace {
        members.fixed("workspace_id", Some(&workspace.to_string()))?;
    }
    Ok(PresetChange {
        name: members.value("name", string)?,
        status: members.value("status", status)?,
        designated_version_id: members.value("designated_version_id", string)?,
    })
}

fn status(name: &str, value: &Json) -> Result<PresetStatus, ApiError> {
    let status = value.as_string().and_then(|text| PresetStatus::from_name(&text));
    status.ok_or_else(|| invalid(name, "must be active, disabled or archived"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::to_value;

    use super::super::record::PresetView;
    use super::*;

    fn members<T: ToSchema>() -> BTreeSet<String> {
        let schema = to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn described_members_are_read_and_the_record_can_be_sent_back() {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(members::<PresetUpdate>(), names(PRESET.writable));
        assert_eq!(members::<PresetConfigRequest>(), names(&CONFIG));
        let accepted = [PRESET.writable, PRESET.read_only, &["description"]].concat();
        assert_eq!(members::<PresetView<'_>>(), names(&accepted));
    }

    #[test]
    fn invalid_bodies_are_located() {
        let workspace = Some(WorkspaceId::from_uuid(uuid::Uuid::nil()));
        let change = |text: &str| read_change(text, "triage", workspace).map_err(|error| error.text().to_owned());
        assert_eq!(change(r#"{"id":"x","description":null}"#), Ok(PresetChange::default()));
        assert_eq!(change(r#"{"status":"archived"}"#).unwrap().status, Some(PresetStatus::Archived));
        for (text, expected) in [
            (r#"{"status":"deleted"}"#, "status: must be active, disabled or archived"),
            (r#"{"status":null}"#, "status: must be active, disabled or archived"),
            (r#"{"name":null}"#, "name: must be a string"),
            (r#"{"name":"n","slug":"other"}"#, r#"slug: is "triage" here and cannot be changed"#),
            (
                r#"{"name":"n","workspace_id":"01a2254e-0000-717d-8429-1e258a29ac66"}"#,
                r#"workspace_id: is "00000000-0000-0000-0000-000000000000" here and cannot be changed"#,
            ),
            (r#"{"description":"d"}"#, "description is not supported"),
            (r#"{"statsu":"active"}"#, r#"unknown member "statsu"; the nearest known member is "status""#),
        ] {
            assert_eq!(change(text).unwrap_err(), expected);
        }
        let config = |text: &str| read_config(text).map(drop).map_err(|error| error.text().to_owned());
        let questions = r#""questions":{"q":{"type":"noul","instructions":"?"}}"#;
        assert_eq!(config(&format!(r#"{{"models":["a/b"],{questions}}}"#)), Ok(()));
        for (text, expected) in [
            (
                format!(r#"{{"model":"a/b",{questions},"state":"s"}}"#),
                "unknown member \"state\"; the nearest known member is \"stages\"",
            ),
            (format!(r#"{{"model":"a/b","model":"a/c",{questions}}}"#), "model: is in the body more than once"),
            (format!(r#"{{"models":[],{questions}}}"#), "models: is required, or stages"),
        ] {
            assert_eq!(config(&text).unwrap_err(), expected, "{text}");
        }
    }
}

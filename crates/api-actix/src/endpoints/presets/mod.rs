//! `…/presets`: named sets of questions. Every key reads those of its workspaces; management keys change them.

mod record;

use domain::authority::ManagementScope;
use domain::ids::WorkspaceId;
use domain::preset::{PresetChange, PresetConfig, PresetError, PresetStatus, PresetVersion};
use domain::workspace::ChooseWorkspaceError;
use wires::client::read_object;

use crate::endpoints::guardrails::version_number;
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;
use crate::http::members::{MemberNames, Members, NeutralMember, invalid, string};
use record::{PresetConfigRequest, PresetUpdate, PresetVersionView, PresetView};

/// Returns the workspace that a caller reads.
pub(super) async fn workspace(call: &Call<'_>, caller: &Principal) -> Result<WorkspaceId, ApiError> {
    let named = parameters::resource(call.request.query_string(), "workspace_id")?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, Right::Read, named.as_ref()).await?)
}

api_error!(PresetError {
    pass: Restricted, PreconditionFailed, Store;
    kind: NotFound, Conflict;
    said: InvalidSlug, NothingToChange, UnknownModel, TooManyVersions, TooManyPresets;
    at "name": InvalidName;
    at "designated_version_id": UnknownDesignation;
    with |plain|
        PresetError::Workspace(ChooseWorkspaceError::Store(store)) => store.into(),
        PresetError::Workspace(ChooseWorkspaceError::Unknown) => plain.message("workspace_id: workspace not found"),
        error @ PresetError::Workspace(ChooseWorkspaceError::Required) => plain.message(error.to_string());
});

/// `GET …/presets`: lists presets.
pub(crate) const LIST: Route = Route::any_key(Get, "/presets", tags::PRESETS, handler!(handle_list))
    .operation("listPresets", "List presets")
    .description("Last changed first. An inference key lists those of its workspace.")
    .query(&[WORKSPACE, OFFSET, LIMIT])
    .answer(|| BodySchema::page::<PresetView<'_>>("PresetListResponse", "A page of presets."), "The presets");

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let is_narrow = parameters::value(query, "workspace_id")?.is_some() || caller.inference().is_ok();
    let within = if is_narrow {
        ManagementScope::of_one(workspace(call, caller).await?)
    } else {
        let by = caller.authority(|id| call.actor_of(id))?;
        by.check(Right::Read)?;
        by.scope().clone()
    };
    let (presets, total) = call.gateway.services.presets.list(&within, offset, limit).await?;
    Ok(Page::respond(presets.iter().map(PresetView::new).collect(), total))
}

/// `GET …/presets/{slug}`: reads a preset with its designated version.
pub(crate) const GET: Route = Route::any_key(Get, "/presets/{slug}", tags::PRESETS, handler!(handle_get))
    .operation("getPreset", "Get a preset")
    .description("With its designated version.")
    .query(&[PRESET_WORKSPACE])
    .answer(record::response, "The preset");

async fn handle_get(call: &Call<'_>, caller: &Principal) -> Outcome {
    let workspace_id = workspace(call, caller).await?;
    let found = call.gateway.services.presets.get(workspace_id, &call.id()?).await?;
    Ok(record::respond(&found).respond())
}

/// `GET …/presets/{slug}/versions`: lists the versions of a preset.
pub(crate) const LIST_VERSIONS: Route =
    Route::any_key(Get, "/presets/{slug}/versions", tags::PRESETS, handler!(handle_list_versions))
        .operation("listPresetVersions", "List the versions of a preset")
        .description("Oldest first.")
        .query(&[PRESET_WORKSPACE, OFFSET, LIMIT])
        .answer(
            || {
                BodySchema::page::<PresetVersionView<'_>>(
                    "PresetVersionListResponse",
                    "A page of versions of a preset.",
                )
            },
            "The versions",
        );

async fn handle_list_versions(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, presets) = (workspace(call, caller).await?, &call.gateway.services.presets);
    let (slug, mut found) = (call.id()?, None);
    let read = async |offset, limit| {
        let (preset, versions) = presets.list_versions(workspace_id, &slug, offset, limit).await?;
        let total = found.insert(preset).newest_version;
        Ok((versions, total.into()))
    };
    let size = |version: &PresetVersion| ElementSize {
        text: version.text_bytes(),
        structures: version.config.questions.structure_bytes() as u64,
    };
    let (versions, total) = range.read(call, size, read).await?;
    // A read returns a preset or its error.
    let preset = found.ok_or_else(ApiError::not_found)?;
    Ok(Page::respond(versions.iter().map(|version| PresetVersionView::new(&preset, version)).collect(), total))
}

/// `GET …/presets/{slug}/versions/{version}`: reads a version of a preset.
pub(crate) const GET_VERSION: Route =
    Route::any_key(Get, "/presets/{slug}/versions/{version}", tags::PRESETS, handler!(handle_get_version))
        .operation("getPresetVersion", "Get a version of a preset")
        .description("Versions are numbered from 1.")
        .query(&[PRESET_WORKSPACE])
        .answer(
            || BodySchema::data::<PresetVersionView<'_>>("PresetVersionResponse", "One version of a preset."),
            "The version",
        );

async fn handle_get_version(call: &Call<'_>, caller: &Principal) -> Outcome {
    let (workspace_id, presets) = (workspace(call, caller).await?, &call.gateway.services.presets);
    let (preset, version) = presets.get_version(workspace_id, &call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, PresetVersionView::new(&preset, &version)))
}

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

    use super::record::PresetView;
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

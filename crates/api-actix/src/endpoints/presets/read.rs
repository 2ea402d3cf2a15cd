//! Reads presets and their versions.

use domain::authority::ManagementScope;
use domain::preset::PresetVersion;

use super::record::{PresetVersionView, PresetView};
use super::{record, workspace};
use crate::endpoints::guardrails::version_number;
use crate::endpoints::prelude::*;

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

//! Reads presets and their versions.

use domain::authority::{ManagementScope, Right};

use super::record::{PresetVersionView, PresetView};
use super::{describe_name, record, workspace};
use crate::endpoints::guardrails::version_number;
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::{ALL_WORKSPACES, LIST_PARAMETERS, describe_filter};
use crate::http::page::{DEFAULT_LIMIT, PageRange};

/// `GET …/presets`: lists presets.
pub(crate) const LIST: Route = Route::any_key(
    Method::Get,
    "/presets",
    |call, caller, _| Box::pin(handle_list(call, caller)),
    tags::PRESETS,
    describe_list,
);

fn describe_list() -> Operation {
    let body = BodySchema::page::<PresetView<'_>>("PresetListResponse", "A page of presets.");
    let operation = Operation::new("listPresets", "List presets")
        .description("Last changed first. An inference key lists those of its workspace.")
        .parameter(describe_filter(ALL_WORKSPACES));
    PageRange::describe(operation, DEFAULT_LIMIT).answer(body, "The presets", &[400, 404, 409])
}

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    parameters::check_names(query, &LIST_PARAMETERS)?;
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
pub(crate) const GET: Route = Route::any_key(
    Method::Get,
    "/presets/{slug}",
    |call, caller, _| Box::pin(handle_get(call, caller)),
    tags::PRESETS,
    describe_get,
);

fn describe_get() -> Operation {
    let operation = Operation::new("getPreset", "Get a preset").description("With its designated version.");
    describe_name(operation).answer(record::response(), "The preset", &[400, 404, 409])
}

async fn handle_get(call: &Call<'_>, caller: &Principal) -> Outcome {
    parameters::check_names(call.request.query_string(), &["workspace_id"])?;
    let workspace_id = workspace(call, caller).await?;
    let found = call.gateway.services.presets.get(workspace_id, &call.id()?).await?;
    Ok(record::respond(&found).respond())
}

/// `GET …/presets/{slug}/versions`: lists the versions of a preset.
pub(crate) const LIST_VERSIONS: Route = Route::any_key(
    Method::Get,
    "/presets/{slug}/versions",
    |call, caller, _| Box::pin(handle_list_versions(call, caller)),
    tags::PRESETS,
    describe_list_versions,
);

fn describe_list_versions() -> Operation {
    let body =
        BodySchema::page::<PresetVersionView<'_>>("PresetVersionListResponse", "A page of versions of a preset.");
    let operation = Operation::new("listPresetVersions", "List the versions of a preset").description("Oldest first.");
    PageRange::describe(describe_name(operation), DEFAULT_LIMIT).answer(body, "The versions", &[400, 404, 409])
}

async fn handle_list_versions(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    parameters::check_names(query, &LIST_PARAMETERS)?;
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, presets) = (workspace(call, caller).await?, &call.gateway.services.presets);
    let (preset, versions) = presets.list_versions(workspace_id, &call.id()?, offset, limit).await?;
    let data = versions.iter().map(|version| PresetVersionView::new(&preset, version)).collect();
    Ok(Page::respond(data, preset.newest_version.into()))
}

/// `GET …/presets/{slug}/versions/{version}`: reads a version of a preset.
pub(crate) const GET_VERSION: Route = Route::any_key(
    Method::Get,
    "/presets/{slug}/versions/{version}",
    |call, caller, _| Box::pin(handle_get_version(call, caller)),
    tags::PRESETS,
    describe_get_version,
);

fn describe_get_version() -> Operation {
    let body = BodySchema::data::<PresetVersionView<'_>>("PresetVersionResponse", "One version of a preset.");
    let operation = Operation::new("getPresetVersion", "Get a version of a preset")
        .description("Versions are numbered from 1.")
        .parameter(path("version", "The version's number"));
    describe_name(operation).answer(body, "The version", &[400, 404, 409])
}

async fn handle_get_version(call: &Call<'_>, caller: &Principal) -> Outcome {
    parameters::check_names(call.request.query_string(), &["workspace_id"])?;
    let (workspace_id, presets) = (workspace(call, caller).await?, &call.gateway.services.presets);
    let (preset, version) = presets.get_version(workspace_id, &call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, PresetVersionView::new(&preset, &version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_know_the_described_parameters() {
        for describe in [describe_list, describe_list_versions] {
            parameters::assert_known(describe(), |query| parameters::check_names(query, &LIST_PARAMETERS));
        }
        for describe in [describe_get, describe_get_version] {
            parameters::assert_known(describe(), |query| parameters::check_names(query, &["workspace_id"]));
        }
    }
}

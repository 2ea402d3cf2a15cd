//! `tollgate preset …`

use std::process::ExitCode;

use anyhow::Context as _;
use domain::json::Json;
use http::Method;

use super::api::{Api, object, segment, text_at, with_query};
use super::context::read_json;
use crate::cli::{NamedPreset, PresetCommand};
use crate::output::Column;

const COLUMNS: &[Column] = &[
    ("SLUG", "/slug"),
    ("STATUS", "/status"),
    ("UPDATED", "/updated_at"),
    ("DESIGNATED", "/designated_version_id"),
    ("WORKSPACE", "/workspace_id"),
    ("NAME", "/name"),
];

/// Runs a command on presets.
pub async fn run(api: &Api<'_>, command: PresetCommand) -> anyhow::Result<ExitCode> {
    match command {
        PresetCommand::Create { preset, from } => {
            let path = path(api, &preset, "/decisions").await?;
            api.show(&api.call(Method::POST, &path, Some(&read_json(&from)?)).await?)
        }
        PresetCommand::List { workspace } => {
            let workspace = api.optional_workspace(workspace.as_deref()).await?;
            let list = api.list("/presets", &[("workspace_id", workspace.as_deref())]).await?;
            api.show_list(&list, COLUMNS)
        }
        PresetCommand::Show { preset } => api.show(&api.get(&path(api, &preset, "").await?).await?),
        PresetCommand::Designate { preset, version } => {
            let version = api.get(&path(api, &preset, &format!("/versions/{version}")).await?).await?;
            let id = text_at(&version, "/data/id").context("the version has no id")?;
            update(api, &preset, "designated_version_id", &id).await
        }
        PresetCommand::Archive { preset } => update(api, &preset, "status", "archived").await,
    }
}

async fn update(api: &Api<'_>, preset: &NamedPreset, member: &str, value: &str) -> anyhow::Result<ExitCode> {
    let change = object(&[(member, Some(Json::string(value)))]);
    api.show(&api.call(Method::PATCH, &path(api, preset, "").await?, Some(&change)).await?)
}

async fn path(api: &Api<'_>, preset: &NamedPreset, rest: &str) -> anyhow::Result<String> {
    let workspace = api.optional_workspace(preset.workspace.as_deref()).await?;
    let path = format!("/presets/{}{rest}", segment(&preset.slug));
    Ok(with_query(&path, &[("workspace_id", workspace.as_deref())]))
}

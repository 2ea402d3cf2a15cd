//! `tollgate preset …`

use super::context::read_json;
use crate::cli::{NamedPreset, PresetCommand};
use crate::commands::prelude::*;

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
            let created = api.call(Method::POST, &path(&preset, "/decisions"), Some(&read_json(&from)?)).await?;
            // The status stays that of the versions before.
            let is_active = text_at(&created, "/data/status").as_deref() == Some("active");
            let next = if is_active { "ask @preset/{} --from FILE" } else { "preset activate {}" };
            api.show_next(&created, next, "/data/slug")
        }
        PresetCommand::List { workspace } => {
            let list = api.list("/presets", &[("workspace_id", workspace.as_deref())]).await?;
            api.show_list(&list, COLUMNS)
        }
        PresetCommand::Show { preset } => api.show(&api.get(&path(&preset, "")).await?),
        PresetCommand::Designate { preset, version } => {
            let version = api.get(&path(&preset, &format!("/versions/{version}"))).await?;
            let id = text_at(&version, "/data/id").context("the version has no id")?;
            update(api, &preset, "designated_version_id", &id).await
        }
        PresetCommand::Archive { preset } => update(api, &preset, "status", "archived").await,
        PresetCommand::Activate { preset } => update(api, &preset, "status", "active").await,
    }
}

async fn update(api: &Api<'_>, preset: &NamedPreset, member: &str, value: &str) -> anyhow::Result<ExitCode> {
    let change = object(&[(member, Some(Json::string(value)))]);
    api.show(&api.call(Method::PATCH, &path(preset, ""), Some(&change)).await?)
}

fn path(preset: &NamedPreset, rest: &str) -> String {
    let path = format!("/presets/{}{rest}", segment(&preset.slug));
    with_query(&path, &[("workspace_id", preset.workspace.as_deref())])
}

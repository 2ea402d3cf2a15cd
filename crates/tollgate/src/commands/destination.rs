//! `tollgate destination …`

use std::process::ExitCode;

use anyhow::Context as _;
use domain::json::Json;
use http::Method;

use super::api::{Api, elements, number, segment, text_at};
use super::context::{read_json, read_secret};
use crate::cli::{DestinationArgs, DestinationCommand};
use crate::output::{Column, pointer};

const PATH: &str = "/observability/destinations";
const COLUMNS: &[Column] =
    &[("ID", "/id"), ("TYPE", "/type"), ("ENABLED", "/enabled"), ("URL", "/config/url"), ("NAME", "/name")];

/// Runs a command on destinations.
pub async fn run(api: &Api<'_>, command: DestinationCommand) -> anyhow::Result<ExitCode> {
    match command {
        DestinationCommand::Create { fields, workspace } => {
            let workspace = api.optional_workspace(workspace.as_deref()).await?;
            let body = body(&fields, workspace.as_deref())?;
            let created = api.call(Method::POST, PATH, Some(&body)).await?;
            api.show_next(&created, "destination test {}", "/data/id")
        }
        DestinationCommand::Update { id, fields } => {
            api.show(&api.call(Method::PATCH, &path(&id, ""), Some(&body(&fields, None)?)).await?)
        }
        DestinationCommand::Delete { id } => api.show(&api.call(Method::DELETE, &path(&id, ""), None).await?),
        DestinationCommand::List { workspace } => {
            let list = api.list(PATH, &[("workspace_id", workspace.as_deref())]).await?;
            api.show_list(&list, COLUMNS)
        }
        DestinationCommand::Test { id } => api.show(&api.call(Method::POST, &path(&id, "/test"), None).await?),
        DestinationCommand::Retry { id: Some(id) } => {
            api.show(&api.call(Method::POST, &path(&id, "/retry"), None).await?)
        }
        DestinationCommand::Retry { id: None } => retry_all(api).await,
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("{PATH}/{}{rest}", segment(id))
}

/// Retries the dead letters of every destination, and prints their number.
async fn retry_all(api: &Api<'_>) -> anyhow::Result<ExitCode> {
    let mut retried = 0_u64;
    for destination in elements(&api.list(PATH, &[]).await?) {
        let id = text_at(&destination, "/id").context("the destination has no id")?;
        let answer = api.call(Method::POST, &path(&id, "/retry"), None).await?;
        let count = pointer(&answer, "/data/retried_count").or_else(|| pointer(&answer, "/retried_count"));
        retried = retried.saturating_add(count.and_then(|count| count.text().parse().ok()).unwrap_or_default());
    }
    api.show(&Json::object([("retried_count", retried.to_string().as_str())]))
}

/// Returns the members of the file with those of the options.
fn body(args: &DestinationArgs, workspace: Option<&str>) -> anyhow::Result<Json> {
    let file = args.from.as_deref().map(read_json).transpose()?;
    let of_file = |json: Option<Json>| json.and_then(|json| json.members()).unwrap_or_default();
    let secret = args.secret_file.as_deref().map(|file| read_secret("--secret-file", file)).transpose()?;
    let mut config = of_file(file.as_ref().and_then(|file| pointer(file, "/config")));
    set(&mut config, "url", args.endpoint.as_deref().map(Json::string));
    set(&mut config, "secret", secret.as_deref().map(Json::string));
    let mut members = of_file(file);
    let flag = |value: Option<bool>| value.map(|value| number(&value));
    set(&mut members, "name", args.name.as_deref().map(Json::string));
    set(&mut members, "type", args.kind.as_deref().map(Json::string));
    set(&mut members, "enabled", flag(args.enabled));
    set(&mut members, "privacy_mode", flag(args.privacy_mode));
    set(&mut members, "workspace_id", workspace.map(Json::string));
    set(&mut members, "config", (!config.is_empty()).then(|| object_of(&config)));
    Ok(object_of(&members))
}

/// Replaces a member by a value, if there is one.
fn set(members: &mut Vec<(String, Json)>, name: &str, value: Option<Json>) {
    if let Some(value) = value {
        members.retain(|(other, _)| other != name);
        members.push((name.to_owned(), value));
    }
}

fn object_of(members: &[(String, Json)]) -> Json {
    Json::object(members.iter().map(|(name, value)| (name.as_str(), value.text())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn options_have_precedence_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, secret) = (folder.path().join("d.json"), folder.path().join("secret"));
        fs::write(&file, r#"{"name":"a","config":{"url":"http://a","headers":{"x":"y"}},"enabled":true}"#).unwrap();
        fs::write(&secret, "s3cret\n").unwrap();
        let args = DestinationArgs {
            from: Some(file.display().to_string()),
            name: None,
            kind: Some("webhook".to_owned()),
            endpoint: Some("http://b".to_owned()),
            secret_file: Some(secret),
            enabled: Some(false),
            privacy_mode: None,
        };
        let expected = r#"{"name":"a","type":"webhook","enabled":false,"workspace_id":"w","config":{"headers":{"x":"y"},"url":"http://b","secret":"s3cret"}}"#;
        assert_eq!(body(&args, Some("w")).unwrap().text(), expected);
    }
}

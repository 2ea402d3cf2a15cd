//! `tollgate destination …`

use super::context::{read_json, read_secret};
use crate::cli::{DestinationArgs, DestinationCommand};
use crate::commands::prelude::*;

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
            let (path, body) = (path(&id, ""), body(&fields, None)?);
            let Some(config) = pointer(&body, "/config") else {
                return api.show(&api.call(Method::PATCH, &path, Some(&body)).await?);
            };
            let with_config =
                |record: &Json| merged(Some(&body), &object(&[("config", Some(whole_config(record, &config)))]));
            api.show(&api.change(&path, with_config).await?)
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
    let secret = args.secret_file.as_deref().map(|file| read_secret("--secret-file", file)).transpose()?;
    let text = |value: Option<&str>| value.map(Json::string);
    let config = object(&[("url", text(args.endpoint.as_deref())), ("secret", text(secret.as_deref()))]);
    let config = merged(file.as_ref().and_then(|file| pointer(file, "/config")).as_ref(), &config);
    let options = object(&[
        ("name", text(args.name.as_deref())),
        ("type", text(args.kind.as_deref())),
        ("enabled", args.enabled.map(|value| number(&value))),
        ("privacy_mode", args.privacy_mode.map(|value| number(&value))),
        ("workspace_id", text(workspace)),
        ("config", (config.text() != "{}").then_some(config)),
    ]);
    Ok(merged(file.as_ref(), &options))
}

/// Returns the whole connection settings: those of the record, whose masked secrets stay, with the given ones. The URL
/// has two names.
fn whole_config(record: &Json, given: &Json) -> Json {
    let is_moved = pointer(given, "/endpoint").is_some();
    let stored = pointer(record, "/data/config").and_then(|config| config.members()).unwrap_or_default();
    let kept = stored.iter().filter(|(name, _)| name != "endpoint" && !(is_moved && name == "url"));
    merged(Some(&Json::object(kept.map(|(name, value)| (name.as_str(), value.text())))), given)
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

    #[test]
    fn given_settings_have_precedence_over_those_of_the_record() {
        let record = r#"{"data":{"config":{"url":"http://a","endpoint":"http://a","headers":{"x":"********"}}}}"#;
        let record = Json::parse(record).unwrap();
        for (given, expected) in [
            (r#"{"url":"http://b"}"#, r#"{"headers":{"x":"********"},"url":"http://b"}"#),
            (r#"{"endpoint":"http://b"}"#, r#"{"headers":{"x":"********"},"endpoint":"http://b"}"#),
            (r#"{"secret":"s"}"#, r#"{"url":"http://a","headers":{"x":"********"},"secret":"s"}"#),
        ] {
            assert_eq!(whole_config(&record, &Json::parse(given).unwrap()).text(), expected);
        }
    }
}

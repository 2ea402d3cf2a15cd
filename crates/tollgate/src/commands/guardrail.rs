//! `tollgate guardrail …`

use std::collections::BTreeSet;
use std::io::Read;

use super::context::read_json;
use crate::cli::GuardrailCommand;
use crate::commands::prelude::*;

/// The maximum number of unassigned keys that an error lists.
const MAX_NAMED_KEYS: usize = 20;
/// The default name of a guardrail.
const UNNAMED: &str = "unnamed guardrail";
const COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("CREATED", "/created_at"),
    ("VERSION", "/version"),
    ("DEFAULT", "/workspace_default"),
    ("WORKSPACE", "/workspace_id"),
    ("NAME", "/name"),
];
const VERSION_COLUMNS: &[Column] =
    &[("VERSION", "/version"), ("CHANGED", "/changed_at"), ("BY", "/changed_by"), ("NAME", "/guardrail/name")];

/// Runs a command on guardrails.
pub async fn run(api: &Api<'_>, command: GuardrailCommand) -> anyhow::Result<ExitCode> {
    match command {
        GuardrailCommand::Create { name, workspace, from } => create(api, name, workspace.as_deref(), from).await,
        GuardrailCommand::Update { id, from } => {
            api.show(&api.call(Method::PATCH, &path(&id, ""), Some(&read_json(&from)?)).await?)
        }
        GuardrailCommand::List { workspace } => {
            let list = api.list("/guardrails", &[("workspace_id", workspace.as_deref())]).await?;
            api.show_list(&list, COLUMNS)
        }
        GuardrailCommand::Show { id } => api.show(&api.get(&path(&id, "")).await?),
        GuardrailCommand::Versions { id } => {
            api.show_list(&api.list(&path(&id, "/versions"), &[]).await?, VERSION_COLUMNS)
        }
        GuardrailCommand::Restore { id, version } => {
            let restore = path(&id, &format!("/versions/{version}/restore"));
            api.show(&api.call(Method::POST, &restore, None).await?)
        }
        GuardrailCommand::Delete { id } => api.show(&api.call(Method::DELETE, &path(&id, ""), None).await?),
        GuardrailCommand::Assign { id, keys } => assign(api, &id, keys).await,
        GuardrailCommand::Unassign { id, keys } => {
            let keys = keys_body(&find_keys(api, &key_words(keys, std::io::stdin())?).await?);
            api.show(&api.call(Method::POST, &path(&id, "/assignments/keys/remove"), Some(&keys)).await?)
        }
        GuardrailCommand::Explain { id, from, key } => explain(api, &id, &from, key.as_deref()).await,
        GuardrailCommand::Default { id: Some(id), .. } => set_default(api, &id).await,
        GuardrailCommand::Default { id: None, workspace, .. } => clear_default(api, workspace.as_deref()).await,
    }
}

fn path(guardrail: &str, rest: &str) -> String {
    format!("/guardrails/{}{rest}", segment(guardrail))
}

/// The name of the command line has precedence over the record's; the default name comes last.
async fn create(
    api: &Api<'_>,
    name: Option<String>,
    workspace: Option<&str>,
    from: Option<String>,
) -> anyhow::Result<ExitCode> {
    let record = from.map(|file| read_json(&file)).transpose()?;
    let mut members = match &record {
        Some(record) => record.members().context("a guardrail must be a JSON object")?,
        None => Vec::new(),
    };
    let has_name = members.iter().any(|(member, _)| member == "name");
    let name = name.or_else(|| (!has_name).then(|| UNNAMED.to_owned()));
    let workspace = api.optional_workspace(workspace).await?;
    for (member, value) in [("name", name), ("workspace_id", workspace)] {
        let Some(value) = value else { continue };
        members.retain(|(other, _)| other != member);
        members.push((member.to_owned(), Json::string(&value)));
    }
    let body = Json::object(members.iter().map(|(name, value)| (name.as_str(), value.text())));
    let created = api.call(Method::POST, "/guardrails", Some(&body)).await?;
    api.show_next(&created, "guardrail assign {} KEY", "/data/id")
}

async fn assign(api: &Api<'_>, id: &str, words: Vec<String>) -> anyhow::Result<ExitCode> {
    let keys = find_keys(api, &key_words(words, std::io::stdin())?).await?;
    let assigned = api.call(Method::POST, &path(id, "/assignments/keys"), Some(&keys_body(&keys))).await?;
    api.show(&assigned)?;
    let count = pointer(&assigned, "/assigned_count").map(|count| count.text().to_owned());
    if count.as_deref() == Some(keys.len().to_string().as_str()) {
        return Ok(ExitCode::SUCCESS);
    }
    let missed = keys_without(api, id, &keys).await?;
    for key in missed.iter().take(MAX_NAMED_KEYS) {
        note(&format!("error: {key} was not assigned: it is not an active inference key of the guardrail's workspace"));
    }
    if missed.len() > MAX_NAMED_KEYS {
        note(&format!("error: {} more keys were not assigned", missed.len() - MAX_NAMED_KEYS));
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the keys that the guardrail does not have.
async fn keys_without<'a>(api: &Api<'_>, id: &str, keys: &'a BTreeSet<String>) -> anyhow::Result<Vec<&'a String>> {
    let guardrail = api.get(&path(id, "")).await?;
    let with = api.list("/keys", &[("guardrail_id", text_at(&guardrail, "/data/id").as_deref())]).await?;
    let with = elements(&with);
    let names: BTreeSet<String> =
        with.iter().flat_map(|key| [text_at(key, "/id"), text_at(key, "/hash")]).flatten().collect();
    Ok(keys.iter().filter(|key| !names.contains(*key)).collect())
}

/// Returns the ids or hashes of keys.
async fn find_keys(api: &Api<'_>, words: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let mut keys = BTreeSet::new();
    for (index, word) in words.iter().enumerate() {
        let key = api.key(word).await;
        keys.insert(key.with_context(|| format!("the key number {} cannot be used", index + 1))?);
    }
    Ok(keys)
}

fn keys_body(keys: &BTreeSet<String>) -> Json {
    let keys: Vec<Json> = keys.iter().map(|key| Json::string(key)).collect();
    object(&[("key_hashes", Some(Json::array(keys.iter().map(Json::text))))])
}

/// Returns the words, with those of `input` in the place of `-`.
fn key_words(words: Vec<String>, mut input: impl Read) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::with_capacity(words.len());
    for word in words {
        if word == "-" {
            let mut text = String::new();
            input.read_to_string(&mut text).context("cannot read standard input")?;
            texts.extend(text.split_whitespace().map(str::to_owned));
        } else {
            texts.push(word);
        }
    }
    ensure!(!texts.is_empty(), "no keys given");
    Ok(texts)
}

async fn set_default(api: &Api<'_>, id: &str) -> anyhow::Result<ExitCode> {
    let guardrail = api.get(&path(id, "")).await?;
    let workspace = text_at(&guardrail, "/data/workspace_id").context("the guardrail has no workspace")?;
    change_default(api, &workspace, text_at(&guardrail, "/data/id").as_deref().map(Json::string)).await
}

async fn clear_default(api: &Api<'_>, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let workspace = match workspace {
        Some(workspace) => workspace.to_owned(),
        None => api.default_workspace().await?,
    };
    change_default(api, &workspace, Some(null())).await
}

async fn change_default(api: &Api<'_>, workspace: &str, guardrail: Option<Json>) -> anyhow::Result<ExitCode> {
    let workspace = format!("/workspaces/{}", segment(workspace));
    let body = object(&[("default_guardrail_id", guardrail)]);
    api.show(&api.call(Method::PATCH, &workspace, Some(&body)).await?)
}

/// Explains what a guardrail would do with a request. Nothing is sent, held or charged.
async fn explain(api: &Api<'_>, id: &str, from: &str, key: Option<&str>) -> anyhow::Result<ExitCode> {
    let request = read_json(from)?;
    let key = match key {
        Some(key) => Some(api.key(key).await?),
        None => None,
    };
    let body = object(&[("key_hash", key.as_deref().map(Json::string)), ("body", Some(request))]);
    api.show(&api.call(Method::POST, &path(id, "/explain"), Some(&body)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_merge_arguments_and_standard_input() {
        let words = key_words(vec!["b".to_owned(), "-".to_owned()], &b"a\n c\n"[..]).unwrap();
        assert_eq!(words, ["b", "a", "c"]);
        assert!(key_words(vec!["-".to_owned()], &b""[..]).is_err());
    }
}

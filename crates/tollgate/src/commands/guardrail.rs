//! `tollgate guardrail …`

use std::collections::BTreeSet;
use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use api_actix::{ExplanationView, GuardrailVersionView, GuardrailView, read_decision_request};
use domain::api_key::KeyReference;
use domain::change::Change;
use domain::decision::ExplainGuardrailError;
use domain::guardrail::{GuardrailDraft, GuardrailError, ManageGuardrails, PlacedGuardrail};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::json::Json;

use super::Context;
use super::context::read_input;
use super::references::{find_key, find_keys};
use crate::cli::GuardrailCommand;
use crate::output::{indent, note, table};
use crate::view::{
    AssignmentView, CreatedGuardrail, DefaultGuardrail, Deleted, GuardrailVersions, List, ShownGuardrail,
    UnassignmentView, explanation_text, time,
};
use crate::wiring::{Stores, explain_guardrail};

/// The maximum number of unassigned keys that an error lists.
const MAX_NAMED_KEYS: usize = 20;
/// The default name of a guardrail.
const UNNAMED: &str = "unnamed guardrail";

/// Runs a command on guardrails.
pub async fn run(context: &Context, command: GuardrailCommand) -> anyhow::Result<ExitCode> {
    match command {
        GuardrailCommand::Create { name, workspace, from } => create(context, name, workspace.as_deref(), from).await,
        GuardrailCommand::Update { id, from } => update(context, &id, &from).await,
        GuardrailCommand::List { workspace } => list(context, workspace.as_deref()).await,
        GuardrailCommand::Show { id } => show(context, &id).await,
        GuardrailCommand::Versions { id } => versions(context, &id).await,
        GuardrailCommand::Restore { id, version } => restore(context, &id, version).await,
        GuardrailCommand::Delete { id } => delete(context, &id).await,
        GuardrailCommand::Assign { id, keys } => assign(context, &id, keys).await,
        GuardrailCommand::Unassign { id, keys } => unassign(context, &id, keys).await,
        GuardrailCommand::Explain { id, from, key } => explain(context, &id, &from, key.as_deref()).await,
        GuardrailCommand::Default { id: Some(id), .. } => set_default(context, &id).await,
        GuardrailCommand::Default { id: None, workspace, .. } => clear_default(context, workspace.as_deref()).await,
    }
}

async fn open(context: &Context) -> anyhow::Result<(Stores, ManageGuardrails)> {
    let stores = context.stores().await?;
    let ports = stores.manage_guardrails(&context.config).await?;
    Ok((stores, ports))
}

async fn create(
    context: &Context,
    name: Option<String>,
    workspace: Option<&str>,
    from: Option<String>,
) -> anyhow::Result<ExitCode> {
    let record = from.map(|file| record(&file)).transpose()?;
    let mut draft = named_draft(name, record.as_ref())?;
    let (stores, ports) = open(context).await?;
    if workspace.is_some() || draft.workspace_id().is_none() {
        draft = draft.in_workspace(context.workspace(&stores, workspace).await?);
    }
    let made = ports.create(&Change::plain(&context.authority()), &draft).await.map_err(describe_error)?.guardrail;
    let view = CreatedGuardrail { id: made.id.to_string(), name: made.name.as_str().to_owned() };
    context.output.show(&view, || format!("Created the guardrail {} ({}).", view.id, view.name))
}

/// Returns the draft of a record. The command line's name has precedence over the record's; the default name comes
/// last.
fn named_draft(name: Option<String>, record: Option<&Json>) -> anyhow::Result<GuardrailDraft> {
    let Some(record) = record else { return Ok(GuardrailDraft::named(name.unwrap_or_else(|| UNNAMED.to_owned()))) };
    let Some(mut members) = record.members() else { bail!("a guardrail must be a JSON object") };
    let name = match name {
        Some(name) => {
            members.retain(|(member, _)| member != "name");
            Some(name)
        }
        None => members.iter().all(|(member, _)| member != "name").then(|| UNNAMED.to_owned()),
    };
    members.extend(name.map(|name| ("name".to_owned(), Json::string(&name))));
    let record = Json::object(members.iter().map(|(name, value)| (name.as_str(), value.text())));
    GuardrailDraft::read(&record).map_err(GuardrailError::from).map_err(describe_error)
}

async fn update(context: &Context, id: &str, from: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let draft = GuardrailDraft::read(&record(from)?).map_err(GuardrailError::from).map_err(describe_error)?;
    let (stores, ports) = open(context).await?;
    let changed = ports.update(&Change::plain(&context.authority()), &id.to_string(), &draft).await;
    show_guardrail(context, &stores, &changed.map_err(|error| describe_error_of(error, id))?).await
}

/// Reads a record from a file or, for `-`, from standard input.
fn record(file: &str) -> anyhow::Result<Json> {
    let (text, name) = read_input(file)?;
    Json::parse(&text).with_context(|| format!("{name} cannot be used"))
}

async fn list(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let (stores, ports) = open(context).await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let page = ports.list(&context.authority(), Some(workspace), 0, usize::MAX).await.map_err(describe_error)?;
    let list = List { data: page.guardrails.iter().map(GuardrailView::new).collect::<Vec<_>>() };
    context.output.show(&list, || {
        let rows: Vec<[String; 5]> = page.guardrails.iter().map(row).collect();
        table(["ID", "CREATED", "VERSION", "DEFAULT", "NAME"], &rows)
    })
}

fn row(placed: &PlacedGuardrail) -> [String; 5] {
    let guardrail = &placed.guardrail;
    [
        guardrail.id.to_string(),
        time(guardrail.created_at),
        guardrail.version.to_string(),
        if placed.workspace_default { "default" } else { "" }.to_owned(),
        guardrail.name.as_str().to_owned(),
    ]
}

async fn show(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let (stores, ports) = open(context).await?;
    let found = ports.get(&context.authority(), &id.to_string()).await.map_err(|error| describe_error_of(error, id))?;
    show_guardrail(context, &stores, &found).await
}

async fn show_guardrail(context: &Context, stores: &Stores, placed: &PlacedGuardrail) -> anyhow::Result<ExitCode> {
    let key_count = stores.guardrails.count_keys(placed.guardrail.id).await?;
    let view = ShownGuardrail { record: GuardrailView::new(placed), key_count };
    let text = serde_json::to_string(&view)?;
    context.output.show(&view, || indent(&text))
}

async fn versions(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let (_, ports) = open(context).await?;
    let found = ports
        .list_versions(&context.authority(), &id.to_string())
        .await
        .map_err(|error| describe_error_of(error, id))?;
    let view = GuardrailVersions { data: found.iter().map(GuardrailVersionView::new).collect() };
    context.output.show(&view, || {
        let row = |version: &domain::guardrail::GuardrailVersion| {
            let guardrail = &version.guardrail;
            let name = guardrail.name.as_str().to_owned();
            [guardrail.version.to_string(), time(version.changed_at), version.changed_by.clone(), name]
        };
        table(["VERSION", "CHANGED", "BY", "NAME"], &found.iter().map(row).collect::<Vec<_>>())
    })
}

async fn restore(context: &Context, id: &str, version: u32) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let (stores, ports) = open(context).await?;
    let restored = ports.restore_version(&Change::plain(&context.authority()), &id.to_string(), version).await;
    let restored = restored.map_err(|error| match error {
        GuardrailError::UnknownVersion => anyhow::anyhow!("the guardrail {id} has no version {version}"),
        other => describe_error_of(other, id),
    })?;
    show_guardrail(context, &stores, &restored).await
}

async fn delete(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let (_, ports) = open(context).await?;
    let deleted = ports.delete(&Change::plain(&context.authority()), &id.to_string()).await;
    deleted.map_err(|error| describe_error_of(error, id))?;
    let document = Deleted { id: &id.to_string(), deleted: true };
    context.output.show(&document, || format!("The guardrail {id} is deleted."))
}

async fn assign(context: &Context, id: &str, words: Vec<String>) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let words = key_words(words, std::io::stdin())?;
    let stores = context.stores().await?;
    let keys = find_keys(&stores, &words).await?;
    let Some(assigned_count) = stores.guardrails.assign_keys(id, &keys, &context.actor()).await? else {
        bail!("guardrail {id} not found")
    };
    context.output.show(&AssignmentView { assigned_count }, || {
        format!("{assigned_count} of {} keys assigned to the guardrail {id}.", keys.len())
    })?;
    let distinct = keys.iter().collect::<BTreeSet<_>>().len() as u64;
    let missed = if assigned_count == distinct { BTreeSet::new() } else { keys_without(&stores, id, &keys).await? };
    for key in missed.iter().take(MAX_NAMED_KEYS) {
        note(&format!("error: {key} was not assigned: it is not an active inference key of the guardrail's workspace"));
    }
    if missed.len() > MAX_NAMED_KEYS {
        note(&format!("error: {} more keys were not assigned", missed.len() - MAX_NAMED_KEYS));
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the given keys without a guardrail, without duplicates.
async fn keys_without<'a>(
    stores: &Stores,
    id: GuardrailId,
    keys: &'a [KeyReference],
) -> anyhow::Result<BTreeSet<&'a KeyReference>> {
    let mut without = BTreeSet::new();
    for key in keys {
        let found = stores.keys.find(key).await?;
        if found.is_none_or(|found| found.guardrail_id != Some(id)) {
            without.insert(key);
        }
    }
    Ok(without)
}

async fn unassign(context: &Context, id: &str, words: Vec<String>) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let words = key_words(words, std::io::stdin())?;
    let stores = context.stores().await?;
    let keys = find_keys(&stores, &words).await?;
    let Some(unassigned_count) = stores.guardrails.remove_keys(id, &keys, &context.actor()).await? else {
        bail!("guardrail {id} not found")
    };
    context.output.show(&UnassignmentView { unassigned_count }, || {
        format!("{unassigned_count} of {} keys removed from the guardrail {id}.", keys.len())
    })
}

async fn set_default(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let id = parse_id(id)?;
    let (stores, ports) = open(context).await?;
    let set = ports.set_default(&context.authority(), &id.to_string()).await;
    set.map_err(|error| describe_error_of(error, id))?;
    let Some(guardrail) = stores.guardrails.find(id).await? else { bail!("guardrail {id} not found") };
    show_default_guardrail(context, guardrail.workspace_id, Some(id))
}

async fn clear_default(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let (stores, ports) = open(context).await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let cleared = ports.clear_default(&context.authority(), Some(workspace)).await;
    show_default_guardrail(context, cleared.map_err(describe_error)?, None)
}

fn show_default_guardrail(
    context: &Context,
    workspace: WorkspaceId,
    guardrail: Option<GuardrailId>,
) -> anyhow::Result<ExitCode> {
    let view = DefaultGuardrail {
        workspace_id: workspace.to_string(),
        default_guardrail_id: guardrail.map(|id| id.to_string()),
    };
    context.output.show(&view, || match guardrail {
        Some(id) => format!("The guardrail {id} is the default of the workspace {workspace}."),
        None => format!("The workspace {workspace} has no default guardrail."),
    })
}

/// Converts an error to a message: an error of the record as a whole has no path.
fn describe_error(error: GuardrailError) -> anyhow::Error {
    match error {
        GuardrailError::Invalid(invalid) if invalid.path.is_empty() => anyhow::anyhow!(invalid.fault),
        other => other.into(),
    }
}

/// Converts an error to a message that names the guardrail.
fn describe_error_of(error: GuardrailError, id: GuardrailId) -> anyhow::Error {
    match error {
        GuardrailError::UnknownGuardrail => anyhow::anyhow!("guardrail {id} not found"),
        other => describe_error(other),
    }
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
    if texts.is_empty() {
        bail!("no keys given");
    }
    Ok(texts)
}

fn parse_id(text: &str) -> anyhow::Result<GuardrailId> {
    text.parse().with_context(|| format!("{text:?} cannot be used"))
}

/// Explains what a guardrail would do with a request. Nothing is sent, held or charged.
async fn explain(context: &Context, id: &str, from: &str, key: Option<&str>) -> anyhow::Result<ExitCode> {
    let (body, name) = read_input(from)?;
    let request = read_decision_request(&body, context.config.limits.draft_bounds)
        .map_err(|fault| anyhow!("{name} cannot be used: {fault}"))?;
    let stores = context.stores_with_folded_journals().await?;
    let key = match key {
        Some(key) => Some(find_key(&stores, key).await?.to_string()),
        None => None,
    };
    let explain = explain_guardrail(&context.config, &stores).await?;
    let explanation = explain.execute(&context.authority(), id, key.as_deref(), &request).await;
    let explanation = explanation.map_err(|error| match error {
        ExplainGuardrailError::UnknownGuardrail => anyhow!("guardrail {id} not found"),
        other => other.into(),
    });
    let explanation = explanation.context("the request cannot be explained")?;
    let view = ExplanationView::new(&explanation);
    context.output.show(&view, || explanation_text(&explanation))
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

    #[test]
    fn named_draft_prefers_name_of_command_line() {
        let name = |name: Option<&str>, record: Option<&str>| {
            let record = record.map(|text| Json::parse(text).unwrap());
            let draft = named_draft(name.map(str::to_owned), record.as_ref()).map_err(|error| error.to_string())?;
            Ok::<_, String>(draft.name().unwrap().to_owned())
        };
        assert_eq!(name(None, None).unwrap(), UNNAMED);
        assert_eq!(name(Some("a"), None).unwrap(), "a");
        assert_eq!(name(None, Some("{}")).unwrap(), UNNAMED);
        assert_eq!(name(None, Some(r#"{"name":"b"}"#)).unwrap(), "b");
        assert_eq!(name(Some("a"), Some(r#"{"name":"b","limit_usd":null}"#)).unwrap(), "a");
        assert_eq!(name(None, Some("[]")).unwrap_err(), "a guardrail must be a JSON object");
        assert!(name(None, Some(r#"{"name":"b","name":"c"}"#)).unwrap_err().contains("more than once"));
    }
}

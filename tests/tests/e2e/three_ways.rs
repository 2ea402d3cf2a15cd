//! Every command that is a client has one outcome over the socket of a server, by `--url`, and without a server.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Instance, Report, Upstream, record};

use crate::catalogue::row;
use crate::gateway::QUESTIONS;

/// The ways in which a command succeeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Succeeds {
    Always,
    /// Not by `--url`: a management key reads neither containers nor content.
    ForOperator,
    WithServer,
    Never,
}
use Succeeds::{Always, ForOperator, Never, WithServer};

/// The ways of a command.
const WAYS: [&str; 3] = ["alone", "socket", "url"];

/// Each command with a name for the id in its answer, in the order of their calls. `{way}` is another word in each way.
pub const COMMANDS: &[(&str, &str, Succeeds)] = &[
    ("status", "", WithServer),
    ("endpoint list --model sandbox/decider", "", Always),
    ("provider test sandbox", "", Always),
    ("workspace create --name {way}", "{workspace}", Always),
    ("workspace list", "", Always),
    ("workspace show {way}", "", Always),
    ("workspace rename {workspace} --name {way}-renamed", "", Always),
    ("workspace credit {workspace} --add-usd 5", "", Always),
    ("workspace unlimited {workspace}", "", Always),
    ("workspace budget {workspace} --daily 1", "", Always),
    ("workspace rates {workspace} --rpm 60", "", Always),
    ("workspace suspend {workspace}", "", Always),
    ("workspace resume {workspace}", "", Always),
    ("key create --name {way} --workspace {workspace} --limit-usd 1.50 --limit-reset daily", "{key}", Always),
    ("key show {way}", "", Always),
    ("key list --workspace {workspace}", "", Always),
    ("key update {key} --rpm 7 --no-limit", "", Always),
    ("key disable {key}", "", Always),
    ("key enable {key}", "", Always),
    ("key rotate {way}", "", Always),
    ("key create --management --name {way}-ops --access read --workspace {workspace}", "{ops}", Always),
    ("key update {ops} --access keys --all-workspaces", "", Always),
    ("key list --management", "", Always),
    ("key show {way}-nobody", "", Never),
    ("key update {key} --limit-usd 1 --limit-reset monthly --expires-at 2020-01-01", "", Never),
    ("workspace delete default", "", Never),
    ("workspace budget {workspace} --weekly 0.5", "", Never),
    ("key delete {ops}", "", Always),
    ("catalogue import rows.json --dry-run", "", Always),
    ("catalogue import rows.json", "", Always),
    ("catalogue import rows.json --replace --yes", "", Always),
    ("catalogue list --output-modalities text", "", Always),
    ("catalogue show acme/one", "", Always),
    ("usage list --workspace default", "", Always),
    ("usage list --provider sandbox --status completed --since 2020-01-01", "", Always),
    ("usage show {decision}", "", Always),
    ("usage sum --by model", "", Always),
    ("usage sum --by workspace", "", Always),
    ("usage sum --by provider", "", Always),
    ("usage sum --by user", "", Always),
    ("usage sum --by reason --key {way}", "", Always),
    ("audit list --action key. --limit 2", "", Always),
    ("guardrail create --name {way} --workspace {workspace}", "{guardrail}", Always),
    ("guardrail create --from rules.json --name {way}-copy --workspace {workspace}", "{copy}", Always),
    ("guardrail delete {copy}", "", Always),
    ("guardrail list --workspace {workspace}", "", Always),
    ("guardrail update {guardrail} --from rules.json", "", Always),
    ("guardrail show {guardrail}", "", Always),
    ("guardrail versions {guardrail}", "", Always),
    ("guardrail restore {guardrail} 1", "", Always),
    ("guardrail assign {guardrail} {way}", "", Always),
    ("guardrail explain {guardrail} --from body.json", "", Always),
    ("guardrail unassign {guardrail} {key}", "", Always),
    ("guardrail default {guardrail}", "", Always),
    ("guardrail default --none --workspace {workspace}", "", Always),
    ("guardrail delete {guardrail}", "", Always),
    ("container put {way} b.txt rows.json", "", Always),
    ("preset create {way} --from preset.json --workspace {workspace}", "", Always),
    ("preset create {way} --from preset.json --workspace {workspace}", "", Always),
    ("preset list --workspace {workspace}", "", Always),
    ("preset show {way} --workspace {workspace}", "", Always),
    ("preset designate {way} 1 --workspace {workspace}", "", Always),
    ("labels import labels.jsonl --source reference", "", Always),
    ("labels versions {decision} refund", "", Always),
    ("labels export {way} --workspace {workspace} --output {way}.labels", "", Always),
    ("preset archive {way} --workspace {workspace}", "", Always),
    ("preset activate {way} --workspace {workspace}", "", Always),
    ("container list {way}", "", ForOperator),
    ("container get {way} a.txt --output {way}.file", "", ForOperator),
    ("container rm {way} a.txt", "", ForOperator),
    ("document list", "", Always),
    ("document get {document} --output {way}.document", "", ForOperator),
    ("document rm {document}", "", Always),
    ("destination create --from destination.json --name {way} --workspace {workspace}", "{destination}", Always),
    ("destination list --workspace {workspace}", "", Always),
    ("destination update {destination} --enabled false", "", Always),
    ("destination test {destination}", "", Always),
    ("destination retry {destination}", "", Always),
    ("destination delete {destination}", "", Always),
    ("key delete {key}", "", Always),
    ("workspace delete {workspace} --with keys,presets,container_files", "", Always),
];

/// The commands that are no clients: they need the machine or a stopped server, or send requests of an application.
const OTHERS: &[&str] = &[
    "ask MODEL",
    "audit verify",
    "backup FILE",
    "completions SHELL",
    "config check",
    "config init",
    "demo",
    "doctor",
    "eval report",
    "eval run",
    "journal forget",
    "journal list",
    "migrate status",
    "migrate up",
    "openapi",
    "provider add",
    "restore FILE",
    "serve",
    "store copy",
];

/// Returns the first word of a command, with the second one if that is no option.
pub fn name(command: &str) -> String {
    command.split(' ').take(2).filter(|word| !word.starts_with(['-', '['])).collect::<Vec<_>>().join(" ")
}

/// Every command of docs/cli.md is in one of the tables.
#[test]
fn tables_have_the_commands_of_the_documentation() -> Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let page = std::fs::read_to_string(page)?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented = rows.flat_map(|cell| cell.split("`, `")).map(|command| command.trim_matches(['`', ' ', '|']));
    let is_command = |command: &&str| command.starts_with(|first: char| first.is_ascii_lowercase());
    let documented: BTreeSet<String> = documented.filter(is_command).map(name).collect();
    let tested = COMMANDS.iter().map(|(command, ..)| name(command)).chain(OTHERS.iter().map(|name| (*name).to_owned()));
    let tested: BTreeSet<String> = tested.collect();
    let difference: Vec<&String> = documented.symmetric_difference(&tested).collect();
    ensure!(difference.is_empty(), "documented or tested only: {difference:?}");
    Ok(())
}

/// Members that differ between runs by themselves: places in a log, hashes, durations, sizes of stores.
const VARYING: [&str; 17] = [
    "created_at",
    "health",
    "at",
    "number",
    "hash",
    "previous_hash",
    "state",
    "source",
    "version",
    "key",
    "label",
    "latency_ms",
    "etag",
    "id",
    "storage_used_bytes",
    "first_id",
    "last_id",
];
/// The documents of the runs before are deleted, and `status` has only times and counts.
const SHRINKING: [&str; 2] = ["document list", "status"];

/// Returns a document without what differs between runs: [`VARYING`], ids, times and secrets in texts, and the word of the
/// way.
fn comparable(value: &Value, way: &str) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !VARYING.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), comparable(value, way))).collect()
        }
        Value::Array(elements) => elements.iter().map(|element| comparable(element, way)).collect(),
        Value::String(text) => {
            let is_word = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_' | ':' | '.');
            let words = text.split_inclusive(|byte| !is_word(byte));
            words.map(|word| stable(word, way)).collect::<String>().into()
        }
        _ => value.clone(),
    }
}

/// Returns a word without the way, or a sign in place of an id, a hash, a secret or a time.
fn stable(word: &str, way: &str) -> String {
    let is_id = word.len() >= 20 && word.bytes().any(|byte| byte.is_ascii_digit());
    match word.strip_prefix(way) {
        _ if word.starts_with("user:") || word.starts_with("key:") => "{caller}".to_owned(),
        _ if is_id => "#".to_owned(),
        Some(rest) if !rest.starts_with(|first: char| first.is_alphanumeric()) => format!("{{way}}{rest}"),
        _ => word.to_owned(),
    }
}

/// The outcome of a command: whether it succeeded, its document, and its messages.
type Outcome = (&'static str, bool, Value, String);

/// Runs the commands in one way; returns their outcomes, and the entries of the audit log with the kinds of actors.
async fn outcomes(
    instance: &Instance,
    way: &str,
    options: &[&str],
    (document, decision): (&str, &str),
) -> Result<(Vec<Outcome>, Vec<String>)> {
    let before = entries(instance).await?.len();
    let given = [("{way}", way), ("{document}", document), ("{decision}", decision)];
    let mut names: Vec<(&str, String)> = given.map(|(name, value)| (name, value.to_owned())).into();
    let mut found = Vec::new();
    for (command, id, _) in COMMANDS {
        let command_line = names.iter().fold((*command).to_owned(), |line, (name, value)| line.replace(name, value));
        let arguments: Vec<&str> = command_line.split(' ').chain(options.iter().copied()).chain(["--json"]).collect();
        let output = instance.run(&arguments).await?;
        let printed = if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout)? };
        let printed = record(printed);
        if !id.is_empty() {
            let value = printed["id"].as_str().with_context(|| format!("{command_line}, {way}: {printed}"))?;
            names.push((id, value.to_owned()));
        }
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(!told.contains("panicked"), "{command_line}: {told}");
        let said =
            if output.status.success() { String::new() } else { comparable(&json!(told.trim()), way).to_string() };
        let is_shrinking = SHRINKING.contains(&name(command).as_str());
        let document = if is_shrinking { Value::Null } else { comparable(&printed, way) };
        found.push((*command, output.status.success(), document, said));
    }
    let mut entries = entries(instance).await?;
    entries.truncate(entries.len() - before);
    // Denied calls are counted later.
    entries.retain(|entry| entry["action"] != "request.denied");
    for entry in &mut entries {
        let kind = entry["actor"].as_str().and_then(|actor| actor.split(':').next()).unwrap_or_default();
        entry["actor"] = format!("by {kind}").into();
    }
    Ok((found, entries.iter().map(|entry| comparable(entry, way).to_string()).collect()))
}

/// Returns the entries of the audit log, the newest first.
async fn entries(instance: &Instance) -> Result<Vec<Value>> {
    let log = instance.json(&["audit", "list", "--limit", "1000"]).await?;
    Ok(log["data"].as_array().cloned().unwrap_or_default())
}

/// Promotes a file for each way, and labels a decision; returns the ids of the documents and of the decision.
async fn documents(instance: &Instance) -> Result<(Vec<String>, String)> {
    let key = instance.inference_key().await?;
    let server = instance.serve().await?;
    let mut ids = Vec::new();
    for path in WAYS {
        let file = instance.put("documents", path, b"content").await?;
        let document = server.promote(&key.secret, "documents", &file).await?.ok()?;
        ids.push(document["id"].as_str().context("no id")?.to_owned());
    }
    instance.json(&["preset", "create", "labelled", "--from", "preset.json"]).await?;
    let body = r#"{"model":"@preset/labelled","state":"It smokes.","questions":{}}"#;
    let answer = server.decide(&key.secret, body).await?.ok()?;
    let decision = answer["id"].as_str().context("no id")?.to_owned();
    let label = json!({"generation_id": decision, "question": "refund", "label": true, "source": "human"});
    std::fs::write(instance.path().join("first.jsonl"), label.to_string())?;
    instance.json(&["labels", "import", "first.jsonl"]).await?;
    server.stop().await?;
    Ok((ids, decision))
}

#[tokio::test]
async fn command_has_one_outcome_in_three_ways() -> Result<()> {
    let receiver = Upstream::start(Behaviour::json("{}")).await?;
    let instance = Instance::new("[egress]\nallow_private_addresses = true\n")?;
    let management = instance.management_key().await?;
    for (file, content) in [
        ("key", management.secret.clone()),
        ("labels.jsonl", String::new()),
        ("rows.json", json!([row("acme/one", "acme/one", "text")]).to_string()),
        ("rules.json", json!({"description": "of a file"}).to_string()),
        ("body.json", format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS},"state":"s"}}"#)),
        ("preset.json", format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#)),
        (
            "destination.json",
            json!({"type": "webhook", "config": {"url": receiver.base_url(), "secret": "a-very-long-signing-secret"}})
                .to_string(),
        ),
    ] {
        std::fs::write(instance.path().join(file), content)?;
    }
    let (documents, decision) = documents(&instance).await?;
    let workspace = instance.default_workspace().await?;
    for way in WAYS {
        std::fs::write(instance.container_file(&workspace, way, "a.txt")?, "x")?;
    }
    // The first import removes the rows of the first start.
    instance.json(&["catalogue", "import", "rows.json", "--replace", "--yes"]).await?;
    let (alone, noted_alone) = outcomes(&instance, WAYS[0], &[], (&documents[0], &decision)).await?;
    let server = instance.serve().await?;
    let (socket, noted) = outcomes(&instance, WAYS[1], &[], (&documents[1], &decision)).await?;
    let url = format!("http://{}/api/v1", server.address());
    let options = ["--url", &url, "--key-file", "key"];
    let (by_url, noted_by_url) = outcomes(&instance, WAYS[2], &options, (&documents[2], &decision)).await?;

    let mut report = Report::default();
    let ways = alone.iter().zip(&socket).zip(&by_url).zip(COMMANDS);
    for (((alone, socket), by_url), (command, _, succeeds)) in ways {
        let succeeded = (alone.1, socket.1, by_url.1);
        let succeeds_somewhere = *succeeds != Never;
        let expected = (
            succeeds_somewhere && *succeeds != WithServer,
            succeeds_somewhere,
            succeeds_somewhere && *succeeds != ForOperator,
        );
        let is_same = match succeeds {
            WithServer => socket.2 == by_url.2,
            ForOperator => alone.2 == socket.2,
            Always | Never => {
                (&alone.2, &alone.3) == (&socket.2, &socket.3) && (&socket.2, &socket.3) == (&by_url.2, &by_url.3)
            }
        };
        let differs = || Err(anyhow::anyhow!("{succeeded:?}: {alone:?}, {socket:?}, {by_url:?}"));
        report.case(command, if succeeded == expected && is_same { Ok(()) } else { differs() });
    }
    report.finish()?;
    ensure!(
        noted == noted_alone && noted.iter().all(|entry| entry.contains(r#""actor":"by user""#)),
        "{noted_alone:?}, {noted:?}"
    );
    let expected: Vec<String> = noted.iter().map(|entry| entry.replace("by user", "by key")).collect();
    ensure!(noted_by_url == expected, "{noted_by_url:?} instead of {expected:?}");

    let said = instance.refused(&["key", "list", "--url", &url]).await?;
    ensure!(said.contains("TOLLGATE_MANAGEMENT_KEY"), "{said}");
    server.stop().await?;
    let said = instance.refused(&["key", "list", "--url", &url, "--key-file", "key"]).await?;
    ensure!(said.contains("the server did not answer"), "{said}");
    Ok(())
}

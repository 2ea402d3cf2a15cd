//! Commands on a full disk: each fails with one sentence, and nothing is half done.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Instance, Report, Server, Upstream};

use crate::full_disk::SmallDisk;
use crate::gateway::QUESTIONS;
use crate::three_ways::{COMMANDS, name};

/// Commands that write to the database or to the blob store.
const WRITES: &[&str] = &[
    "key create --name new --allow-duplicate",
    "key update app --rpm 7",
    "key rotate app",
    "key disable app",
    "key enable app",
    "key delete app",
    "workspace create --name new",
    "workspace rename team --name other",
    "workspace credit team --add-usd 5",
    "workspace unlimited team",
    "workspace budget team --daily 1",
    "workspace rates team --rpm 60",
    "workspace suspend team",
    "workspace resume team",
    "workspace delete team",
    "guardrail create --name new",
    "guardrail update {guardrail} --from rules.json",
    "guardrail restore {guardrail} 1",
    "guardrail assign {guardrail} app",
    "guardrail unassign {guardrail} app",
    "guardrail default {guardrail}",
    "guardrail default --none",
    "guardrail delete {guardrail}",
    "preset create triage --from preset.json",
    "preset designate triage 1",
    "preset archive triage",
    "preset activate triage",
    "catalogue import rows.json",
    "container put box new/f large",
    "container rm box f",
    "document rm {document}",
    "destination create --from destination.json --name new",
    "destination update {destination} --enabled false",
    "destination retry {destination}",
    "destination delete {destination}",
    "labels import labels.jsonl",
    "migrate up",
];

/// Commands that write to a file of the caller.
const OUTPUTS: &[&str] = &[
    "backup {disk}/backup",
    "config init {disk}/new.toml",
    "container get box large --output {disk}/file",
    "document get {document} --output {disk}/document",
    "labels export triage --output {disk}/labels",
    "eval run --preset triage --dataset items.jsonl --model sandbox/decider --results {disk}/results --yes --key-file key",
    "eval report --results results --html {disk}/report.html",
];

/// The second words of commands that only read.
const READS: [&str; 7] = ["list", "show", "sum", "versions", "explain", "test", "status"];

/// Every client that writes is in one of the tables.
#[test]
fn tables_have_the_commands_that_write() -> Result<()> {
    let tested: BTreeSet<String> = WRITES.iter().chain(OUTPUTS).map(|command| name(command)).collect();
    let commands: BTreeSet<String> = COMMANDS.iter().map(|(command, ..)| name(command)).collect();
    let is_missing =
        |command: &&String| !tested.contains(*command) && !READS.iter().any(|read| command.ends_with(read));
    let missing: Vec<&String> = commands.iter().filter(is_missing).collect();
    ensure!(missing.is_empty(), "{missing:?}");
    Ok(())
}

/// An installation with its database and its blobs on a small disk.
struct Fixture {
    // Dropped first: a folder with a mounted disk cannot be removed.
    disk: SmallDisk,
    instance: Instance,
    ids: [(&'static str, String); 3],
    _receiver: Upstream,
}

impl Fixture {
    /// Returns `None` if this user may not mount a disk.
    async fn start(mebibytes: u32) -> Result<Option<Self>> {
        let receiver = Upstream::start(Behaviour::json("{}")).await?;
        let toml = "[egress]\nallow_private_addresses = true\n[storage]\nbusy_timeout_ms = 1000\n";
        let instance = Instance::on_file(toml)?;
        let Some(disk) = SmallDisk::mount(&instance.path().join("data"), mebibytes)? else { return Ok(None) };
        for (file, content) in [
            ("rules.json", json!({"description": "x".repeat(900)}).to_string()),
            ("preset.json", format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#)),
            ("rows.json", json!([crate::catalogue::row("acme/new", "acme/new", "text")]).to_string()),
            ("destination.json", json!({"type": "webhook", "config": {"url": receiver.base_url()}}).to_string()),
            ("items.jsonl", json!({"state": "It smokes.", "labels": {"refund": true}}).to_string()),
            ("large", "x".repeat(1_000_000)),
        ] {
            std::fs::write(instance.path().join(file), content)?;
        }
        for command in [
            "migrate up",
            "key create --name app",
            "workspace create --name team",
            "workspace credit team --add-usd 1",
            "preset create triage --from preset.json",
            "container put box f rules.json",
            "container put box large large",
        ] {
            instance.json(&command.split(' ').collect::<Vec<_>>()).await?;
        }
        let create = ["destination", "create", "--from", "destination.json", "--name", "traces"];
        let destination = instance.json(&create).await?["id"].as_str().context("no id")?.to_owned();
        let guardrail = instance.guardrail(&[]).await?;
        instance.json(&["guardrail", "update", &guardrail, "--from", "rules.json"]).await?;
        let key = instance.key(&["--name", "asking"]).await?;
        std::fs::write(instance.path().join("key"), &key.secret)?;
        let server = instance.serve().await?;
        let file = instance.put("box", "promoted", b"x").await?;
        let document = server.promote(&key.secret, "box", &file).await?.ok()?;
        let document = document["id"].as_str().context("no id")?.to_owned();
        let question = json!({"model": "@preset/triage", "questions": {}, "state": "It smokes."}).to_string();
        let answer = server.decide(&key.secret, question).await?.ok()?;
        let label = json!({"generation_id": answer["id"], "question": "refund", "label": true, "source": "human"});
        std::fs::write(instance.path().join("labels.jsonl"), label.to_string())?;
        let evaluate = "eval run --preset triage --dataset items.jsonl --model sandbox/decider --results results --yes \
                        --key-file key";
        instance.run(&evaluate.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>()).await?;
        server.stop().await?;
        let ids = [("{document}", document), ("{guardrail}", guardrail), ("{destination}", destination)];
        Ok(Some(Self { disk, instance, ids, _receiver: receiver }))
    }

    /// Runs a command; returns whether it succeeded. It must be one sentence otherwise.
    async fn run(&self, command: &str, disk: &Path) -> Result<bool> {
        let command = command.replace("{disk}", &disk.display().to_string());
        let command = self.ids.iter().fold(command, |command, (name, id)| command.replace(name, id));
        let output = self.instance.run(&command.split(' ').collect::<Vec<_>>()).await?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        ensure!(output.status.code().is_some() && !said.contains("panicked"), "{said}");
        if output.status.success() {
            return Ok(true);
        }
        ensure!(!said.is_empty() && said.lines().count() == 1, "not one sentence: {said:?}");
        Ok(false)
    }
}

/// Returns everything that the commands change, as the server shows it.
async fn state(server: &Server, secret: &str) -> Result<Value> {
    let mut state = serde_json::Map::new();
    for path in [
        "/keys?limit=100",
        "/workspaces?limit=100",
        "/workspaces/default",
        "/guardrails?limit=100",
        "/guardrails/assignments/keys?limit=100",
        "/observability/destinations?limit=100",
        "/presets?limit=100",
        "/models?output_modalities=all",
        "/audit?limit=1",
    ] {
        let read = Call::get(format!("/api/v1{path}")).key(secret);
        state.insert(path.to_owned(), server.send(&read).await?.ok()?);
    }
    Ok(Value::Object(state))
}

#[tokio::test]
async fn command_changes_everything_or_nothing_beside_a_server() -> Result<()> {
    let Some(fixture) = Fixture::start(24).await? else { return Ok(()) };
    let management = fixture.instance.key(&["--name", "reading", "--management"]).await?;
    let server = fixture.instance.serve().await?;
    fixture.disk.fill()?;
    let (mut report, mut failures) = (Report::default(), 0);
    for command in WRITES {
        let case = async {
            let before = state(&server, &management.secret).await?;
            let succeeded = fixture.run(command, &fixture.disk.0).await?;
            let after = state(&server, &management.secret).await?;
            failures += usize::from(!succeeded);
            ensure!(succeeded || before == after, "it failed and changed {before} to {after}");
            anyhow::Ok(())
        };
        report.case(command, case.await);
    }
    report.finish()?;
    ensure!(failures > WRITES.len() / 2, "{failures} commands met the full disk");
    fixture.disk.free()?;
    ensure!(fixture.run("audit verify", &fixture.disk.0).await?, "the audit log is damaged");
    ensure!(fixture.run("key create --name after", &fixture.disk.0).await?, "it does not recover");
    server.stop().await
}

#[tokio::test]
async fn command_changes_everything_or_nothing_without_a_server() -> Result<()> {
    let Some(fixture) = Fixture::start(24).await? else { return Ok(()) };
    let management = fixture.instance.key(&["--name", "reading", "--management"]).await?;
    let server = fixture.instance.serve().await?;
    let before = state(&server, &management.secret).await?;
    server.stop().await?;
    fixture.disk.fill()?;
    let (mut report, mut successes) = (Report::default(), 0);
    for command in WRITES {
        let outcome = fixture.run(command, &fixture.disk.0).await;
        successes += usize::from(matches!(outcome, Ok(true)) && *command != "migrate up");
        report.case(command, outcome);
    }
    report.finish()?;
    fixture.disk.free()?;
    let server = fixture.instance.serve().await?;
    let after = state(&server, &management.secret).await?;
    ensure!((successes > 0) == (before != after), "{successes} commands succeeded: {before}, {after}");
    ensure!(fixture.run("audit verify", &fixture.disk.0).await?, "the audit log is damaged");
    server.stop().await
}

#[tokio::test]
async fn output_on_a_full_disk_is_removed_again() -> Result<()> {
    let Some(fixture) = Fixture::start(64).await? else { return Ok(()) };
    let Some(disk) = SmallDisk::mount(&fixture.instance.path().join("output"), 1)? else { return Ok(()) };
    let server = fixture.instance.serve().await?;
    ensure!(fixture.run("labels import labels.jsonl", &disk.0).await?, "no label");
    disk.fill()?;
    let mut report = Report::default();
    for command in OUTPUTS {
        let case = async {
            ensure!(!fixture.run(command, &disk.0).await?, "it succeeded");
            let left: Vec<_> =
                std::fs::read_dir(&disk.0)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
            // The same command continues a result file.
            let left: Vec<_> = left.into_iter().filter(|name| name != "results").collect();
            ensure!(left == ["ballast"], "{left:?} are left");
            anyhow::Ok(())
        };
        report.case(command, case.await);
    }
    // Files that are on the disk already stay as they are.
    disk.free()?;
    let config = disk.0.join("tollgate.toml");
    std::fs::write(&config, "# mine\n")?;
    disk.fill()?;
    let add = "provider add typesafe --no-key --no-test --yes --config {disk}/tollgate.toml";
    let outcome = fixture.run(add, &disk.0).await;
    report.case(
        add,
        outcome.and_then(|succeeded| {
            ensure!(!succeeded && std::fs::read_to_string(&config)? == "# mine\n", "the configuration has changed");
            Ok(())
        }),
    );
    report.finish()?;
    disk.free()?;
    std::fs::remove_file(&config)?;
    for command in OUTPUTS {
        report_success(&fixture, command, &disk.0).await?;
    }
    server.stop().await
}

async fn report_success(fixture: &Fixture, command: &str, disk: &Path) -> Result<()> {
    // Too few labels are exit code 3.
    let expected = !command.starts_with("eval");
    ensure!(fixture.run(command, disk).await? || !expected, "{command} fails on a disk with room");
    Ok(())
}

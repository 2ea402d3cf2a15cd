//! The commands, while a server runs.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tollgate_tests::{Instance, Key, Report};

use crate::catalogue::row;
use crate::gateway::{TestGateway, body};

#[tokio::test]
async fn every_command_prints_one_json_document() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let answer = gateway.decide(body("sandbox/decider")).await?;
    let usage = answer["id"].as_str().context("no id")?.to_owned();
    std::fs::write(instance.path().join("rows.json"), json!([row("acme/a", "acme/a", "text")]).to_string())?;
    std::fs::write(instance.path().join("local"), "x")?;
    std::fs::write(instance.path().join("rules.json"), json!({"description": "of a file"}).to_string())?;
    let (workspace, guardrail) = (instance.workspace("acme").await?, instance.guardrail(&[]).await?);
    let Key { hash: key, id, .. } = instance.inference_key().await?;
    let mut report = Report::default();
    for (command, members) in [
        ("key create --name k --allow-duplicate", "key hash id name workspace_id management"),
        ("key create --name k --allow-duplicate --management", "key hash id name workspace_id management"),
        ("key create --limit-usd 1.50 --limit-reset daily", "key hash id name workspace_id management"),
        ("key list", ""),
        ("key list --management", ""),
        (&format!("key disable {key}"), "id hash disabled"),
        (&format!("key enable {key}"), "id hash disabled"),
        (&format!("key show {key}"), "id hash budgets"),
        (&format!("key update {key} --limit-usd 5 --limit-reset monthly --tpm 9"), "hash limit"),
        (&format!("guardrail assign {guardrail} {key}"), ""),
        (&format!("guardrail unassign {guardrail} {key}"), "unassigned_count"),
        (&format!("guardrail update {guardrail} --from rules.json"), "id version"),
        (&format!("guardrail versions {guardrail}"), "data"),
        (&format!("guardrail restore {guardrail} 1"), "id version"),
        (&format!("guardrail default {guardrail}"), "id default_guardrail_id"),
        ("guardrail default --none", "id default_guardrail_id"),
        ("guardrail create --from rules.json", "id name"),
        ("guardrail create --name g", "id name"),
        ("guardrail list", ""),
        (&format!("guardrail show {guardrail}"), ""),
        (&format!("guardrail delete {guardrail}"), ""),
        (&format!("key rotate {id}"), "key hash id name workspace_id management"),
        (&format!("key delete {id}"), "deleted"),
        ("workspace create --name w --allow-duplicate", "id name"),
        ("workspace list", ""),
        (&format!("workspace credit {workspace} --add-usd 25.50"), ""),
        (&format!("workspace budget {workspace} --daily 1 --lifetime 5"), "data total_count"),
        (&format!("workspace rates {workspace} --rpm 60 --tpm none"), "id"),
        (&format!("workspace show {workspace}"), "id slug credit_usd"),
        (&format!("workspace unlimited {workspace}"), "deleted"),
        (&format!("workspace suspend {workspace}"), ""),
        (&format!("workspace resume {workspace}"), ""),
        ("container put sess_a out/a.txt local", "container_id id path bytes"),
        ("container list sess_a", ""),
        ("catalogue import rows.json", "imported updated removed"),
        ("catalogue list", ""),
        ("catalogue show acme/a", ""),
        ("usage list", ""),
        ("audit list", ""),
        ("audit verify", "verified entries oldest newest fault"),
        (&format!("usage show {usage}"), "id total_cost"),
        ("migrate up", ""),
        ("migrate status", ""),
        ("endpoint list", "data"),
        ("status", "ok database servers processes"),
        ("doctor", ""),
        ("openapi", "openapi info paths"),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let printed = instance.json(&arguments).await;
        report.case(
            command,
            printed.and_then(|printed| {
                for member in members.split_whitespace() {
                    ensure!(printed.get(member).is_some(), "{member} is missing: {printed}");
                }
                Ok(())
            }),
        );
        let plain = instance.run(&arguments).await?;
        let again =
            ["key delete", "guardrail delete", "workspace unlimited"].iter().any(|once| command.starts_with(once));
        let fine = plain.status.success() != again && (again || !plain.stdout.is_empty());
        report.case(&format!("{command}, for people"), {
            if fine { Ok(()) } else { Err(anyhow::anyhow!("{}", String::from_utf8_lossy(&plain.stderr))) }
        });
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn options_are_accepted_in_any_position() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let config = gateway.instance.path().join("test.toml").display().to_string();
    for arguments in [
        ["--json", "--config", &config, "workspace", "list"],
        ["workspace", "--json", "--config", &config, "list"],
        ["workspace", "list", "--config", &config, "--json"],
    ] {
        let output = gateway.instance.run_bare(&arguments).await?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).with_context(|| format!("{arguments:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn failed_commands_print_one_sentence() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let nobody = "0".repeat(64);
    let none = "01990000-0000-7000-8000-000000000001";
    std::fs::write(gateway.instance.path().join("local"), "x")?;
    let mut report = Report::default();
    for command in [
        format!("key disable {nobody}"),
        format!("key enable {nobody}"),
        format!("key delete {nobody}"),
        "key disable nonsense".to_owned(),
        format!("key create --name k --workspace {none}"),
        "key create --name k --workspace nonsense".to_owned(),
        "key create --name k --limit-usd nonsense".to_owned(),
        "key create --name k --limit-usd=-1".to_owned(),
        "key create --name k --expires-at tomorrow".to_owned(),
        format!("guardrail show {none}"),
        format!("guardrail delete {none}"),
        format!("guardrail assign {none} {nobody}"),
        format!("guardrail create --name g --workspace {none}"),
        format!("workspace suspend {none}"),
        format!("workspace resume {none}"),
        format!("workspace credit {none} --add-usd 1"),
        "container put sess_a out/a.txt missing".to_owned(),
        "container put sess_a ../a local".to_owned(),
        "container put sess_a /etc/passwd local".to_owned(),
        "container put a.b a local".to_owned(),
        "catalogue import missing.json".to_owned(),
        "catalogue show acme/missing".to_owned(),
        "usage show gen-dec-missing".to_owned(),
        "usage show nonsense".to_owned(),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let said = gateway.instance.refused(&arguments).await;
        report.case(
            &command,
            said.and_then(|said| {
                ensure!(said.lines().count() == 1, "more than a sentence: {said}");
                Ok(())
            }),
        );
        let with_json = [arguments.as_slice(), &["--json"]].concat();
        report.case(&format!("{command} --json"), refused_as_json(&gateway.instance, &with_json).await);
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

/// Checks that with `--json` the document on standard output contains the sentence of standard error.
async fn refused_as_json(instance: &Instance, arguments: &[&str]) -> Result<()> {
    let output = instance.run(arguments).await?;
    ensure!(output.status.code().is_some_and(|code| code != 0), "{}", output.status);
    let said = String::from_utf8(output.stderr)?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let sentence = document["error"].as_str().with_context(|| format!("no error: {document}"))?;
    ensure!(said.contains(sentence) && said.lines().count() == 1, "{said:?} and {document}");
    Ok(())
}

#[tokio::test]
async fn unknown_configuration_key_is_rejected_with_suggestion() -> Result<()> {
    let mut report = Report::default();
    for (toml, named) in [
        ("[server]\nlisen = \"127.0.0.1:1\"\n", "listen"),
        ("[limit]\nmax_json_bytes = 1\n", "limits"),
        ("[limits]\nmax_jsn_bytes = 1\n", "max_json_bytes"),
        ("[storage]\nuri = \"x\"\n", "url"),
        (
            "[[providers]]\nslug=\"a\"\nname=\"A\"\nwire=\"system-one\"\nbase_url=\"http://127.0.0.1:1\"\napi_key=\"s\"\n",
            "api_key",
        ),
        ("[server]\nwire_names = \"openruter\"\n", "openrouter"),
        ("[server\n", ""),
        ("[server]\nlisten = 7\n", "listen"),
        (
            "[[endpoints]]\nmodel=\"acme/a\"\nprovider=\"missing\"\nupstream_model=\"x\"\ninput_usd_per_million_tokens=\"0\"\noutput_usd_per_million_tokens=\"0\"\n",
            "missing",
        ),
        (
            "[[providers]]\nslug=\"sandbox\"\nname=\"A\"\nwire=\"system-one\"\nbase_url=\"http://127.0.0.1:1\"\n",
            "sandbox",
        ),
    ] {
        let instance = Instance::new(toml)?;
        for command in [&["workspace", "list"][..], &["serve"]] {
            let said = instance.refused(command).await;
            report.case(
                &format!("{toml:?} {command:?}"),
                said.and_then(|said| {
                    ensure!(said.contains(named), "{named} is not named: {said}");
                    Ok(())
                }),
            );
        }
    }
    // Only commands that use a secret need it.
    let toml = "[[providers]]\nslug=\"a\"\nname=\"A\"\nwire=\"system-one\"\nbase_url=\"http://127.0.0.1:1\"\napi_key=\"env:NOT_SET_ANYWHERE\"\n";
    let instance = Instance::new(toml)?;
    report.case(
        "a missing secret",
        instance.refused_serving().await.and_then(|said| {
            ensure!(
                said.contains("api_key names an environment variable that is not set, or empty: NOT_SET_ANYWHERE"),
                "{said}"
            );
            Ok(())
        }),
    );
    let mut instance = Instance::new("")?;
    instance.set_env("TOLLGATE__SERVER__LISEN", "127.0.0.1:1");
    report.case(
        "an environment variable",
        instance.refused(&["serve"]).await.and_then(|said| {
            ensure!(said.to_lowercase().contains("listen"), "{said}");
            Ok(())
        }),
    );
    report.finish()
}

#[tokio::test]
async fn only_serve_and_migrate_up_create_a_database() -> Result<()> {
    let instance = Instance::new("")?;
    let expected = format!("no database at {}", instance.database().display());
    for command in [
        &["key", "create", "--name", "first"][..],
        &["key", "list"],
        &["workspace", "list"],
        &["guardrail", "list"],
        &["usage", "list"],
        &["catalogue", "list"],
        &["migrate", "status"],
        &["audit", "verify"],
    ] {
        let said = instance.refused(command).await?;
        ensure!(said.contains(&expected) && said.contains("TOLLGATE__STORAGE__URL"), "{command:?}: {said}");
    }
    let doctor = instance.run(&["doctor"]).await?;
    let report = String::from_utf8(doctor.stdout)?;
    ensure!(!doctor.status.success() && report.contains(&expected), "{report}");
    ensure!(!instance.path().join("data").exists(), "a command made a folder");
    instance.json(&["migrate", "up"]).await?;
    let key = instance.inference_key().await?;
    let server = instance.serve().await?;
    server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn guardrail_assign_fails_and_names_keys_that_were_not_assigned() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let guardrail = gateway.instance.guardrail(&[]).await?;
    let (known, unknown, management) = (&gateway.inference.hash, "0".repeat(64), &gateway.management.hash);
    let assigned =
        gateway.instance.run(&["guardrail", "assign", &guardrail, known, &unknown, management, "--json"]).await?;
    let said = String::from_utf8(assigned.stderr)?;
    ensure!(assigned.status.code() == Some(1), "{}: {said}", assigned.status);
    ensure!(serde_json::from_slice::<serde_json::Value>(&assigned.stdout)?["assigned_count"] == 1, "{said}");
    ensure!(said.contains(&unknown) && said.contains(management.as_str()) && !said.contains(known.as_str()), "{said}");
    gateway.instance.json(&["guardrail", "assign", &guardrail, known]).await.map(drop)
}

#[tokio::test]
async fn rows_are_imported_from_standard_input() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let rows = json!({"data": [row("acme/piped", "acme/piped", "text")]}).to_string();
    std::fs::write(gateway.instance.path().join("rows.json"), rows)?;
    let done = gateway.instance.piped(&["catalogue", "import", "-"], "rows.json").await?;
    ensure!(done["imported"] == 1, "{done}");
    Ok(())
}

/// The lines of the demo that show the result of an operation.
const DEMO_RESULTS: [&str; 5] = [
    "1. Promote a container file          200  out/report.csv, 31 bytes, is document tgfile_",
    "2. Decisions                         200  refund 0.88, queue billing, heat 1.37 of 2, for 0 USD",
    "3. Assign keys to a guardrail        200  1 key assigned, an unknown one skipped",
    "4. One model by its slug             200  sandbox/decider, 0 USD per input token",
    "5. How many models answer decisions  200  ",
];

#[tokio::test]
async fn demo_prints_one_line_per_operation_and_exits() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let output = Instance::demo(folder.path(), &["--exit"]).await?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(0), "{}: {printed}{}", output.status, String::from_utf8_lossy(&output.stderr));
    for result in DEMO_RESULTS {
        ensure!(printed.lines().any(|line| line.starts_with(result)), "{result} is not shown: {printed}");
    }
    ensure!((10..=20).contains(&printed.lines().count()), "{} lines: {printed}", printed.lines().count());
    ensure!(printed.lines().all(|line| line.len() <= 120), "a line is longer than 120 characters: {printed}");
    ensure!(printed.contains("/docs") && printed.contains("--verbose"), "no next steps: {printed}");
    ensure!(!printed.contains("\"answers\""), "a whole response is shown: {printed}");
    let left: Vec<_> = std::fs::read_dir(folder.path())?.collect();
    ensure!(left.is_empty(), "it left {left:?} behind");
    Ok(())
}

#[tokio::test]
async fn demo_prints_requests_and_responses_when_verbose() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let output = Instance::demo(folder.path(), &["--exit", "--verbose"]).await?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(0), "{}: {printed}{}", output.status, String::from_utf8_lossy(&output.stderr));
    for operation in ["/promote", "/decisions", "/assignments/keys", "/model/", "/models/count"] {
        ensure!(printed.contains(operation), "{operation} is not shown: {printed}");
    }
    for member in ["\"answers\"", "\"assigned_count\"", "\"count\"", "\"_shape\"", "\"pricing\"", "Authorization"] {
        ensure!(printed.contains(member), "{member} is not shown: {printed}");
    }
    Ok(())
}

#[tokio::test]
async fn demo_serves_pasted_command_until_it_is_interrupted() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let mut child = Instance::demo_command(folder.path(), &[])?.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    let (mut printed, mut command) = (Vec::new(), String::new());
    while !command.contains("-d '") {
        let next = tokio::time::timeout(Duration::from_mins(1), lines.next_line()).await??;
        let line = next.with_context(|| format!("it ended: {printed:?}"))?;
        if line.starts_with("curl ") || !command.is_empty() {
            command.push_str(&line);
            command.push('\n');
        }
        printed.push(line);
    }
    ensure!((10..=20).contains(&printed.len()), "{} lines: {printed:?}", printed.len());
    let shell = |script: String| Command::new("/bin/sh").args(["-c", &script]).env_clear().output();
    let answer = shell(command.clone()).await?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).with_context(|| command.clone())?;
    ensure!(answer["answers"]["q"]["noul"].as_f64().is_some_and(|yes| yes > 0.5), "{answer}");
    let address = printed.iter().find_map(|line| line.split_once("API reference: ")).context("no API reference")?.1;
    let page = shell(format!("curl -s -o /dev/null -w '%{{http_code}}' {address}")).await?;
    ensure!(page.stdout == b"200", "{address}: {}", String::from_utf8_lossy(&page.stdout));
    let pid = child.id().context("it has ended")?;
    shell(format!("kill -INT {pid}")).await?;
    let status = tokio::time::timeout(Duration::from_mins(1), child.wait()).await??;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

#[tokio::test]
async fn configuration_file_is_created_and_checked_without_a_database() -> Result<()> {
    let instance = Instance::new("")?;
    let file = instance.path().join("new.toml").display().to_string();
    let created = instance.run_bare(&["config", "init", &file]).await?;
    ensure!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let again = instance.run_bare(&["config", "init", &file]).await?;
    ensure!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("exists"), "it was overwritten");
    let checked = instance.run_bare(&["config", "check", "--config", &file]).await?;
    ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));

    instance
        .configure("[[providers]]\nslug=\"a\"\nname=\"A\"\nwire=\"system-one\"\nbase_url=\"http://127.0.0.1:1\"\n")?;
    let report = instance.run(&["config", "check"]).await?;
    let said = String::from_utf8(report.stdout)?;
    ensure!(report.status.success() && said.contains("warning") && said.contains("no endpoint uses it"), "{said}");
    instance.configure(
        "[[providers]]\nslug=\"a\"\nwire=\"system-one\"\nbase_url=\"http://127.0.0.1:1\"\napi_key=\"env:NOT_SET_ANYWHERE\"\n",
    )?;
    let report = instance.run(&["config", "check", "--json"]).await?;
    let document: serde_json::Value = serde_json::from_slice(&report.stdout)?;
    ensure!(report.status.code() == Some(1) && document["ok"] == false, "{document}");
    instance.configure("[server]\nlisen = \"127.0.0.1:1\"\n")?;
    let said = instance.refused(&["config", "check"]).await?;
    ensure!(said.contains("listen"), "{said}");
    ensure!(!instance.path().join("data").exists(), "a database was created");
    Ok(())
}

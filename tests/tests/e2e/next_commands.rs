//! The next useful command, which commands print at their end.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tollgate_tests::{Behaviour, Instance, Report, Upstream};

use crate::catalogue::row;
use crate::gateway::{QUESTIONS, TestGateway, providers_toml};

const PROVIDER_ANSWER: &str =
    r#"{"model":"m","answers":{"test":{"type":"noul","noul":0.97}},"usage":{"input_tokens":9,"output_tokens":1}}"#;

/// Runs a command; returns its last line.
async fn last_line(instance: &Instance, arguments: &[&str]) -> Result<String> {
    let output = instance.run(arguments).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().last().context("nothing was printed")?.to_owned())
}

async fn ensure_next(instance: &Instance, command: &str, expected: &str) -> Result<()> {
    let last = last_line(instance, &command.split(' ').collect::<Vec<_>>()).await?;
    ensure!(last.starts_with(&format!("Next: {expected}")), "{last:?} instead of {expected:?}");
    Ok(())
}

#[tokio::test]
async fn command_with_an_obvious_successor_ends_with_it() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(PROVIDER_ANSWER)).await?;
    let gateway = TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
    let instance = &gateway.instance;
    std::fs::write(instance.path().join("local"), "x")?;
    std::fs::write(instance.path().join("rows.json"), json!([row("acme/a", "acme/a", "text")]).to_string())?;
    let preset = format!(r#"{{"models":["sandbox/decider"],"questions":{QUESTIONS}}}"#);
    std::fs::write(instance.path().join("triage.json"), preset)?;
    let add = format!(
        "provider add custom --slug house --no-key --yes --set name=House --set wire=system-one --set base_url={} \
         --set model=house/judge --set upstream_model=judge-9 --set input_usd_per_million_tokens=0.1 \
         --set output_usd_per_million_tokens=0",
        alpha.base_url()
    );
    let mut report = Report::default();
    for (command, expected) in [
        ("key create --name next", "tollgate key show "),
        ("workspace create --name next", "tollgate key create --name NAME --workspace next"),
        ("guardrail create --name next", "tollgate guardrail assign "),
        ("container put sess_a out/a.txt local", "POST /api/v1/containers/sess_a/files/cfile_"),
        ("catalogue import rows.json --dry-run", "tollgate catalogue import rows.json"),
        ("catalogue import rows.json --replace --dry-run", "tollgate catalogue import rows.json --replace"),
        ("preset create triage --from triage.json", "tollgate ask @preset/triage --from FILE"),
        (&add, "tollgate ask MODEL "),
    ] {
        report.case(command, ensure_next(instance, command, expected).await);
    }
    let imported = last_line(instance, &["catalogue", "import", "rows.json"]).await?;
    report.case("import", (!imported.starts_with("Next")).then_some(()).with_context(|| imported.clone()));
    report.finish()?;
    gateway.server.stop().await
}

#[tokio::test]
async fn backup_and_provider_without_a_server_name_the_next_command() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(PROVIDER_ANSWER)).await?;
    let instance = Instance::on_file(&providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000))?;
    ensure!(instance.run(&["migrate", "up"]).await?.status.success());
    let file = instance.path().join("backup.tar.zst").display().to_string();
    ensure_next(&instance, &format!("backup {file}"), &format!("tollgate restore {file} ")).await?;
    let add = "provider add typesafe --no-key --no-test --yes";
    ensure_next(&instance, add, "tollgate serve").await
}

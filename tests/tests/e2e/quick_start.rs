//! The shell blocks of the README's quick start and of docs/http.md, pasted in order into an empty folder.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::process::Command;

const README: &str = include_str!("../../../README.md");
const HTTP: &str = include_str!("../../../docs/http.md");
/// The maximum time of all blocks.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Returns the shell blocks of the quick start, in order.
fn blocks() -> Result<Vec<&'static str>> {
    blocks_of(README, "Quick start")
}

/// Returns the shell blocks of a section, in order.
fn blocks_of(page: &'static str, heading: &str) -> Result<Vec<&'static str>> {
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).context("no section")?;
    let (section, _) = section.split_once("\n## ").context("the last section")?;
    Ok(section.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect())
}

/// Replaces the build by the built binary and the address by a free one.
fn adapted(block: &str, address: SocketAddr) -> String {
    block
        .replace("cargo run --release --", "tollgate")
        .replace("cargo build --release", "true")
        .replace("127.0.0.1:8080", &address.to_string())
}

/// Runs the blocks in one shell, in the folder; returns the output of each. Any failing command fails the test.
async fn paste(blocks: &[String], folder: &Path, address: SocketAddr) -> Result<Vec<String>> {
    // Braces run a block in the shell itself, with its variables and jobs, and redirect the output.
    let pasted = blocks.iter().enumerate().map(|(at, block)| format!("{{\n{block}\n}} > \"$OUTPUT\"/{at}\n"));
    // The shell's own PATH follows. `$!` is the server, the only job.
    let script = format!(
        "set -eu\nexport PATH=\"$BINARY:$PATH\"\ntrap '[ -z \"${{!-}}\" ] || kill $! || true; wait' EXIT\n{}",
        pasted.collect::<String>()
    );
    let (checkout, output) = (folder.join("checkout"), folder.join("output"));
    for created in [&checkout, &output] {
        std::fs::create_dir(created)?;
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script]).env_clear().current_dir(&checkout).stdin(Stdio::null());
    shell
        .env("BINARY", tollgate_tests::binary_folder()?)
        .env("OUTPUT", &output)
        .env("TOLLGATE__SERVER__LISTEN", address.to_string());
    // There is no load balancer that has to notice the stop.
    shell.env("TOLLGATE__SERVER__DRAIN_MS", "20");
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let group = child.id().context("the shell has ended")?;
    let Ok(ended) = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await else {
        Command::new("/bin/sh").args(["-c", &format!("kill -KILL -{group}")]).status().await?;
        bail!("the quick start did not end in {TIMEOUT:?}");
    };
    let ended = ended?;
    let outputs = (0..blocks.len()).map(|at| std::fs::read_to_string(output.join(at.to_string())).unwrap_or_default());
    let outputs: Vec<String> = outputs.collect();
    ensure!(ended.status.success(), "{}: {}\n{outputs:#?}", ended.status, String::from_utf8_lossy(&ended.stderr));
    Ok(outputs)
}

/// Returns the JSON object of an output, which may follow lines of text.
fn json(output: &str) -> Result<Value> {
    let begin = output.find('{').with_context(|| format!("no JSON: {output}"))?;
    serde_json::from_str(&output[begin..]).with_context(|| output.to_owned())
}

#[tokio::test]
async fn first_block_ends_with_the_reason_when_the_port_is_taken() -> Result<()> {
    let blocks = blocks()?;
    let first = blocks.iter().find(|block| block.contains("tollgate serve")).context("no block starts a server")?;
    // The other program answers nothing: only the end of the server ends the block.
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = taken.local_addr()?;
    let folder = tempfile::TempDir::new()?;
    let outputs = paste(&[adapted(first, address)], folder.path(), address).await?;
    ensure!(outputs[0].contains(&format!("cannot bind {address}")), "{outputs:#?}");
    Ok(())
}

#[tokio::test]
async fn quick_start_blocks_run_in_order_from_an_empty_folder() -> Result<()> {
    let blocks = blocks()?;
    let address = tollgate_tests::free_address()?;
    let adapted: Vec<String> = blocks.iter().map(|block| adapted(block, address)).collect();
    ensure!(!adapted.iter().any(|block| block.contains("cargo")), "a command of cargo is not replaced: {adapted:#?}");
    let folder = tempfile::TempDir::new()?;
    let outputs = paste(&adapted, folder.path(), address).await?;
    let output = |mark: &str| -> Result<&str> {
        let mut with = blocks.iter().zip(&outputs).filter(|(block, _)| block.contains(mark));
        let (_, output) = with.next().with_context(|| format!("no block with {mark}"))?;
        ensure!(with.next().is_none(), "several blocks with {mark}");
        Ok(output)
    };

    ensure!(output("demo --exit")?.contains("All operations succeeded."), "{outputs:#?}");
    let answer = json(output("I want my money back")?)?;
    ensure!(answer["answers"]["refund"]["noul"].as_f64().is_some_and(|yes| yes > 0.5), "{answer}");
    let redacted = json(output("x-tollgate-metadata")?)?;
    let pipeline = redacted["service_metadata"]["pipeline"].to_string();
    ensure!(pipeline.contains("EMAIL") && pipeline.contains("redact"), "{redacted}");
    ensure!(!redacted.to_string().contains("ada@example.com"), "{redacted}");
    let explained = json(output("/explain")?)?;
    ensure!(explained["data"]["sent"]["state"] == "Write to [EMAIL] about the refund.", "{explained}");
    let promoted = json(output("/promote")?)?;
    ensure!(promoted["filename"] == "out/report.csv" && promoted["downloadable"] == true, "{promoted}");
    let limits = output("--limit-usd")?;
    for expected in ["25", "sandbox/decider", "my-app"] {
        ensure!(limits.contains(expected), "{expected} is missing: {limits}");
    }
    let started = folder.path().join("tollgate-quickstart");
    for file in ["tollgate-data/management-key", "report.csv", "serve.log"] {
        ensure!(started.join(file).is_file(), "{file} is missing");
    }
    Ok(())
}

#[tokio::test]
async fn team_gets_its_own_keys_over_http() -> Result<()> {
    let of_readme = blocks()?;
    let server = of_readme.iter().find(|block| block.contains("tollgate serve")).context("no block starts a server")?;
    let of_page = blocks_of(HTTP, "From the first key to a team's own")?;
    let address = tollgate_tests::free_address()?;
    let blocks: Vec<String> = std::iter::once(server).chain(&of_page).map(|block| adapted(block, address)).collect();
    let folder = tempfile::TempDir::new()?;
    let outputs = paste(&blocks, folder.path(), address).await?;
    let [_, budget, _, asked, cost, keys] = &outputs[..] else { bail!("{} blocks", outputs.len()) };
    ensure!(json(budget)?["data"]["limit_usd"] == 200, "{budget}");
    let own: Value = serde_json::from_str(&asked[asked.rfind("{\"data\"").context("no record")?..])?;
    ensure!(own["data"]["limit"] == 25 && own["data"]["name"] == "inbox", "{own}");
    let scopes: Vec<&Value> = own["data"]["budgets"].as_array().context("no budgets")?.iter().collect();
    ensure!(scopes.len() == 2, "the workspace and the key have limits: {own}");
    let lines: Vec<&str> = cost.lines().collect();
    ensure!(lines.len() == 2 && lines[0].starts_with("day,model,") && lines[1].contains("sandbox/decider"), "{cost}");
    ensure!(keys.matches("\"name\":\"inbox\"").count() == 2, "both secrets are of one key: {keys}");
    Ok(())
}

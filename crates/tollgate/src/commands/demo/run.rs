//! The command: starts the instance, runs the script, and prints its exchanges.

use std::net::SocketAddr;

use domain::ids::DecisionId;
use serde_json::value::RawValue;

use super::exchange::{Exchange, ExchangeView};
use super::script;
use super::script::{CONTAINER, Fixtures, MODEL};
use crate::commands::prelude::*;
use crate::commands::server_client::ServerClient;
use crate::config;
use crate::config::{BlobsConfig, DatabaseUrl, Environment};
use crate::wiring::{Instance, ServerSockets, Signals};

/// The maximum time for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The document of `--json`.
#[derive(Serialize)]
struct DemoReport {
    address: String,
    exchanges: Vec<ExchangeView>,
    usage: Option<Box<RawValue>>,
}

/// Runs the demo. With `exit` it ends afterwards; otherwise it serves until it is interrupted. With `verbose` it prints
/// every request and response.
///
/// # Errors
/// An operation had an unexpected result.
pub async fn run(context: &Context, exit: bool, verbose: bool) -> anyhow::Result<ExitCode> {
    let mut shutdown = Signals::of_shutdown()?;
    // Removed on drop, on every return path.
    let folder = tempfile::Builder::new().prefix("tollgate-demo-").tempdir().context("no temporary folder")?;
    let config = config(folder.path())?;
    let sockets = ServerSockets::bind(&config).await?;
    let stores = Stores::open(&config, Schema::UpToDate).await?;
    let fixtures = Fixtures::make(&config, &stores).await?;
    // No other process knows the database: its lock is not needed.
    let (instance, _) = Instance::start(&config, &Environment::default(), sockets, stores.clone(), None).await?;
    let address = instance.address();
    let mut outcome: Option<anyhow::Result<()>> = None;
    instance
        .serve_until(async || {
            if outcome.is_some() {
                shutdown.next().await;
                return;
            }
            let work = perform(context, &config, &fixtures, address, verbose);
            outcome = Some(tokio::select! {
                result = work => result,
                _ = shutdown.next() => Err(anyhow::anyhow!("interrupted")),
            });
            if matches!(outcome, Some(Ok(()))) {
                let next_steps = if exit {
                    after_exit(&config.server.base_path)
                } else {
                    invitation(address, &config.server.base_path, &fixtures, verbose)
                };
                outcome = Some(context.output.text(&next_steps));
                if !exit && matches!(outcome, Some(Ok(()))) {
                    shutdown.next().await;
                }
            }
        })
        .await?;
    folder.close().context("the temporary folder cannot be removed")?;
    match outcome {
        Some(Err(error)) => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The sandbox with its errors, and a model with a price. Its provider is never asked: the key with a tiny limit is
/// rejected before.
const SETTINGS: &str = r#"
[sandbox]
enabled = true
errors = true

[[providers]]
slug = "demo"
name = "Demo (not reachable)"
base_url = "http://127.0.0.1:9"

[[endpoints]]
model = "demo/priced"
provider = "demo"
upstream_model = "priced"
input_usd_per_million_tokens = "0.05"
output_usd_per_million_tokens = "0"
"#;

/// Returns a configuration with all files in the folder and a free loopback port, independent of the caller's
/// configuration.
fn config(folder: &Path) -> anyhow::Result<Config> {
    let mut config = config::load_text(None, SETTINGS, &Environment::default())?;
    config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    // No client can have connections open: the address is random.
    config.server.drain_period = Duration::ZERO;
    let database = folder.join("tollgate.db");
    let path = database.to_str().context("the temporary folder's name is not UTF-8")?;
    config.storage.url = DatabaseUrl::Sqlite(format!("sqlite://{}", path.replace('%', "%25").replace('?', "%3F")));
    config.storage.file = database;
    config.journal.path = folder.join("journal");
    if let BlobsConfig::Folder(blobs) = &mut config.blobs {
        blobs.root = folder.join("blobs");
    }
    Ok(config)
}

async fn perform(
    context: &Context,
    config: &Config,
    fixtures: &Fixtures,
    address: SocketAddr,
    verbose: bool,
) -> anyhow::Result<()> {
    let output = &context.output;
    output.text(&opening(address))?;
    let mut further = 0;
    let client = ServerClient::new(address, TIMEOUT)?;
    let mut report = DemoReport { address: address.to_string(), exchanges: Vec::new(), usage: None };
    let mut last_decision = String::new();
    for mut step in script::steps(&config.server.base_path, fixtures) {
        step.request.path = step.request.path.replace(script::LAST_DECISION, &last_decision);
        let exchange = Exchange::perform(&client, step.request).await?;
        if verbose {
            output.text(&exchange.text())?;
        }
        let body = exchange.json();
        if exchange.status != step.status || !(step.holds)(&body) {
            bail!("{}: unexpected response: {} {}", exchange.request.title, exchange.status, exchange.body);
        }
        match step.summary {
            Some(summary) if !verbose => output.text(&result_line(&exchange, &summary(&exchange)))?,
            Some(_) => {}
            None => further += 1,
        }
        if let Some(id) = body["id"].as_str().filter(|id| id.starts_with(DecisionId::PREFIX)) {
            id.clone_into(&mut last_decision);
        }
        if exchange.request.path.contains(script::RECORD) {
            let record = pointer(&Json::parse(&exchange.body)?, "/data");
            report.usage = record.map(|record| RawValue::from_string(record.text().to_owned())).transpose()?;
        }
        report.exchanges.push(exchange.view());
    }
    if report.usage.is_none() {
        bail!("no answer had a usage record");
    }
    if output.is_json() {
        output.show(&report, String::new)?;
    }
    output.text(&if verbose { ALL_SUCCEEDED.to_owned() } else { closing(further) })
}

/// The width of the column of operation names.
const NAME_WIDTH: usize = 36;

/// The last line about the operations.
pub const ALL_SUCCEEDED: &str = "\nAll operations succeeded.\n";

/// Returns the introduction.
pub fn opening(address: SocketAddr) -> String {
    format!(
        "Tollgate demo: a temporary server on http://{address} with its own database, API keys, a guardrail and a\n\
         container file. The five operations over HTTP:\n\n"
    )
}

/// Returns an operation's name, status and result in one line.
pub fn result_line(exchange: &Exchange, result: &str) -> String {
    let title = &exchange.request.title;
    let name = title.split_once(':').map_or(title.as_str(), |(name, _)| name);
    format!("{name:<NAME_WIDTH$} {}  {result}\n", exchange.status)
}

/// Returns the conclusion after all operations, with the number of requests without a result line.
pub fn closing(further: usize) -> String {
    format!(
        "{further} further requests also had the expected results: usage record, vendors' formats, health, redaction,\n\
         a spending limit and a simulated failure. `--verbose` prints every request and response.\n{ALL_SUCCEEDED}"
    )
}

/// Returns the next steps after the temporary server has stopped.
pub fn after_exit(base: &str) -> String {
    format!(
        "\nNext: `tollgate demo` keeps this server up for your own requests. `tollgate serve` starts a permanent one:\n\
         \n  API reference  http://127.0.0.1:8080/docs\n  Decisions      POST http://127.0.0.1:8080{base}/api/alpha/decisions\n"
    )
}

/// Returns the API reference's address and a command to copy and paste; with `verbose` one command per operation.
pub fn invitation(address: SocketAddr, base: &str, fixtures: &Fixtures, verbose: bool) -> String {
    let commands =
        if verbose { all_commands(address, base, fixtures) } else { decision_command(address, base, fixtures) };
    format!(
        "\nThe server runs until Ctrl-C, which also removes its files. API reference: http://{address}/docs\n\
         Paste into another terminal:\n\n{commands}"
    )
}

/// Returns a `curl` command that asks a question.
fn decision_command(address: SocketAddr, base: &str, fixtures: &Fixtures) -> String {
    format!(
        "curl -s http://{address}{base}/api/alpha/decisions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"model\":\"{MODEL}\",\"state\":\"The sky is blue.\",\"questions\":{{\"q\":{{\"type\":\"noul\",\"instructions\":\"Is the sky blue?\"}}}}}}'\n",
        key = fixtures.inference_key,
    )
}

/// Returns a `curl` command per operation.
fn all_commands(address: SocketAddr, base: &str, fixtures: &Fixtures) -> String {
    let (key, management) = (&fixtures.inference_key, &fixtures.management_key);
    let url = format!("http://{address}{base}");
    format!(
        "{decision}\n\
         curl -s http://{address}/v1/decisions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"model\":\"{MODEL}\",\"input\":\"The sky is blue.\",\"questions\":[{{\"type\":\"predicate\",\"name\":\"q\",\"instructions\":\"Is the sky blue?\"}}]}}'\n\n\
         curl -s -X POST {url}/containers/{CONTAINER}/files/{file}/promote -H 'Authorization: Bearer {key}'\n\n\
         curl -s {url}/guardrails/{guardrail}/assignments/keys -H 'Authorization: Bearer {management}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"key_hashes\":[\"{hash}\"]}}'\n\n\
         curl -s {url}/model/{MODEL} -H 'Authorization: Bearer {key}'\n\n\
         curl -s '{url}/models/count?output_modalities=all' -H 'Authorization: Bearer {key}'\n\n\
         curl -s {url}/models/{MODEL}/endpoints -H 'Authorization: Bearer {key}'\n",
        decision = decision_command(address, base, fixtures),
        file = fixtures.file_id,
        guardrail = fixtures.guardrail_id,
        hash = fixtures.inference_hash,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_config_keeps_all_files_in_its_folder() {
        let config = config(Path::new("/tmp/a?b")).unwrap();
        assert_eq!(config.storage.url.as_str(), "sqlite:///tmp/a%3Fb/tollgate.db");
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:0");
        assert!(config.blobs.folder().unwrap().root.starts_with("/tmp/a?b") && config.sandbox.errors);
    }
}

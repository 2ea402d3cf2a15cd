//! The text before and after the requests.

use std::net::SocketAddr;

use super::exchange::Exchange;
use super::fixtures::{CONTAINER, Fixtures};
use super::script::MODEL;

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

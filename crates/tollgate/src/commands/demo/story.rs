//! The text before and after the requests.

use std::net::SocketAddr;

use super::fixtures::{CONTAINER, Fixtures};
use super::script::MODEL;

/// Returns the introduction.
pub fn opening(address: SocketAddr) -> String {
    format!(
        "A throwaway Tollgate listens on http://{address}: a real server with a real database and blob store in a\n\
         temporary folder. It made a workspace, an inference key, a management key, a guardrail and a container file.\n\
         The five operations over HTTP, then what the clients of vendors call, and limits:"
    )
}

/// Returns commands to copy and paste.
pub fn invitation(address: SocketAddr, base: &str, fixtures: &Fixtures) -> String {
    let (key, management) = (&fixtures.inference_key, &fixtures.management_key);
    let url = format!("http://{address}{base}");
    format!(
        "\nYour turn: paste any of these into another terminal. Ctrl-C ends the demo and removes everything.\n\n\
         curl -s {url}/api/alpha/decisions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"model\":\"{MODEL}\",\"state\":\"The sky is blue.\",\"questions\":{{\"q\":{{\"type\":\"noul\",\"instructions\":\"Is the sky blue?\"}}}}}}'\n\n\
         curl -s http://{address}/v1/decisions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"model\":\"{MODEL}\",\"input\":\"The sky is blue.\",\"questions\":[{{\"type\":\"predicate\",\"name\":\"q\",\"instructions\":\"Is the sky blue?\"}}]}}'\n\n\
         curl -s -X POST {url}/containers/{CONTAINER}/files/{file}/promote -H 'Authorization: Bearer {key}'\n\n\
         curl -s {url}/guardrails/{guardrail}/assignments/keys -H 'Authorization: Bearer {management}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"key_hashes\":[\"{hash}\"]}}'\n\n\
         curl -s {url}/model/{MODEL} -H 'Authorization: Bearer {key}'\n\n\
         curl -s '{url}/models/count?output_modalities=all' -H 'Authorization: Bearer {key}'\n\n\
         curl -s {url}/models/{MODEL}/endpoints -H 'Authorization: Bearer {key}'\n\n\
         The interface in full: http://{address}/docs\n",
        file = fixtures.file_id,
        guardrail = fixtures.guardrail_id,
        hash = fixtures.inference_hash,
    )
}

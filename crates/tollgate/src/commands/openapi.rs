//! `tollgate openapi`

use std::process::ExitCode;

use super::Context;
use crate::wiring::wire_names;

/// Prints the document, with or without `--json`.
pub fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let server = &context.config.server;
    let document = api_actix::openapi_document(&server.base_path, wire_names(server.wire_names));
    let pretty = serde_json::to_string_pretty(&document)?;
    context.output.show(&document, || pretty)?;
    Ok(ExitCode::SUCCESS)
}

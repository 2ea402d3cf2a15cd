//! `tollgate openapi`

use std::process::ExitCode;

use super::Context;

/// Prints the document, with or without `--json`.
pub fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let document = api_actix::openapi_document(&context.config.server.base_path);
    let pretty = serde_json::to_string_pretty(&document)?;
    context.output.show(&document, || pretty)?;
    Ok(ExitCode::SUCCESS)
}

//! The command `ask`.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use serde_json::value::RawValue;

use super::{answers, body, client};
use crate::cli::AskArgs;
use crate::commands::Context;
use crate::commands::input::read_secret;
use crate::output::indent;

/// The environment variable with the API key.
const KEY_VARIABLE: &str = "TOLLGATE_KEY";
/// The path of the operation below the base path.
const PATH: &str = "/api/alpha/decisions";

/// Sends a Decisions request to the running server and prints the answers.
pub async fn run(context: &Context, args: AskArgs) -> anyhow::Result<ExitCode> {
    let key = match &args.key_file {
        Some(file) => read_secret("--key-file", file)?,
        None => context.environment.get(KEY_VARIABLE).map(str::to_owned).with_context(|| {
            format!("no API key: set {KEY_VARIABLE} or --key-file; `tollgate key create` creates a key")
        })?,
    };
    let body = body::body(&args)?;
    let (address, base_path) = server(context).await?;
    let timeout = context.config.limits.request_timeout;
    let (status, response) = client::post(address, &format!("{base_path}{PATH}"), &key, body, timeout).await?;
    let raw: &RawValue =
        serde_json::from_str(&response).map_err(|_| anyhow!("the server answered {status} without JSON"))?;
    if status != 200 {
        if context.output.is_json() {
            context.output.show(&raw, String::new)?;
        }
        let message = answers::error_message(&response).unwrap_or_else(|| "no message".to_owned());
        bail!("{status}: {message}");
    }
    context.output.show(&raw, || answers::text(&response).unwrap_or_else(|| indent(&response)))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the address and the base path of a running server, or those of the configuration.
async fn server(context: &Context) -> anyhow::Result<(SocketAddr, String)> {
    let found = context.servers().servers().await.unwrap_or_default();
    let ready = found.into_iter().filter_map(|server| server.status.ok()).find(|status| status.state.is_ready());
    if let Some(status) = ready {
        let address = status.address.parse().context("the server has no usable address")?;
        return Ok((address, status.base_path));
    }
    let configured = &context.config.server;
    if configured.listen.port() == 0 {
        bail!("no server is running on the database");
    }
    Ok((configured.listen, configured.base_path.clone()))
}

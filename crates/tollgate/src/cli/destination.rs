//! `tollgate destination …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands on destinations of traces.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
    /// Create a destination, after a test request to it
    Create {
        /// The fields
        #[command(flatten)]
        fields: DestinationArgs,
        /// Workspace [default: taken from --from, else the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Change a destination; a changed URL, header or secret requires a successful test request
    Update {
        /// The destination
        id: String,
        /// The fields
        #[command(flatten)]
        fields: DestinationArgs,
    },
    /// Delete a destination and its pending messages
    Delete {
        /// The destination
        id: String,
    },
    /// List the destinations of traces, secrets masked
    List {
        /// Only destinations of this workspace
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Send a test request to a destination
    Test {
        /// The destination
        id: String,
    },
    /// Retry dead letters
    Retry {
        /// Only dead letters of this destination
        id: Option<String>,
    },
}

/// The fields of a destination. Options have precedence over the file.
#[derive(Debug, Args)]
pub struct DestinationArgs {
    /// Destination or changes as JSON, as in the HTTP API; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<String>,
    /// Display name
    #[arg(long)]
    pub name: Option<String>,
    /// Type: otel-collector or webhook
    #[arg(long = "type", value_name = "TYPE", value_parser = ["otel-collector", "webhook"])]
    pub kind: Option<String>,
    /// URL that receives the traces
    #[arg(long)]
    pub url: Option<String>,
    /// File with the signing secret of a webhook
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Send traces to it: true or false
    #[arg(long, value_name = "BOOL")]
    pub enabled: Option<bool>,
    /// Leave inputs and answers out of its traces: true or false
    #[arg(long, value_name = "BOOL")]
    pub privacy_mode: Option<bool>,
}

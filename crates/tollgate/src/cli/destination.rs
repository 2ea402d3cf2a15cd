//! `tollgate destination …`

use clap::Subcommand;

/// Commands on destinations of traces.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
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

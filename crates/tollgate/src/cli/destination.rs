//! `tollgate destination …`

use clap::Subcommand;

/// Commands on destinations of traces.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
    /// List the destinations of traces, secrets masked
    List {
        /// Those of this workspace alone
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Call the receiver of a destination for a test
    Test {
        /// The destination
        id: String,
    },
    /// Deliver dead letters once more
    Retry {
        /// Those of this destination alone
        id: Option<String>,
    },
}

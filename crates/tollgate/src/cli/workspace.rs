//! `tollgate workspace …`

use clap::Subcommand;

/// Commands on workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Make a workspace
    Create {
        /// What people call it
        #[arg(long, default_value = "unnamed workspace")]
        name: String,
        /// The owner's id in your own directory, shown in error envelopes
        #[arg(long, value_name = "ID")]
        owner_id: Option<String>,
    },
    /// List workspaces
    List,
    /// Add credit to a workspace (recorded, not enforced yet)
    Credit {
        /// The workspace [default: the default one]
        id: Option<String>,
        /// How much, in USD; negative takes away
        #[arg(long, value_name = "USD", allow_hyphen_values = true)]
        add_usd: String,
    },
    /// Refuse every call of a workspace's keys
    Suspend {
        /// The workspace
        id: String,
    },
    /// Accept calls of a suspended workspace again
    Resume {
        /// The workspace
        id: String,
    },
}

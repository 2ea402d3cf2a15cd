//! `tollgate workspace …`

use clap::{Args, Subcommand};

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
    /// Show a workspace, and how its credit and budgets stand
    Show {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Add prepaid credit; a workspace without any is unlimited until then
    Credit {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
        /// How much, in USD; negative takes away
        #[arg(long, value_name = "USD", allow_hyphen_values = true)]
        add_usd: String,
    },
    /// Take the credit away, so that none limits the workspace; budgets stay
    Unlimited {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Set what may be spent in each period, in USD
    Budget(BudgetArgs),
    /// Set how often all keys of a workspace together may call
    Rates(WorkspaceRatesArgs),
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

/// A workspace, in either way of naming it.
#[derive(Debug, Args)]
pub struct NamedWorkspace {
    /// The workspace [default: the default one]
    id: Option<String>,
    /// The same, as every other command takes it
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    workspace: Option<String>,
}

impl NamedWorkspace {
    /// The id, where one was given.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.workspace.as_deref())
    }
}

/// What a workspace may spend. Budgets strictly fall: lifetime > monthly > weekly > daily.
#[derive(Debug, Args)]
pub struct BudgetArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// In a UTC day; none takes the budget away
    #[arg(long, value_name = "USD", required_unless_present_any = ["weekly", "monthly", "lifetime"])]
    pub daily: Option<String>,
    /// From Monday to Monday
    #[arg(long, value_name = "USD")]
    pub weekly: Option<String>,
    /// In a calendar month
    #[arg(long, value_name = "USD")]
    pub monthly: Option<String>,
    /// In all time
    #[arg(long, value_name = "USD")]
    pub lifetime: Option<String>,
}

/// How often all keys of a workspace together may call.
#[derive(Debug, Args)]
pub struct WorkspaceRatesArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// Requests per minute; none follows the configuration
    #[arg(long, value_name = "N", required_unless_present = "tpm")]
    pub rpm: Option<String>,
    /// Tokens per minute, in and out; none follows the configuration
    #[arg(long, value_name = "N")]
    pub tpm: Option<String>,
}

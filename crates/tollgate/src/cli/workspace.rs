//! `tollgate workspace …`

use clap::{Args, Subcommand, ValueEnum};

/// Commands on workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Create a workspace
    Create {
        /// Display name, which no other workspace may have [default: unnamed workspace]
        #[arg(long)]
        name: Option<String>,
        /// Allow a second workspace with the name
        #[arg(long)]
        allow_duplicate: bool,
        /// The owner's id in your own directory, shown in error envelopes
        #[arg(long, value_name = "ID")]
        owner_id: Option<String>,
    },
    /// List workspaces
    List,
    /// Show a workspace and the status of its credit and budgets
    Show {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Rename a workspace
    Rename {
        /// The workspace: id or name
        id: String,
        /// New display name, which no other workspace may have
        #[arg(long)]
        name: String,
        /// Allow a second workspace with the name
        #[arg(long)]
        allow_duplicate: bool,
    },
    /// Delete an empty workspace; its usage records stay
    Delete {
        /// The workspace: id or name
        id: String,
        /// Contents to delete with it, comma-separated
        #[arg(long = "with", value_name = "LIST", value_delimiter = ',')]
        with: Vec<WorkspaceContent>,
    },
    /// Add prepaid credit; until then a workspace has no credit limit
    Credit {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
        /// Amount in USD; a negative amount subtracts
        #[arg(long, value_name = "USD", allow_hyphen_values = true)]
        add_usd: String,
    },
    /// Remove the credit limit; budgets stay
    Unlimited {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Set budgets per period in USD
    Budget(BudgetArgs),
    /// Set the rate limits of all keys of a workspace together
    Rates(WorkspaceRatesArgs),
    /// Suspend a workspace; calls of its keys are rejected
    Suspend {
        /// The workspace: id or name
        id: String,
    },
    /// Resume a suspended workspace
    Resume {
        /// The workspace: id or name
        id: String,
    },
}

/// A kind of contents that a workspace may be deleted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkspaceContent {
    /// Its keys
    Keys,
    /// Its documents and their bytes
    Documents,
    /// Its guardrails
    Guardrails,
    /// Its destinations of traces
    Destinations,
}

/// A workspace, as an argument or an option.
#[derive(Debug, Args)]
pub struct NamedWorkspace {
    /// The workspace: id or name [default: the default workspace]
    id: Option<String>,
    /// Workspace, as an option
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "id")]
    workspace: Option<String>,
}

impl NamedWorkspace {
    /// Returns the id, if one was given.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.workspace.as_deref())
    }
}

/// The budgets of a workspace. A budget must be below those of longer periods: lifetime > monthly > weekly > daily.
#[derive(Debug, Args)]
pub struct BudgetArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// Per UTC day; "none" removes the budget
    #[arg(long, value_name = "USD", required_unless_present_any = ["weekly", "monthly", "lifetime"])]
    pub daily: Option<String>,
    /// Per week from Monday (UTC)
    #[arg(long, value_name = "USD")]
    pub weekly: Option<String>,
    /// Per calendar month (UTC)
    #[arg(long, value_name = "USD")]
    pub monthly: Option<String>,
    /// For the lifetime of the workspace
    #[arg(long, value_name = "USD")]
    pub lifetime: Option<String>,
}

/// The rates of all keys of a workspace together.
#[derive(Debug, Args)]
pub struct WorkspaceRatesArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// Requests per minute; "none" uses the configured default
    #[arg(long, value_name = "N", required_unless_present = "tpm")]
    pub rpm: Option<String>,
    /// Input and output tokens per minute; "none" uses the configured default
    #[arg(long, value_name = "N")]
    pub tpm: Option<String>,
}

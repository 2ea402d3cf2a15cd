//! `tollgate key …`

use clap::{Args, Subcommand, ValueEnum};

/// Commands on keys. A key is named by its hash.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key and show its secret, this once
    Create(CreateKeyArgs),
    /// List the inference keys of a workspace, or the management keys
    List {
        /// The management keys
        #[arg(long, conflicts_with = "workspace")]
        management: bool,
        /// The workspace [default: the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Refuse a key until it is enabled again
    Disable {
        /// The key's hash
        hash: String,
    },
    /// Accept a disabled key again
    Enable {
        /// The key's hash
        hash: String,
    },
    /// Delete a key for good
    Delete {
        /// The key's hash
        hash: String,
    },
}

/// What a new key is to be.
#[derive(Debug, Args)]
pub struct CreateKeyArgs {
    /// What people call it
    #[arg(long, default_value = "unnamed key")]
    pub name: String,
    /// A management key: manages across workspaces, runs nothing
    #[arg(long, conflicts_with = "workspace")]
    pub management: bool,
    /// The workspace of an inference key [default: the default one]
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
    /// The most that it may spend, in USD (recorded, not enforced yet)
    #[arg(long, value_name = "USD")]
    pub limit_usd: Option<String>,
    /// When the limit starts anew
    #[arg(long, value_name = "PERIOD", requires = "limit_usd")]
    pub limit_reset: Option<LimitReset>,
    /// When it stops: RFC 3339, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
}

/// A period of a limit, in UTC.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LimitReset {
    /// Every midnight
    Daily,
    /// Every Monday
    Weekly,
    /// Every first of a month
    Monthly,
}

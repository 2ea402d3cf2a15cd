//! `tollgate key …`

use clap::{Args, Subcommand, ValueEnum};

/// Commands on keys. A key is named by its id, hash, a unique prefix of the hash, its secret or its unique name.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key and print its secret, only once
    Create(CreateKeyArgs),
    /// Change a key's name, limits and expiry
    Update(UpdateKeyArgs),
    /// Show a key and the status of its limits
    Show {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// List the inference keys of a workspace, or the management keys
    List {
        /// List the management keys
        #[arg(long, conflicts_with = "workspace")]
        management: bool,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Disable a key
    Disable {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// Enable a disabled key
    Enable {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// Replace the secret of a key and print the new one, only once; the old secret stops working within a second
    Rotate {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// Delete a key permanently
    Delete {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
}

/// The options of a new key.
#[derive(Debug, Args)]
pub struct CreateKeyArgs {
    /// Display name, which no other key of the workspace may have [default: unnamed key]
    #[arg(long)]
    pub name: Option<String>,
    /// Allow a second key with the name
    #[arg(long)]
    pub allow_duplicate: bool,
    /// Management key: manages all workspaces, cannot call models
    #[arg(long, conflicts_with = "workspace")]
    pub management: bool,
    /// The workspace of an inference key [default: the default workspace]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Spending limit in USD
    #[arg(long, value_name = "USD")]
    pub limit_usd: Option<String>,
    /// Reset period of the limit [default: never]
    #[arg(long, value_name = "PERIOD", requires = "limit_usd")]
    pub limit_reset: Option<LimitReset>,
    /// Requests per minute [default: the configured rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Input and output tokens per minute [default: the configured rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// Expiry: a date or an RFC 3339 time (UTC), for example 2027-01-31 or 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub expires_at: Option<String>,
}

/// The changes to a key.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct UpdateKeyArgs {
    /// The key: id, hash, unique prefix of the hash, secret or name
    pub key: String,
    /// Display name, which no other key of the workspace may have
    #[arg(long)]
    pub name: Option<String>,
    /// Allow a second key with the name
    #[arg(long)]
    pub allow_duplicate: bool,
    /// Spending limit in USD
    #[arg(long, value_name = "USD", conflicts_with = "no_limit")]
    pub limit_usd: Option<String>,
    /// Reset period of the limit
    #[arg(long, value_name = "PERIOD", conflicts_with = "no_limit")]
    pub limit_reset: Option<LimitReset>,
    /// Remove the limit
    #[arg(long)]
    pub no_limit: bool,
    /// Requests per minute
    #[arg(long, value_name = "N", conflicts_with = "no_rpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Use the configured default rate of requests
    #[arg(long)]
    pub no_rpm: bool,
    /// Input and output tokens per minute
    #[arg(long, value_name = "N", conflicts_with = "no_tpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// Use the configured default rate of tokens
    #[arg(long)]
    pub no_tpm: bool,
    /// Expiry: a date or an RFC 3339 time (UTC), for example 2027-01-31 or 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN", conflicts_with = "no_expiry")]
    pub expires_at: Option<String>,
    /// Remove the expiry
    #[arg(long)]
    pub no_expiry: bool,
}

/// A period of a limit, in UTC.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LimitReset {
    /// Daily at midnight UTC
    Daily,
    /// On Mondays at midnight UTC
    Weekly,
    /// On the first of each month at midnight UTC
    Monthly,
    /// Never; the limit holds for the lifetime of the key
    Never,
}

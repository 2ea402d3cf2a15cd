//! `tollgate key …`

use clap::{Args, Subcommand, ValueEnum};

/// Commands on keys. A key is named by its hash or its id.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key and show its secret, this once
    Create(CreateKeyArgs),
    /// Change a key's name, limits and expiry
    Update(UpdateKeyArgs),
    /// Show a key, and how every limit that it is under stands
    Show {
        /// The key's hash or id
        key: String,
    },
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
        /// The key's hash or id
        key: String,
    },
    /// Accept a disabled key again
    Enable {
        /// The key's hash or id
        key: String,
    },
    /// Replace the secret of a key and show the new one, this once; the old one is refused within a second
    Rotate {
        /// The key's hash or id
        key: String,
    },
    /// Delete a key for good
    Delete {
        /// The key's hash or id
        key: String,
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
    /// The most that it may spend, in USD
    #[arg(long, value_name = "USD")]
    pub limit_usd: Option<String>,
    /// When the limit starts anew [default: never]
    #[arg(long, value_name = "PERIOD", requires = "limit_usd")]
    pub limit_reset: Option<LimitReset>,
    /// Requests per minute [default: as the configuration says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Tokens per minute, in and out [default: as the configuration says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// When it stops: RFC 3339, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
}

/// What of a key is to change.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct UpdateKeyArgs {
    /// The key's hash or id
    pub key: String,
    /// What people call it
    #[arg(long)]
    pub name: Option<String>,
    /// The most that it may spend, in USD
    #[arg(long, value_name = "USD", conflicts_with = "no_limit")]
    pub limit_usd: Option<String>,
    /// When the limit starts anew
    #[arg(long, value_name = "PERIOD", conflicts_with = "no_limit")]
    pub limit_reset: Option<LimitReset>,
    /// Take the limit away
    #[arg(long)]
    pub no_limit: bool,
    /// Requests per minute
    #[arg(long, value_name = "N", conflicts_with = "no_rpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// As many requests per minute as the configuration says
    #[arg(long)]
    pub no_rpm: bool,
    /// Tokens per minute, in and out
    #[arg(long, value_name = "N", conflicts_with = "no_tpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// As many tokens per minute as the configuration says
    #[arg(long)]
    pub no_tpm: bool,
    /// When it stops: RFC 3339, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "no_expiry")]
    pub expires_at: Option<String>,
    /// It never stops by itself
    #[arg(long)]
    pub no_expiry: bool,
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
    /// The limit is for all time
    Never,
}

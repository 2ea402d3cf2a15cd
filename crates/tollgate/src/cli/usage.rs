//! `tollgate usage …`

use clap::{Args, Subcommand};

/// Commands on usage records.
#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// List the newest usage records of a workspace
    List(ListUsageArgs),
    /// Show the usage record of one decision
    Show {
        /// The decision id (gen-dec-…)
        id: String,
    },
}

/// Which records are wanted, and how.
#[derive(Debug, Args)]
pub struct ListUsageArgs {
    /// The workspace [default: the workspace of --key, else the default workspace]
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
    /// Only records of this key (hash or id)
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only records that began at this time or later: a date or an RFC 3339 time (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only records that began before this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Maximum number of records [default: 100; all with --csv]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: Option<u64>,
    /// Print CSV with a header line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

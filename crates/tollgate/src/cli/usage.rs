//! `tollgate usage …`

use clap::{Args, Subcommand, ValueEnum};
use domain::usage::UsageOutcome;

/// Commands on usage records.
#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// List the newest usage records
    List(ListUsageArgs),
    /// Sum requests, tokens and cost per key, model or day, or count rejected requests per reason
    Sum(SumUsageArgs),
    /// Show the usage record of one decision
    Show {
        /// The decision id (gen-dec-…)
        id: String,
    },
}

/// The wanted records.
#[derive(Debug, Args)]
pub struct UsageFilterArgs {
    /// Only records of this workspace [default: all workspaces]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Only records of this key: id, hash, unique prefix of the hash, secret or name
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only records of this provider
    #[arg(long, value_name = "SLUG")]
    pub provider: Option<String>,
    /// Only records with this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = UsageOutcome::ALL.map(UsageOutcome::as_str))]
    pub status: Option<String>,
    /// Only requests of this time or later, by their start, and with `sum` by their charge: a date or an RFC 3339 time
    /// (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only requests before this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
}

/// The wanted records and their format.
#[derive(Debug, Args)]
pub struct ListUsageArgs {
    /// The wanted records.
    #[command(flatten)]
    pub filter: UsageFilterArgs,
    /// Maximum number of records [default: 100; all with --csv]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: Option<u64>,
    /// Print CSV with a header line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// The wanted records and the groups of their sums.
#[derive(Debug, Args)]
pub struct SumUsageArgs {
    /// The groups
    #[arg(long, value_name = "GROUP")]
    pub by: UsageGroup,
    /// The wanted records.
    #[command(flatten)]
    pub filter: UsageFilterArgs,
}

/// A property that usage records or rejected requests are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsageGroup {
    /// The key
    Key,
    /// The model that answered or was tried
    Model,
    /// The UTC day in which the cost counts
    Day,
    /// The reason of rejected requests (402, 403, 429, 503); --since and --until select whole hours
    Reason,
}

//! `tollgate usage …`

use clap::{Args, Subcommand};

/// Commands on usage records.
#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// List the newest records of a workspace
    List(ListUsageArgs),
    /// Show the record of one answer
    Show {
        /// The answer's id
        id: String,
    },
}

/// Which records are wanted, and how.
#[derive(Debug, Args)]
pub struct ListUsageArgs {
    /// The workspace [default: that of --key, else the default one]
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
    /// Only those of this key, by its hash or id
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only those that began then or later: a date, or RFC 3339, such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only those that began before then
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// At most so many [default: 100; all with --csv]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: Option<u64>,
    /// Write comma-separated values with a head line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

//! `tollgate audit …`

use clap::{Args, Subcommand};
use domain::audit::AuditAnchor;

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest entries: changes and denied changes
    List(ListAuditArgs),
    /// Recompute every hash; exits with 1 if the log was modified
    Verify {
        /// An entry that must exist, as printed by an earlier run
        #[arg(long, value_name = "NUMBER:HASH")]
        anchor: Option<AuditAnchor>,
    },
}

/// The wanted entries.
#[derive(Debug, Args)]
pub struct ListAuditArgs {
    /// Only entries whose actor contains this text
    #[arg(long, value_name = "TEXT")]
    pub actor: Option<String>,
    /// Only entries whose action contains this text, for example key. or key.create
    #[arg(long, value_name = "TEXT")]
    pub action: Option<String>,
    /// Only entries whose subject contains this text
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// Only entries of this time or later: a date or an RFC 3339 time (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: u64,
}

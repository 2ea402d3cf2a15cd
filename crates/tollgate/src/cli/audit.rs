//! `tollgate audit …`

use clap::Subcommand;
use domain::audit::AuditAnchor;

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest entries: changes and denied changes
    List {
        /// Maximum number of entries
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        limit: u64,
    },
    /// Recompute every hash; exits with 1 if the log was modified
    Verify {
        /// An entry that must exist, as printed by an earlier run
        #[arg(long, value_name = "NUMBER:HASH")]
        anchor: Option<AuditAnchor>,
    },
}

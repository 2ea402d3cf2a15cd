//! `tollgate audit …`

use clap::Subcommand;
use domain::audit::AuditAnchor;

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest entries: who changed what, and what was refused
    List {
        /// At most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        limit: u64,
    },
    /// Recompute every hash; leaves with 1 where somebody tampered with the log
    Verify {
        /// An entry that must be there, as an earlier run showed its newest
        #[arg(long, value_name = "NUMBER:HASH")]
        anchor: Option<AuditAnchor>,
    },
}

//! `tollgate journal …`

use clap::Subcommand;
use domain::ids::ProcessId;

/// Commands on the journals of processes.
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// List the processes that have allowances, and when each was last seen
    List,
    /// End a process whose journal is gone for good; its allowances count as spent
    Forget {
        /// The process, as `journal list` shows it
        process: ProcessId,
    },
}

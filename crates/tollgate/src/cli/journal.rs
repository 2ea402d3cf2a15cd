//! `tollgate journal …`

use clap::Subcommand;
use domain::ids::ProcessId;

/// Commands on the journals of processes.
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// List processes with allowances and the time each was last seen
    List,
    /// End a process whose journal is lost for good; its allowances count as spent
    Forget {
        /// The process, as `journal list` shows it
        process: ProcessId,
    },
}

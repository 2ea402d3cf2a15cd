//! `tollgate document …`

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on durable documents.
#[derive(Debug, Subcommand)]
pub enum DocumentCommand {
    /// List a workspace's documents
    List {
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Write a document's bytes to a file or to standard output
    Get {
        /// The document's id
        id: String,
        /// The file to create; it must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Delete a document and its bytes for good
    Rm {
        /// The document's id
        id: String,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
}

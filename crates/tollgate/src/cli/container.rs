//! `tollgate container …`

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on containers' files.
#[derive(Debug, Subcommand)]
pub enum ContainerCommand {
    /// Put a file into a container's sandbox prefix and show its file id
    Put {
        /// The container's id
        container: String,
        /// The file's path in the container
        path: String,
        /// The file to read
        file: PathBuf,
        /// The workspace [default: the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List a container's files
    List {
        /// The container's id
        container: String,
        /// The workspace [default: the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

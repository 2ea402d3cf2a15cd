//! `tollgate container …`

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on containers' files.
#[derive(Debug, Subcommand)]
pub enum ContainerCommand {
    /// Upload a file into a container's sandbox prefix and print its file id
    Put {
        /// The container's id
        container: String,
        /// The file's path in the container
        path: String,
        /// The file to read
        file: PathBuf,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Write a container file's bytes to a file or to standard output
    Get {
        /// The container's id
        container: String,
        /// The file's path in the container
        path: String,
        /// The file to create; it must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Delete a file from a container
    Rm {
        /// The container's id
        container: String,
        /// The file's path in the container
        path: String,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// List a container's files
    List {
        /// The container's id
        container: String,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
}

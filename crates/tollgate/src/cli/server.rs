//! The server of a command.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The server of a command. Without `--url` it is a running server of the data folder, or the command itself.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Server to call, with its base path, such as <https://tollgate.example/api/v1> [default: this machine]
    #[arg(id = "server_url", long = "url", global = true, value_name = "URL")]
    pub url: Option<String>,
    /// With --url: file with a management key [default: the environment variable `TOLLGATE_MANAGEMENT_KEY`]
    #[arg(id = "server_key_file", long = "key-file", global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// A command on a resource, and the server that runs it.
#[derive(Debug, Args)]
pub struct Resource<C: Subcommand> {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The command.
    #[command(subcommand)]
    pub command: C,
}

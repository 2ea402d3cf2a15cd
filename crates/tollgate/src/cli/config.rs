//! `tollgate config …`

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on the configuration file.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration without a store or a connection; exits with 1 on errors
    Check,
    /// Write a commented minimal configuration file
    Init {
        /// The file to create; it must not exist
        #[arg(default_value = "tollgate.toml")]
        file: PathBuf,
    },
}

//! `tollgate provider …`

use clap::Subcommand;

/// Commands on the configured providers.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Make one small call with the configured credential; exits with 1 on failure. The provider bills the call
    Test {
        /// The provider
        slug: String,
        /// Model, by its name in the catalogue or at the provider [default: that of the first endpoint]
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
}

//! `tollgate endpoint …`

use clap::Subcommand;

/// Commands on the configured endpoints.
#[derive(Debug, Subcommand)]
pub enum EndpointCommand {
    /// List endpoints: wire, prices, capabilities, data policy
    List {
        /// Only endpoints of this model
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
}

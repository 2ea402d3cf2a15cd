//! `tollgate endpoint …`

use clap::Subcommand;

/// Commands on the configured endpoints.
#[derive(Debug, Subcommand)]
pub enum EndpointCommand {
    /// List the endpoints: wire, prices, what each takes, what it does with data
    List {
        /// Only those that serve this model
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
}

//! `tollgate guardrail …`

use clap::Subcommand;

/// Commands on guardrails.
#[derive(Debug, Subcommand)]
pub enum GuardrailCommand {
    /// Make a guardrail
    Create {
        /// What people call it
        #[arg(long, default_value = "unnamed guardrail")]
        name: String,
        /// Its workspace [default: the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List the guardrails of a workspace
    List {
        /// The workspace [default: the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Show one guardrail
    Show {
        /// The guardrail
        id: String,
    },
    /// Delete a guardrail; keys that hold it hold none then
    Delete {
        /// The guardrail
        id: String,
    },
    /// Give a guardrail to keys, in place of the one that they hold
    Assign {
        /// The guardrail
        id: String,
        /// Key hashes; - reads them from standard input, separated by white space
        #[arg(required = true, value_name = "HASH")]
        hashes: Vec<String>,
    },
}

//! `tollgate guardrail …`

use clap::Subcommand;

/// Commands on guardrails.
#[derive(Debug, Subcommand)]
pub enum GuardrailCommand {
    /// Create a guardrail
    Create {
        /// Display name [default: taken from --from, else "unnamed guardrail"]
        #[arg(long)]
        name: Option<String>,
        /// Workspace [default: taken from --from, else the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// Guardrail as JSON, as in the HTTP API; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: Option<String>,
    },
    /// Update a guardrail with the members of a JSON file; null removes a member
    Update {
        /// The guardrail
        id: String,
        /// Changes as JSON, as in the HTTP API; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: String,
    },
    /// List the guardrails of a workspace
    List {
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Show one guardrail
    Show {
        /// The guardrail
        id: String,
    },
    /// List the versions of a guardrail
    Versions {
        /// The guardrail
        id: String,
    },
    /// Restore a version of a guardrail
    Restore {
        /// The guardrail
        id: String,
        /// The version
        #[arg(id = "number", value_name = "VERSION")]
        version: u32,
    },
    /// Delete a guardrail and its assignments
    Delete {
        /// The guardrail
        id: String,
    },
    /// Assign a guardrail to keys; it replaces their current guardrail
    Assign {
        /// The guardrail
        id: String,
        /// Keys: id, hash, unique prefix of the hash, secret or name; - reads them from standard input, separated by
        /// white space
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Remove a guardrail from keys
    Unassign {
        /// The guardrail
        id: String,
        /// Keys: id, hash, unique prefix of the hash, secret or name; - reads them from standard input, separated by
        /// white space
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Show what a guardrail would do with a Decisions request, without sending it
    Explain {
        /// The guardrail
        id: String,
        /// Body of the Decisions request as JSON, in any format of the HTTP API; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: String,
        /// Key of the request [default: a key of the guardrail's workspace without limits]
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Set or clear the default guardrail of a workspace
    Default {
        /// The guardrail
        #[arg(required_unless_present = "none", conflicts_with = "none")]
        id: Option<String>,
        /// Clear the default guardrail
        #[arg(long)]
        none: bool,
        /// With --none: workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE", conflicts_with = "id")]
        workspace: Option<String>,
    },
}

//! `tollgate guardrail …`

use clap::Subcommand;

/// Commands on guardrails.
#[derive(Debug, Subcommand)]
pub enum GuardrailCommand {
    /// Make a guardrail
    Create {
        /// What people call it [default: as the record says, else unnamed guardrail]
        #[arg(long)]
        name: Option<String>,
        /// Its workspace [default: as the record says, else the default one]
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        /// Its record, in the JSON that HTTP takes; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: Option<String>,
    },
    /// Change the members of a guardrail's record that a file names; null takes one away
    Update {
        /// The guardrail
        id: String,
        /// The change, in the JSON that HTTP takes; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: String,
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
    /// List the states that a guardrail was in
    Versions {
        /// The guardrail
        id: String,
    },
    /// Go back to a state that a guardrail was in
    Restore {
        /// The guardrail
        id: String,
        /// The version
        #[arg(id = "number", value_name = "VERSION")]
        version: u32,
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
        /// Key hashes or ids; - reads them from standard input, separated by white space
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Take a guardrail from keys that hold it
    Unassign {
        /// The guardrail
        id: String,
        /// Key hashes or ids; - reads them from standard input, separated by white space
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Put a whole workspace under one of its guardrails, or under none
    Default {
        /// The guardrail
        #[arg(required_unless_present = "none", conflicts_with = "none")]
        id: Option<String>,
        /// Under none
        #[arg(long)]
        none: bool,
        /// With --none: the workspace [default: the default one]
        #[arg(long, value_name = "ID", conflicts_with = "id")]
        workspace: Option<String>,
    },
}

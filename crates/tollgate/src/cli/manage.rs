//! Arguments of the commands that manage keys, workspaces, guardrails, presets and destinations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Commands on keys. A key is named by its id, hash, a unique prefix of the hash, its secret or its unique name.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key and print its secret, only once
    Create(CreateKeyArgs),
    /// Change a key's name, limits and expiry
    Update(UpdateKeyArgs),
    /// Show a key and the status of its limits
    Show {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// List inference keys, or the management keys
    List(ListKeysArgs),
    /// Disable a key
    Disable {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// Enable a disabled key
    Enable {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
    /// Replace the secret of a key and print the new one, only once; the old secret stops working within a second
    Rotate {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
        /// Keep the old secret valid this long beside the new one, at most a week
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        grace_seconds: u64,
    },
    /// Delete a key permanently
    Delete {
        /// The key: id, hash, unique prefix of the hash, secret or name
        key: String,
    },
}

/// The wanted keys.
#[derive(Debug, Args)]
pub struct ListKeysArgs {
    /// List the management keys
    #[arg(long, conflicts_with_all = ["workspace", "guardrail"])]
    pub management: bool,
    /// Only keys of this workspace [default: all workspaces]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Only keys with this guardrail
    #[arg(long, value_name = "GUARDRAIL")]
    pub guardrail: Option<String>,
}

/// The options of a new key.
#[derive(Debug, Args)]
pub struct CreateKeyArgs {
    /// Display name, which no other key of the workspace may have [default: unnamed key]
    #[arg(long)]
    pub name: Option<String>,
    /// Allow a second key with the name
    #[arg(long)]
    pub allow_duplicate: bool,
    /// Management key: manages workspaces, cannot call models
    #[arg(long)]
    pub management: bool,
    /// Access of a management key [default: write]
    #[arg(long, value_name = "ACCESS", requires = "management")]
    pub access: Option<KeyAccess>,
    /// The workspace of an inference key [default: the default workspace]; repeated, the workspaces of a management key
    /// [default: all]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Vec<String>,
    /// Spending limit in USD
    #[arg(long, value_name = "USD")]
    pub limit_usd: Option<String>,
    /// Reset period of the limit [default: never]
    #[arg(long, value_name = "PERIOD", requires = "limit_usd")]
    pub limit_reset: Option<LimitReset>,
    /// Requests per minute [default: the configured rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Input and output tokens per minute [default: the configured rate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// Expiry: a date or an RFC 3339 time (UTC), for example 2027-01-31 or 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub expires_at: Option<String>,
}

/// The changes to a key.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct UpdateKeyArgs {
    /// The key: id, hash, unique prefix of the hash, secret or name
    pub key: String,
    /// Display name, which no other key of the workspace may have
    #[arg(long)]
    pub name: Option<String>,
    /// Allow a second key with the name
    #[arg(long)]
    pub allow_duplicate: bool,
    /// Access of a management key
    #[arg(long, value_name = "ACCESS")]
    pub access: Option<KeyAccess>,
    /// A workspace of a management key; repeated, several, which replace the previous ones
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "all_workspaces")]
    pub workspace: Vec<String>,
    /// Let a management key manage all workspaces
    #[arg(long)]
    pub all_workspaces: bool,
    /// Spending limit in USD
    #[arg(long, value_name = "USD", conflicts_with = "no_limit")]
    pub limit_usd: Option<String>,
    /// Reset period of the limit
    #[arg(long, value_name = "PERIOD", conflicts_with = "no_limit")]
    pub limit_reset: Option<LimitReset>,
    /// Remove the limit
    #[arg(long)]
    pub no_limit: bool,
    /// Requests per minute
    #[arg(long, value_name = "N", conflicts_with = "no_rpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Use the configured default rate of requests
    #[arg(long)]
    pub no_rpm: bool,
    /// Input and output tokens per minute
    #[arg(long, value_name = "N", conflicts_with = "no_tpm", value_parser = clap::value_parser!(u32).range(1..))]
    pub tpm: Option<u32>,
    /// Use the configured default rate of tokens
    #[arg(long)]
    pub no_tpm: bool,
    /// Expiry: a date or an RFC 3339 time (UTC), for example 2027-01-31 or 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN", conflicts_with = "no_expiry")]
    pub expires_at: Option<String>,
    /// Remove the expiry
    #[arg(long)]
    pub no_expiry: bool,
}

/// The access of a management key.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KeyAccess {
    /// Reads lists and records
    Read,
    /// Also manages inference keys
    Keys,
    /// Also manages guardrails, presets, destinations and documents
    Write,
}

/// A period of a limit, in UTC.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LimitReset {
    /// Daily at midnight UTC
    Daily,
    /// On Mondays at midnight UTC
    Weekly,
    /// On the first of each month at midnight UTC
    Monthly,
    /// Never; the limit holds for the lifetime of the key
    Never,
}

/// Commands on workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Create a workspace
    Create {
        /// Display name, which no other workspace may have [default: unnamed workspace]
        #[arg(long)]
        name: Option<String>,
        /// Allow a second workspace with the name
        #[arg(long)]
        allow_duplicate: bool,
        /// The owner's id in your own directory, shown in error envelopes
        #[arg(long, value_name = "ID")]
        owner_id: Option<String>,
    },
    /// List workspaces
    List,
    /// Show a workspace and the balance of its credit
    Show {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Rename a workspace
    Rename {
        /// The workspace: id, slug or name
        id: String,
        /// New display name, which no other workspace may have
        #[arg(long)]
        name: String,
        /// Allow a second workspace with the name
        #[arg(long)]
        allow_duplicate: bool,
    },
    /// Delete an empty workspace; its usage records stay
    Delete {
        /// The workspace: id, slug or name
        id: String,
        /// Contents to delete with it, comma-separated
        #[arg(long = "with", value_name = "LIST", value_delimiter = ',')]
        with: Vec<WorkspaceContent>,
    },
    /// Add prepaid credit; until then a workspace has no credit limit
    Credit {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
        /// Amount in USD; a negative amount subtracts
        #[arg(long, value_name = "USD", allow_hyphen_values = true)]
        add_usd: String,
    },
    /// Remove the credit limit; budgets stay
    Unlimited {
        /// Which
        #[command(flatten)]
        workspace: NamedWorkspace,
    },
    /// Set budgets per period in USD, and show all
    Budget(BudgetArgs),
    /// Set the rate limits of all keys of a workspace together
    Rates(WorkspaceRatesArgs),
    /// Suspend a workspace; calls of its keys are rejected
    Suspend {
        /// The workspace: id, slug or name
        id: String,
    },
    /// Resume a suspended workspace
    Resume {
        /// The workspace: id, slug or name
        id: String,
    },
}

/// A kind of contents that a workspace may be deleted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkspaceContent {
    /// Its keys
    Keys,
    /// Its documents and their bytes
    Documents,
    /// Its guardrails
    Guardrails,
    /// Its destinations of traces
    Destinations,
    /// Its presets
    Presets,
    /// The files of its containers
    #[value(name = "container_files")]
    ContainerFiles,
}

/// A workspace, as an argument or an option.
#[derive(Debug, Args)]
pub struct NamedWorkspace {
    /// The workspace: id, slug or name [default: the default workspace]
    id: Option<String>,
    /// Workspace, as an option
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "id")]
    workspace: Option<String>,
}

impl NamedWorkspace {
    /// Returns the id, if one was given.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.workspace.as_deref())
    }
}

/// The budgets of a workspace. A budget must be below those of longer periods: lifetime > monthly > weekly > daily.
#[derive(Debug, Args)]
pub struct BudgetArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// Per UTC day; "none" removes the budget
    #[arg(long, value_name = "USD")]
    pub daily: Option<String>,
    /// Per week from Monday (UTC)
    #[arg(long, value_name = "USD")]
    pub weekly: Option<String>,
    /// Per calendar month (UTC)
    #[arg(long, value_name = "USD")]
    pub monthly: Option<String>,
    /// For the lifetime of the workspace
    #[arg(long, value_name = "USD")]
    pub lifetime: Option<String>,
}

/// The rates of all keys of a workspace together.
#[derive(Debug, Args)]
pub struct WorkspaceRatesArgs {
    /// Which
    #[command(flatten)]
    pub workspace: NamedWorkspace,
    /// Requests per minute; "none" uses the configured default
    #[arg(long, value_name = "N", required_unless_present = "tpm")]
    pub rpm: Option<String>,
    /// Input and output tokens per minute; "none" uses the configured default
    #[arg(long, value_name = "N")]
    pub tpm: Option<String>,
}

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
    /// List guardrails
    List {
        /// Only guardrails of this workspace [default: all workspaces]
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

/// Commands on destinations of traces.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
    /// Create a destination, after a test request to it
    Create {
        /// The fields
        #[command(flatten)]
        fields: DestinationArgs,
        /// Workspace [default: taken from --from, else the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Change a destination; a changed URL, header or secret requires a successful test request
    Update {
        /// The destination
        id: String,
        /// The fields
        #[command(flatten)]
        fields: DestinationArgs,
    },
    /// Delete a destination and its pending messages
    Delete {
        /// The destination
        id: String,
    },
    /// List the destinations of traces, secrets masked
    List {
        /// Only destinations of this workspace
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Send a test request to a destination
    Test {
        /// The destination
        id: String,
    },
    /// Retry dead letters
    Retry {
        /// Only dead letters of this destination
        id: Option<String>,
    },
}

/// The fields of a destination. Options have precedence over the file.
#[derive(Debug, Args)]
pub struct DestinationArgs {
    /// Destination or changes as JSON, as in the HTTP API; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<String>,
    /// Display name
    #[arg(long)]
    pub name: Option<String>,
    /// Type: otel-collector or webhook
    #[arg(long = "type", value_name = "TYPE", value_parser = ["otel-collector", "webhook"])]
    pub kind: Option<String>,
    /// URL that receives the traces
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// File with the signing secret of a webhook
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Send traces to it: true or false
    #[arg(long, value_name = "BOOL")]
    pub enabled: Option<bool>,
    /// Leave inputs and answers out of its traces: true or false
    #[arg(long, value_name = "BOOL")]
    pub privacy_mode: Option<bool>,
}

/// A preset and its workspace.
#[derive(Debug, Args)]
pub struct NamedPreset {
    /// Slug of the preset
    pub slug: String,
    /// Workspace [default: the default workspace]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
}

/// Commands on presets.
#[derive(Debug, Subcommand)]
pub enum PresetCommand {
    /// Create a preset, or the next version of one, and designate the version
    Create {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
        /// Models and questions as JSON, as in the HTTP API; - reads standard input
        #[arg(long, value_name = "FILE")]
        from: String,
    },
    /// List presets
    List {
        /// Only presets of this workspace [default: all workspaces]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Show one preset with its designated version
    Show {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
    },
    /// Designate a version, which requests then use
    Designate {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
        /// The version
        #[arg(id = "number", value_name = "VERSION")]
        version: u32,
    },
    /// Archive a preset: requests that name it are rejected
    Archive {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
    },
    /// Make an archived or disabled preset active again
    Activate {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
    },
}

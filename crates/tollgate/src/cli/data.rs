//! Arguments of the commands that read records, move files, and ask endpoints.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::audit::AuditAnchor;
use domain::evidence::LabelSource;
use domain::ids::ProcessId;
use domain::usage::UsageOutcome;

use super::{NamedPreset, ServerArgs};

/// Commands on usage records.
#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// List the newest usage records
    List(ListUsageArgs),
    /// Sum requests, tokens and cost by a property, or count rejected requests per reason
    Sum(SumUsageArgs),
    /// Show the usage record of one decision
    Show {
        /// The decision id (gen-dec-…)
        id: String,
    },
}

/// The wanted records.
#[derive(Debug, Args)]
pub struct UsageFilterArgs {
    /// Only records of this workspace [default: all workspaces]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Only records of this key: id, hash, unique prefix of the hash, secret or name
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only records of this provider
    #[arg(long, value_name = "SLUG")]
    pub provider: Option<String>,
    /// Only records with this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = UsageOutcome::ALL.map(UsageOutcome::as_str))]
    pub status: Option<String>,
    /// Only requests charged at this time or later: a date or an RFC 3339 time (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only requests charged before this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
}

/// The wanted records and their format.
#[derive(Debug, Args)]
pub struct ListUsageArgs {
    /// The wanted records.
    #[command(flatten)]
    pub filter: UsageFilterArgs,
    /// Maximum number of records [default: 100]
    #[arg(long, value_name = "N", value_parser = parse_limit, conflicts_with = "csv")]
    pub limit: Option<usize>,
    /// Print all records as CSV with a header line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// Parses a number of records or entries.
fn parse_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=10_000).contains(limit));
    limit.ok_or_else(|| "must be a number from 1 to 10000".to_owned())
}

/// The wanted records and the groups of their sums.
#[derive(Debug, Args)]
pub struct SumUsageArgs {
    /// The groups
    #[arg(long, value_name = "GROUP")]
    pub by: UsageGroup,
    /// The wanted records.
    #[command(flatten)]
    pub filter: UsageFilterArgs,
}

/// A property that usage records or rejected requests are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsageGroup {
    /// The key
    Key,
    /// The model that answered or was tried
    Model,
    /// The provider that answered or was tried
    Provider,
    /// The workspace
    Workspace,
    /// The `user` of the request, over at most 31 days
    User,
    /// The UTC day in which the cost counts
    Day,
    /// The reason of rejected requests (402, 403, 429, 503); --since and --until select whole hours
    Reason,
}

/// Commands on labels.
#[derive(Debug, Subcommand)]
pub enum LabelsCommand {
    /// Label answers of presets; the same labels again change nothing
    Import {
        /// Labels as CSV (*.csv) or as JSON lines; - reads JSON lines from standard input
        file: String,
        /// Source of labels that name none
        #[arg(long, value_name = "SOURCE", value_parser = LabelSource::ALL.map(LabelSource::as_str))]
        source: Option<String>,
        /// First line to import, to continue after a failure
        #[arg(long, value_name = "LINE", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
        from_line: u64,
    },
    /// List the versions of the label of an answer, newest first
    Versions {
        /// The id of the answer
        generation: String,
        /// The question
        question: String,
    },
    /// Write the labelled answers of a preset with their labels, newest first
    Export {
        /// The preset
        #[command(flatten)]
        preset: NamedPreset,
        /// Write CSV in place of JSON lines
        #[arg(long)]
        csv: bool,
        /// The file to create; it must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest entries: changes and denied changes
    List(ListAuditArgs),
    /// Recompute every hash; exits with 1 if the log was modified
    Verify {
        /// An entry that must exist, as printed by an earlier run
        #[arg(long, value_name = "NUMBER:HASH")]
        anchor: Option<AuditAnchor>,
    },
}

/// The wanted entries.
#[derive(Debug, Args)]
pub struct ListAuditArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Only entries whose actor contains this text
    #[arg(long, value_name = "TEXT")]
    pub actor: Option<String>,
    /// Only entries whose action contains this text, for example key. or key.create
    #[arg(long, value_name = "TEXT")]
    pub action: Option<String>,
    /// Only entries whose subject contains this text
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// Only entries of this time or later: a date or an RFC 3339 time (UTC)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_limit)]
    pub limit: usize,
}

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

/// Commands on durable documents.
#[derive(Debug, Subcommand)]
pub enum DocumentCommand {
    /// List a workspace's documents
    List {
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Write a document's bytes to a file or to standard output
    Get {
        /// The document's id
        id: String,
        /// The file to create; it must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Delete a document and its bytes for good
    Rm {
        /// The document's id
        id: String,
        /// The workspace [default: the default workspace]
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
}

/// Commands on the journals of processes.
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// List processes with allowances and the time each was last seen
    List,
    /// End a process whose journal is lost for good; its allowances count as spent
    Forget {
        /// The process, as `journal list` shows it
        process: ProcessId,
    },
}

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

/// Commands on the configured providers.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Add a provider and its endpoints to the configuration file, after one test call, and reload
    Add(AddProviderArgs),
    /// Make one small call with the configured credential; exits with 1 on failure. The provider bills the call
    Test {
        /// The provider
        slug: String,
        /// Model, by its name in the catalogue or at the provider [default: that of the first endpoint]
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// The server
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Arguments of `provider add`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct AddProviderArgs {
    /// The preset: typesafe, openrouter, openai, gemini, perplexity, azure, workers-ai, databricks, fireworks, sglang,
    /// vllm, ollama, or custom
    pub name: String,
    /// Slug of the provider [default: the name of the preset]
    #[arg(long)]
    pub slug: Option<String>,
    /// Value that the preset leaves open, such as resource=acme; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Environment variable with the key [default: that of the preset]
    #[arg(long, value_name = "NAME", group = "key")]
    pub key_env: Option<String>,
    /// File with the key
    #[arg(long, value_name = "FILE", group = "key")]
    pub key_file: Option<PathBuf>,
    /// Read the key from standard input and store it in a private file beside the configuration file
    #[arg(long, group = "key")]
    pub key_stdin: bool,
    /// Send no key
    #[arg(long, group = "key")]
    pub no_key: bool,
    /// Make no test call
    #[arg(long)]
    pub no_test: bool,
    /// Add without asking
    #[arg(long)]
    pub yes: bool,
    /// Show the tables without adding them
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

/// A Decisions request to the running server.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The model
    pub model: String,
    /// Question, as TEXT or NAME=TEXT; may be repeated. Yes or no, unless --options or --levels is given
    #[arg(long, value_name = "QUESTION", required_unless_present = "from")]
    pub question: Vec<String>,
    /// Options of the questions, comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["levels", "from"])]
    pub options: Vec<String>,
    /// Levels of the questions from the lowest to the highest, comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "from")]
    pub levels: Vec<String>,
    /// Text that the questions refer to
    #[arg(long, value_name = "TEXT", conflicts_with = "from", required_unless_present_any = ["state_file", "from"])]
    pub state: Option<String>,
    /// File with the text that the questions refer to; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "from"])]
    pub state_file: Option<String>,
    /// Body of the request as JSON, without the model; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub from: Option<String>,
    /// File with the API key [default: the environment variable `TOLLGATE_KEY`]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

//! The commands and their global options, and the arguments of those that start or maintain a server.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::{
    AskArgs, AuditCommand, ContainerCommand, DestinationCommand, DocumentCommand, EndpointCommand, EvalCommand,
    GuardrailCommand, JournalCommand, KeyCommand, LabelsCommand, PresetCommand, ProviderCommand, Resource, ServerArgs,
    UsageCommand, WorkspaceCommand,
};

/// A self-hosted gateway to AI decision models, with the management functions around it.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The options that every command accepts, in any position.
#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Configuration file [default: ./tollgate.toml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print one JSON document to standard output
    #[arg(long, global = true)]
    pub json: bool,
}

/// The options of the server.
#[derive(Debug, Clone, Copy, Args)]
pub struct ServeArgs {
    /// Fail if a migration is missing; `migrate up` applies it
    #[arg(long)]
    pub no_migrate: bool,
    /// Accept a configuration without endpoints, at the start and at a reload, although there were some before
    #[arg(long)]
    pub allow_no_endpoints: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply migrations and start the server
    Serve(ServeArgs),
    /// Run every operation on a temporary instance
    Demo {
        /// Exit after every operation has run
        #[arg(long)]
        exit: bool,
        /// Print every request and response
        #[arg(long)]
        verbose: bool,
    },
    /// Send a Decisions request to the running server and print the answers
    Ask(AskArgs),
    /// Create and manage API keys
    Key(Resource<KeyCommand>),
    /// Create guardrails and assign keys to them
    Guardrail(Resource<GuardrailCommand>),
    /// Create presets of questions, which requests name as their model
    Preset(Resource<PresetCommand>),
    /// Ask models about labelled items, and report how far their answers can be relied on
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Create and manage workspaces
    Workspace(Resource<WorkspaceCommand>),
    /// Upload files into a container's sandbox prefix and list them
    Container(Resource<ContainerCommand>),
    /// List, download and delete durable documents
    Document(Resource<DocumentCommand>),
    /// Back up the database and the documents into one file, beside a running server
    Backup {
        /// The file to create; it must not exist
        file: PathBuf,
    },
    /// Restore a backup where no database exists, after its ledger and audit log were verified
    Restore {
        /// The file that `backup` wrote
        file: PathBuf,
        /// Restore although the verification found problems
        #[arg(long)]
        accept_problems: bool,
    },
    /// Manage trace destinations
    Destination(Resource<DestinationCommand>),
    /// Import and read the model catalogue
    Catalogue(Resource<CatalogueCommand>),
    /// List endpoints
    Endpoint(Resource<EndpointCommand>),
    /// Test providers
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Import and export labels of the answers of presets
    Labels(Resource<LabelsCommand>),
    /// Read usage records
    Usage(Resource<UsageCommand>),
    /// Read and verify the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// List processes and end those whose journals are lost
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Apply database migrations
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Copy the database into another one
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show the running servers on this data folder: readiness, stores, providers, journal; exits with 1 without a
    /// server, or if one is not ready
    Status(ServerArgs),
    /// Check the configuration, the stores, the providers and the running servers
    Doctor {
        /// Audit the ledger only: compare every counter with the records, and every charge with its tokens and prices
        #[arg(long)]
        audit: bool,
    },
    /// Check the configuration, or create a configuration file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the OpenAPI document
    Openapi,
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Commands on the catalogue.
#[derive(Debug, Subcommand)]
pub enum CatalogueCommand {
    /// Import models as JSON ({"data":[…]} or an array), in one transaction
    Import {
        /// The file; - reads standard input
        file: String,
        /// Remove rows that are not in the file; asks first
        #[arg(long)]
        replace: bool,
        /// With --replace: remove rows without asking
        #[arg(long)]
        yes: bool,
        /// Show the result without importing
        #[arg(long)]
        dry_run: bool,
    },
    /// List the models
    List {
        /// Only models with one of these output modalities, comma-separated, or all
        #[arg(long, value_name = "LIST", default_value = "all")]
        output_modalities: String,
    },
    /// Show one model by id or alias
    Show {
        /// The model: author/slug, with a :variant where it has one
        id: String,
    },
}

/// Commands on the database's schema.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Apply all pending migrations
    Up {
        /// Also create the bucket of blobs.url, if it does not exist
        #[arg(long)]
        create_bucket: bool,
    },
    /// List migrations and their state
    Status,
}

/// Commands on the content of the database.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy the whole instance into an empty database, for example from SQLite to PostgreSQL, while no server runs
    Copy(StoreCopyArgs),
}

/// Arguments of `store copy`.
#[derive(Args)]
pub struct StoreCopyArgs {
    /// The database to copy, as in storage.url; leave its password to PGPASSWORD: arguments show in the list of processes
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The empty database, or an unfinished copy to continue
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Finish the copy although its ledger or its audit log has problems
    #[arg(long)]
    pub accept_problems: bool,
}

impl fmt::Debug for StoreCopyArgs {
    /// Leaves out the URLs, which may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCopyArgs").field("accept_problems", &self.accept_problems).finish_non_exhaustive()
    }
}

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

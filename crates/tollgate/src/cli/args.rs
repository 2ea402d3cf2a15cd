//! The commands, and what every one of them takes.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::{
    AuditCommand, CatalogueCommand, ContainerCommand, DestinationCommand, DocumentCommand, EndpointCommand, GuardrailCommand,
    JournalCommand, KeyCommand, MigrateCommand, UsageCommand, WorkspaceCommand,
};

/// A self-hosted gateway to AI decision models, with the management functions around it.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes, in any position.
#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Read the configuration from this file [default: ./tollgate.toml where it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write one JSON document to standard output and nothing else
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the database up to date and serve
    Serve,
    /// Try everything on a throwaway instance
    Demo {
        /// Leave when every operation has run
        #[arg(long)]
        exit: bool,
    },
    /// Make and manage API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Make guardrails and assign keys to them
    #[command(subcommand)]
    Guardrail(GuardrailCommand),
    /// Make and manage workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Put files into a container's sandbox prefix, and list them
    #[command(subcommand)]
    Container(ContainerCommand),
    /// List, download and delete durable documents
    #[command(subcommand)]
    Document(DocumentCommand),
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
    /// See where traces are broadcast to
    #[command(subcommand)]
    Destination(DestinationCommand),
    /// Import and read the model catalogue
    #[command(subcommand)]
    Catalogue(CatalogueCommand),
    /// See who serves which model
    #[command(subcommand)]
    Endpoint(EndpointCommand),
    /// Read usage records
    #[command(subcommand)]
    Usage(UsageCommand),
    /// Read the audit log, and see whether it is whole
    #[command(subcommand)]
    Audit(AuditCommand),
    /// List processes, and end those whose journals are gone
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Bring the database's schema up to date
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Check the configuration, the stores and the providers
    Doctor {
        /// See whether the ledger adds up, and nothing else: every counter against the records, every charge against
        /// its tokens and prices
        #[arg(long)]
        audit: bool,
    },
    /// Print the OpenAPI document
    Openapi,
}

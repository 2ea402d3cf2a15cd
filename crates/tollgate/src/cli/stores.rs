//! `tollgate catalogue …`, `tollgate migrate …`, `tollgate store …`

use std::fmt;

use clap::{Args, Subcommand};

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

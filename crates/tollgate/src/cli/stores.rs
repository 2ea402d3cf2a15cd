//! `tollgate catalogue …`, `tollgate migrate …`

use clap::Subcommand;

/// Commands on the catalogue.
#[derive(Debug, Subcommand)]
pub enum CatalogueCommand {
    /// Import rows in the shape of the model operation: {"data":[…]} or a bare array; all or nothing
    Import {
        /// The file; - reads standard input
        file: String,
        /// Leave exactly the file's rows
        #[arg(long)]
        replace: bool,
    },
    /// List the models
    List {
        /// Only those that put out one of these, comma-separated; all for every model
        #[arg(long, value_name = "LIST", default_value = "all")]
        output_modalities: String,
    },
    /// Show one model, by any of its names
    Show {
        /// The model: author/slug, with a :variant where it has one
        id: String,
    },
}

/// Commands on the database's schema.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Apply every migration that is missing
    Up,
    /// Show which migrations are applied
    Status,
}

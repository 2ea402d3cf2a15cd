//! Usage and cost: records, sums, and rejected requests.

pub(crate) mod activity;
mod csv;
pub(crate) mod generations;
pub(crate) mod rejections;
pub(crate) mod sums;

pub use self::csv::{usage_csv_head, usage_csv_line};

use domain::decision::ReadUsageError;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::http::error::ApiError;
use crate::http::operation::{Operation, query};

impl From<ReadUsageError> for ApiError {
    fn from(error: ReadUsageError) -> Self {
        match error {
            ReadUsageError::Store(store) => Self::store(store),
            error => Self::from_kind(error.kind()).message(error.to_string()),
        }
    }
}

fn text(name: &str, description: &str) -> Parameter {
    query(name, description, ObjectBuilder::new().schema_type(Type::String))
}

/// Adds the parameters that select usage by workspace and key.
fn add_selection(operation: Operation) -> Operation {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    operation
        .parameter(query("workspace_id", "The workspace id. Default: all workspaces of the key.", id))
        .parameter(text("key", "The id or the hash of a key. An inference key reads itself only."))
}

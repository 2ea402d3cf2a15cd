//! The page parameters of lists.

use serde_json::json;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::http::error::ApiError;
use crate::http::query;
use crate::openapi::operations;

/// The default number of elements on a page.
const DEFAULT_LIMIT: usize = 50;
/// The maximum number of elements on a page.
const MAX_LIMIT: usize = 100;

/// The requested range of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRange {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

impl PageRange {
    /// Reads the parameters `offset` and `limit`.
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let offset = query::count(query, "offset")?.unwrap_or(0);
        let limit = query::count(query, "limit")?.unwrap_or(DEFAULT_LIMIT);
        if (1..=MAX_LIMIT).contains(&limit) {
            Ok(Self { offset, limit })
        } else {
            Err(ApiError::invalid(format!("limit must be 1 to {MAX_LIMIT}")))
        }
    }
}

/// Describes the parameter of a page's first element.
pub(super) fn offset() -> Parameter {
    operations::query(
        "offset",
        "The number of elements to skip.",
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)),
    )
}

/// Describes the parameter of a page's length.
pub(super) fn limit() -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX_LIMIT));
    operations::query("limit", "The maximum number of elements on a page.", schema.default(Some(json!(DEFAULT_LIMIT))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_limit_is_1_to_100_and_defaults_to_50() {
        assert_eq!(PageRange::parse("").unwrap(), PageRange { offset: 0, limit: 50 });
        assert_eq!(PageRange::parse("limit=100&offset=7").unwrap(), PageRange { offset: 7, limit: 100 });
        for query in ["limit=0", "limit=101", "limit=-1", "limit=", "offset=x", "offset=1.0", "limit=1&limit=1"] {
            assert_eq!(PageRange::parse(query).unwrap_err().status().as_u16(), 400, "{query}");
        }
    }
}

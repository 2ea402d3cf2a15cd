//! Views of lists.

use serde::Serialize;

/// `{"data":[…]}`
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The elements.
    pub data: Vec<T>,
}

/// The result of a deletion: `{"id":…,"deleted":true}`.
#[derive(Debug, Serialize)]
pub struct Deleted<'a> {
    /// The id of the deleted record.
    pub id: &'a str,
    /// Always true.
    pub deleted: bool,
}

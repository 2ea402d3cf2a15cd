//! Lists.

use serde::Serialize;

/// `{"data":[…]}`
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The elements.
    pub data: Vec<T>,
}

/// What became of one thing: `{"id":…,"deleted":true}` and the like.
#[derive(Debug, Serialize)]
pub struct Deleted<'a> {
    /// The thing.
    pub id: &'a str,
    /// Always true.
    pub deleted: bool,
}

//! Building blocks of the halves for clients: readers of bodies, writers of answers and of errors.

pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod response;

use domain::json::push_string;

pub use body::{ALL_MEMBERS, Body, BodyError, SYSTEM_ONE_MEMBERS, check_names, read_members, read_object, text};
pub use response::{DecisionResponse, ErrorLocation, ErrorResponse};

/// Returns a string as JSON.
pub(crate) fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}

/// Returns an array of JSON values.
pub(crate) fn array(elements: impl IntoIterator<Item = String>) -> String {
    let elements: Vec<String> = elements.into_iter().collect();
    format!("[{}]", elements.join(","))
}

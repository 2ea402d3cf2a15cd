//! JSON texts of values.

use domain::json::push_string;

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

//! Evidence of the answers of presets, and their labels.

pub(crate) mod feedback;
pub(crate) mod labels;
pub(crate) mod list;
mod record;

use domain::evidence::EvidenceError;
use domain::ids::DecisionId;

use crate::endpoints::prelude::*;
use crate::http::members::invalid;

api_error!(EvidenceError {
    pass: Restricted, Store;
    kind: NotFound;
    said: Question, LabelCount, EmptyRange, Cursor;
    with |plain| EvidenceError::Label { question, error } => located(plain, &format!("labels.{question}"), &error);
});

/// Reads the id of a Decisions request.
fn generation_id(name: &str, value: &Json) -> Result<DecisionId, ApiError> {
    read_generation_id(name, value.as_string())
}

fn read_generation_id(name: &str, text: Option<String>) -> Result<DecisionId, ApiError> {
    let id = text.and_then(|text| text.parse().ok());
    id.ok_or_else(|| invalid(name, "must be the id of a Decisions answer: gen-dec- and 1 to 64 of A-Z a-z 0-9 _ -"))
}

//! The public JSON format of a catalogue row, read and written.
//!
//! The import, the store and the HTTP layer share this crate. Prices are read in every number notation, as strings or
//! numbers, and written as strings in plain notation. Members without rules are kept byte for byte.

mod read;
mod write;

pub use read::{RowError, read_row, read_rows};
pub use write::{write_architecture, write_listed, write_pricing, write_row, write_stored};

/// Members of every shown row; null if the row has no value.
const ALWAYS: [&str; 6] = [
    "hugging_face_id",
    "per_request_limits",
    "default_parameters",
    "supported_voices",
    "knowledge_cutoff",
    "expiration_date",
];
/// The shown tokenizer of a row without one.
const NO_TOKENIZER: &str = "Other";

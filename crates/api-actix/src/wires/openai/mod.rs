//! `input` and an array of `predicate | choice | score` questions.

mod input;

pub mod errors;
pub mod request;
pub mod response;
pub(crate) mod schema;

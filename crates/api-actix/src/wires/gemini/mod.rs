//! `input` and a map of `noul | choice | score` questions with `true_description` and `false_description`.

pub mod errors;
pub mod request;
pub mod response;
pub(crate) mod schema;

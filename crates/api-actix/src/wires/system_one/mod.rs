//! `state` and a map of `noul | choice | score | box` questions: the canonical form itself.

pub mod errors;
pub(crate) mod question_schema;
pub mod request;
pub mod response;
pub(crate) mod schema;

//! `state` and a map of `noul | choice | score | box` questions: the canonical form itself.

pub mod errors;
pub mod request;
pub mod response;
pub(crate) mod schema;

//! `input` and an array of `choice | score | yes_no` questions with `id` and `question`.

pub mod errors;
pub mod request;
pub mod response;
pub(crate) mod schema;

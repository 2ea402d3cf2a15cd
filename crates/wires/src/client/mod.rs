//! Building blocks of the halves for clients: readers of bodies, writers of answers and of errors.

pub(crate) mod body;
mod body_error;
pub(crate) mod decision_response;
mod error_response;
pub(crate) mod fields;
mod json_members;
pub(crate) mod object;
pub(crate) mod path;

pub use body::{ALL_MEMBERS, Body, SYSTEM_ONE_MEMBERS, text};
pub use body_error::BodyError;
pub use decision_response::DecisionResponse;
pub use error_response::{ErrorLocation, ErrorResponse};
pub use json_members::{check_names, read_members, read_object};
pub use object::ObjectWriter;

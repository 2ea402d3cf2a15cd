//! Building blocks of the halves for clients: readers of bodies, writers of answers and of errors.

pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod response;
pub(crate) mod values;

pub use body::{ALL_MEMBERS, Body, BodyError, SYSTEM_ONE_MEMBERS, check_names, read_members, read_object, text};
pub use response::{DecisionResponse, ErrorLocation, ErrorResponse};

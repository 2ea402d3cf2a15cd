//! The HTTP infrastructure that all endpoints share.

pub(crate) mod admission;
pub(crate) mod admission_bound;
pub(crate) mod authentication;
pub(crate) mod body;
pub(crate) mod body_memory;
pub(crate) mod client_address;
pub(crate) mod connection;
pub(crate) mod denied_changes;
pub(crate) mod detach;
pub(crate) mod edge;
pub(crate) mod encoding;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod etag;
pub(crate) mod format;
pub(crate) mod head_rejection;
pub(crate) mod json_members;
pub(crate) mod json_scan;
pub(crate) mod multipart;
mod path_hint;
pub(crate) mod query;
pub(crate) mod rate;
pub(crate) mod raw_json;
pub(crate) mod recorder;
pub(crate) mod routes;
pub(crate) mod segment;
pub(crate) mod wire_names;

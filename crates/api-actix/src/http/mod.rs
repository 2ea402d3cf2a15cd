//! The HTTP infrastructure that all endpoints share.

pub(crate) mod access_log;
pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod change;
pub(crate) mod client;
pub(crate) mod conditions;
pub(crate) mod detach;
pub(crate) mod download;
pub(crate) mod edge;
pub(crate) mod encoding;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod export_places;
pub(crate) mod members;
pub(crate) mod operation;
pub(crate) mod page;
pub(crate) mod parameters;
pub(crate) mod recorder;
pub(crate) mod response;
pub(crate) mod route_parameters;
pub(crate) mod routes;
pub(crate) mod upload;

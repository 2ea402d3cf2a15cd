//! The HTTP layer as clients see it: the real server on its own port, over in-memory fakes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod admission;
mod authentication;
mod bodies;
mod catalogue;
mod changes;
mod client;
mod compression;
mod connections;
mod container_files;
mod decisions;
mod denied_changes;
mod destinations;
mod downloads;
mod edge;
mod error_formats;
mod exports;
mod files;
mod forms;
mod gateway;
mod generation;
mod guardrails;
mod guardrails_explain;
mod guardrails_manage;
mod guardrails_versions;
mod limits;
mod listings;
mod open_routes;
mod operation;
mod own_key;
mod promote;
mod rates;
mod rejections;
mod request_formats;
mod rotate_key;
mod workspaces;

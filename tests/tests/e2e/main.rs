//! The real binary, over real HTTP, with real stores.

mod auth;
mod bodies;
mod catalogue;
mod catalogue_import;
mod command_line;
mod costs;
mod crowd;
mod edges;
mod fallback;
mod framing;
mod guardrails;
mod idempotency;
mod lifecycle;
mod presence;
mod promote;
mod promote_hostile;
mod providers;
mod questions;
mod replicas;
mod sandbox;
mod shell;
mod stores;
mod stores_gone;
mod strings;
mod vanishing;
mod world;

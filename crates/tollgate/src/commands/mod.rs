//! The commands: each parses its arguments, runs one use case and prints the result.

mod add_provider;
mod api;
mod ask;
mod audit;
mod backup;
mod catalogue;
mod container;
mod context;
mod demo;
mod destination;
mod doctor;
mod door;
mod endpoint;
mod eval;
mod generate;
mod guardrail;
mod key;
mod labels;
mod preset;
mod provider_preset;
mod records;
mod run;
mod serve;
mod server_client;
mod servers;
mod status;
mod store;
mod transfer;
mod usage;
mod workspace;

pub use context::Context;
pub use run::main;

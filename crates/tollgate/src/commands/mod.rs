//! The commands: each parses its arguments, runs one use case and prints the result.

mod ask;
mod audit;
mod backup;
mod catalogue;
mod config_init;
mod container;
mod context;
mod demo;
mod destination;
mod doctor;
mod document;
mod download;
mod endpoint;
mod explain;
mod first_start;
mod guardrail;
mod input;
mod journal;
mod key;
mod migrate;
mod openapi;
mod provider;
mod references;
mod run;
mod serve;
mod status;
mod store;
mod timestamp;
mod usage;
mod usage_error;
mod usage_rejections;
mod usage_sum;
mod workspace;
mod workspace_deletion;

pub use context::Context;
pub use run::main;

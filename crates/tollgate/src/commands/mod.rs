//! The commands: each parses its arguments, runs one use case and prints the result.

mod audit;
mod backup;
mod catalogue;
mod container;
mod context;
mod demo;
mod destination;
mod doctor;
mod document;
mod download;
mod endpoint;
mod first_start;
mod guardrail;
mod journal;
mod key;
mod migrate;
mod openapi;
mod run;
mod serve;
mod usage;
mod usage_error;
mod workspace;

pub use context::Context;
pub use run::main;

//! The commands: each reads its arguments, runs one use case and shows what came of it.

mod audit;
mod catalogue;
mod container;
mod context;
mod demo;
mod destination;
mod doctor;
mod endpoint;
mod first_start;
mod guardrail;
mod journal;
mod key;
mod migrate;
mod misread;
mod openapi;
mod run;
mod serve;
mod usage;
mod workspace;

pub use context::Context;
pub use run::main;

//! The binary's insides: configuration, commands, and the composition root that puts adapters behind ports.

pub mod cli;
pub mod commands;
pub mod config;
pub mod output;
pub mod telemetry;
pub mod view;
pub mod wiring;

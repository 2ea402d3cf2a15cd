//! The library of the binary: configuration, commands, and the composition root that connects adapters to ports.

pub mod cli;
pub mod commands;
pub mod config;
pub mod output;
pub mod routing;
pub mod telemetry;
pub mod wiring;

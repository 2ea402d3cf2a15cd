//! All wires in both directions, as pure functions: golden files, and properties of the parsers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod errors;
mod golden;
mod properties;
mod support;

//! The halves for providers: golden files, rejected features, errors, and properties of the readers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat_errors;
mod golden;
mod properties;
#[path = "../support/mod.rs"]
mod support;
mod unsupported;
mod usage;

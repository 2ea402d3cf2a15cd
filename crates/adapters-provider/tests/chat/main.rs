//! The `chat-completions` wire: prompts, parsing of answers, and the calls of a provider.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod bounds;
mod contract;
mod golden;
mod methods;
mod model;
mod prompts;
mod reading;
mod usage;

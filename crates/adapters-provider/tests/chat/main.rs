//! The `chat-completions` wire: what a chat model is told, how what it says is read, and how a provider goes about it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod bounds;
mod golden;
mod methods;
mod model;
mod money;
mod objections;
mod prompts;
mod reading;

//! The halves for clients: golden files of requests, responses and errors.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod errors;
mod golden;
mod support;

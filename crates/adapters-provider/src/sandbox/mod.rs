//! The `sandbox` wire: stable answers from word overlap, made in this process, and models that exist to fail, so that
//! a client and its error handling can be tried without a vendor. What it answers is no judgement of anything.

mod answer;
mod distribution;
mod models;
mod provider;
mod words;

pub use provider::SandboxProvider;

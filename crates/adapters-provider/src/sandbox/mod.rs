//! The `sandbox` wire: deterministic answers from word overlap, and models that simulate failures. Clients can test
//! their integration and error handling without a vendor. The answers carry no judgement.

mod answer;
mod distribution;
mod models;
mod provider;
mod words;

pub use provider::SandboxProvider;

//! The trace that a request belongs to, in no wire format.

mod ids;
mod metadata;

pub use ids::span_id;
pub use metadata::TraceMetadata;

#[cfg(test)]
mod tests;

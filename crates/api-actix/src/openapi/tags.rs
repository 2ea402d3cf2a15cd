//! The tags, which group the operations in viewers and generated clients.

use utoipa::openapi::tag::{Tag, TagBuilder};

pub(crate) const DECISIONS: &str = "Decisions";
pub(crate) const FILES: &str = "Files";
pub(crate) const GUARDRAILS: &str = "Guardrails";
pub(crate) const KEYS: &str = "API keys";
pub(crate) const MODELS: &str = "Models and providers";
pub(crate) const USAGE: &str = "Usage";
pub(crate) const DESTINATIONS: &str = "Trace destinations";
pub(crate) const SERVICE: &str = "Service";

/// Returns all tags, in the order in which viewers show them.
pub(super) fn all() -> Vec<Tag> {
    [
        (DECISIONS, "Ask a model typed questions about a state."),
        (FILES, "Copy files of a container into the workspace's documents."),
        (GUARDRAILS, "Create rules for requests and assign keys to them. They need a management key."),
        (MODELS, "Read models, their endpoints and providers with their health."),
        (USAGE, "Read the usage record of a request."),
        (KEYS, "Replace the secret of a key. Other changes of keys: `tollgate key`."),
        (DESTINATIONS, "Manage the destinations of traces. They need a management key."),
        (SERVICE, "Health and documentation, without a key."),
    ]
    .map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build())
    .into()
}

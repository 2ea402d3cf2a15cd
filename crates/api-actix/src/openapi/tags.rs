//! The tags, which group the operations in viewers and generated clients.

use utoipa::openapi::tag::{Tag, TagBuilder};

use crate::http::routes::{Operation, Target};

const DECISIONS: &str = "Decisions";
const FILES: &str = "Files";
const GUARDRAILS: &str = "Guardrails";
const KEYS: &str = "API keys";
const MODELS: &str = "Models and providers";
const USAGE: &str = "Usage";
const DESTINATIONS: &str = "Trace destinations";
const SERVICE: &str = "Service";

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

/// Returns the tag of a route.
pub(super) fn of(target: Target) -> &'static str {
    match target {
        Target::Open(_) => SERVICE,
        Target::Operation(operation) => match operation {
            Operation::SubmitDecision(_) => DECISIONS,
            Operation::PromoteContainerFile => FILES,
            Operation::AssignKeysToGuardrail | Operation::Guardrails(_) => GUARDRAILS,
            Operation::RotateApiKey => KEYS,
            Operation::GetModel
            | Operation::CountModels
            | Operation::ListModels(_)
            | Operation::ListModelEndpoints
            | Operation::ListProviders => MODELS,
            Operation::GetGeneration => USAGE,
            Operation::Destinations(_) => DESTINATIONS,
        },
    }
}

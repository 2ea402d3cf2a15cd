//! One repository per port.

mod api_keys;
mod assignments;
mod destinations;
mod documents;
mod guardrails;
mod key_queries;
mod key_rows;
mod models;
mod outbox;
mod presets;
mod provider_pauses;
mod rows;
mod workspaces;

pub use api_keys::SeaOrmApiKeyRepository;
pub use destinations::SeaOrmDestinationRepository;
pub use documents::SeaOrmDocumentRepository;
pub use guardrails::SeaOrmGuardrailRepository;
pub use models::SeaOrmModelRepository;
pub use outbox::SeaOrmOutbox;
pub use presets::SeaOrmPresetRepository;
pub use provider_pauses::SeaOrmProviderPauses;
pub(crate) use rows::credit_base;
pub use workspaces::SeaOrmWorkspaceRepository;

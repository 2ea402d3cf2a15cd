//! One repository per port.

mod api_keys;
mod documents;
mod guardrails;
mod models;
mod workspaces;

pub use api_keys::SeaOrmApiKeyRepository;
pub use documents::SeaOrmDocumentRepository;
pub use guardrails::SeaOrmGuardrailRepository;
pub use models::SeaOrmModelRepository;
pub use workspaces::SeaOrmWorkspaceRepository;

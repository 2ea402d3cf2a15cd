//! Decision providers behind [`domain::decision::DecisionProvider`]: calls by the codecs of the crate `wires`, over a
//! shared client of the crate `http-client`.
//!
//! | folder | content |
//! |---|---|
//! | [`settings`] | the settings of one provider |
//! | [`HttpProvider`] | the calls of every wire with one request per answer |
//! | [`chat_completions`] | the methods of the `chat-completions` wire: answers from chat models |
//! | [`sandbox`] | the `sandbox` wire: answers computed in this process |
//! | [`ProviderRouter`] | selection of the provider of an endpoint |
//!
//! This crate reads no environment variables and no clock; settings are passed as values.
#![deny(missing_docs)]

mod attempt;
pub mod chat_completions;
mod connection;
mod credential;
mod http_provider;
mod payload;
mod provider_error;
mod providers;
mod redaction;
pub mod sandbox;
pub mod settings;

pub use credential::{CredentialCheck, check_connection, check_credential};
pub use http_provider::HttpProvider;
pub use providers::{ProviderRouter, http_provider};
pub use sandbox::SandboxProvider;
pub use settings::{ProviderSettings, ProviderSettingsError};

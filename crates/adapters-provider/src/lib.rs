//! Decision providers behind [`domain::decision::DecisionProvider`]: one folder per wire, over a shared HTTP client.
//!
//! | folder | content |
//! |---|---|
//! | [`http`] | the client: pools, TLS, proxies, deadlines, bounded answers |
//! | [`settings`] | the settings of one provider |
//! | [`wire`] | building blocks of wires, and [`HttpProvider`], which calls them |
//! | [`canonical`] | conversion between the canonical form and wires with fewer features |
//! | [`system_one`] | the `system-one` wire and its dialects |
//! | [`openai_decisions`] | the `openai-decisions` wire |
//! | [`gemini_decisions`] | the `gemini-decisions` wire |
//! | [`sglang_decisions`] | the `sglang-decisions` wire |
//! | [`chat_completions`] | the `chat-completions` wire: answers from chat models |
//! | [`sandbox`] | the `sandbox` wire: answers computed in this process |
//! | [`router`] | selection of the provider of an endpoint |
//!
//! This crate reads no environment variables and no clock; settings are passed as values.
#![deny(missing_docs)]

mod account;
pub mod canonical;
pub mod chat_completions;
mod connection;
mod credential;
pub mod gemini_decisions;
pub mod http;
mod http_provider;
pub mod openai_decisions;
mod provider_error;
mod providers;
mod redaction;
pub mod router;
pub mod sandbox;
pub mod settings;
pub mod sglang_decisions;
pub mod system_one;
pub mod wire;

pub use credential::{CredentialCheck, check_connection, check_credential};
pub use http::{Http2, HttpClient, HttpClientError, HttpClientSettings, NoProxy, PingSettings, ProxySettings};
pub use http_provider::HttpProvider;
pub use providers::http_provider;
pub use router::ProviderRouter;
pub use sandbox::SandboxProvider;
pub use settings::{ModelLocation, ProviderSettings, ProviderSettingsError, ResponseWrapper};

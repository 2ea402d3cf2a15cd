//! Decision providers behind [`domain::decision::DecisionProvider`]: one folder a wire, over one HTTP client with pools of its own.
//!
//! | folder | what |
//! |---|---|
//! | [`http`] | the client: pools, TLS, proxies, deadlines, bounded answers |
//! | [`settings`] | how one provider is reached |
//! | [`wire`] | what wires are made of, and [`HttpProvider`], which speaks them |
//! | [`canonical`] | from the canonical form to poorer wires and back |
//! | [`system_one`] | the `system-one` wire and its dialects |
//! | [`openai_decisions`] | the `openai-decisions` wire |
//! | [`gemini_decisions`] | the `gemini-decisions` wire |
//! | [`sglang_decisions`] | the `sglang-decisions` wire |
//! | [`chat_completions`] | the `chat-completions` wire: answers made from what a chat model says |
//! | [`sandbox`] | the `sandbox` wire: answers made in this process |
//! | [`router`] | picks the provider of an endpoint |
//!
//! This crate reads no environment variable and no clock; settings come in as values.
#![deny(missing_docs)]

pub mod canonical;
pub mod chat_completions;
mod connection;
pub mod gemini_decisions;
pub mod http;
mod http_provider;
pub mod openai_decisions;
mod providers;
pub mod router;
pub mod sandbox;
pub mod secret;
pub mod settings;
pub mod sglang_decisions;
pub mod system_one;
pub mod wire;

pub use http::{Http2, HttpClient, HttpClientError, HttpClientSettings, PingSettings, ProxySettings};
pub use http_provider::HttpProvider;
pub use providers::http_provider;
pub use router::ProviderRouter;
pub use sandbox::SandboxProvider;
pub use secret::Secret;
pub use settings::{Envelope, ModelPlace, ProviderSettings, ProviderSettingsError};

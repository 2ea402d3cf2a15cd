//! Decision providers behind [`domain::decision::DecisionProvider`]: one folder a wire, over one pooled HTTP client.
//!
//! | folder | what |
//! |---|---|
//! | [`http`] | the client: pool, TLS, proxies, deadlines, bounded answers |
//! | [`system_one`] | the `system-one` wire |
//! | [`sandbox`] | the `sandbox` wire: answers made in this process |
//! | [`router`] | picks the provider of an endpoint |
//!
//! This crate reads no environment variable and no clock; settings come in as values.
#![deny(missing_docs)]

pub mod http;
pub mod router;
pub mod sandbox;
pub mod secret;
pub mod system_one;

pub use http::{Http2, HttpClient, HttpClientError, HttpClientSettings, ProxySettings};
pub use router::ProviderRouter;
pub use sandbox::SandboxProvider;
pub use secret::Secret;
pub use system_one::{SystemOneError, SystemOneProvider, SystemOneSettings};

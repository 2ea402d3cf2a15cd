//! The HTTP client that every wire shares: one connection pool, TLS with the platform's roots, proxies, deadlines
//! and bounded answers.

mod attempt;
mod body;
mod call;
mod client;
mod connector;
mod errors;
mod frames;
mod meter;
mod payload;
mod pools;
mod retry_after;
mod settings;
mod tls;

pub(crate) use attempt::within;
pub(crate) use client::Target;
pub use client::{ErrorMeaning, HttpClient, ReadError};
pub use errors::HttpClientError;
pub use payload::Payload;
pub(crate) use payload::Sent;
pub use settings::{Http2, HttpClientSettings, PingSettings, ProxySettings};

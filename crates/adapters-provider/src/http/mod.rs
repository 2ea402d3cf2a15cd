//! The HTTP client that every wire shares: one connection pool, TLS with the platform's roots, proxies, deadlines
//! and bounded answers.

mod attempt;
mod body;
mod client;
mod connector;
mod errors;
mod pools;
mod retry_after;
mod settings;
mod tls;

pub(crate) use attempt::within;
pub use client::{HttpClient, Target};
pub use errors::HttpClientError;
pub use settings::{Http2, HttpClientSettings, ProxySettings};

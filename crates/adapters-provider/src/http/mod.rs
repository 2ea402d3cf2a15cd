//! The HTTP client that every wire shares: pools of connections, TLS with the platform's roots, proxies, deadlines
//! and bounded answers.

mod attempt;
mod beginning;
mod body;
mod client;
mod connection_in_use;
mod connector;
mod decoding;
mod dialer;
mod errors;
mod exchange;
mod frames;
mod http1;
mod http2;
mod meter;
mod no_proxy;
mod origin;
mod payload;
mod pool;
mod proxies;
mod retry_after;
mod settings;
mod tls;
mod watcher;

pub(crate) use attempt::run_with_deadline;
pub use client::HttpClient;
pub(crate) use client::Target;
pub use errors::HttpClientError;
pub use no_proxy::NoProxy;
pub use payload::Payload;
pub(crate) use payload::SentCounter;
pub use settings::{Http2, HttpClientSettings, PingSettings, ProxySettings};

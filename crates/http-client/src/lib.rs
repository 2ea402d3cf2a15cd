//! The HTTP client of all calls out: pools of connections, TLS with the platform's roots and client certificates, proxies,
//! name resolution with staggered attempts, bounded heads and bodies, and the causes of failed connections.
//!
//! It reads no environment variables; settings are passed as values. It knows neither providers nor stores: callers give
//! errors their meaning.
#![deny(missing_docs)]

mod addresses;
pub mod body;
mod client;
mod connections;
mod connector;
mod deadline;
mod dialer;
mod errors;
mod exchange;
mod frames;
mod meter;
mod origin;
mod pool;
mod proxy;
mod settings;
mod tls;
mod unix;

pub use client::HttpClient;
pub use deadline::{before_deadline, run_until};
pub use errors::{ConnectCause, Error, Loss};
pub use exchange::{Repeat, ResponseBody, Target};
pub use frames::TooManyBytes;
pub use proxy::NoProxy;
pub use settings::{Http2, HttpClientError, HttpClientSettings, PingSettings, ProxySettings};
pub use unix::send_over;

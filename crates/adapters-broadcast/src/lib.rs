//! Encodes traces as OTLP and delivers them to destinations over HTTP.
//!
//! Whoever manages a workspace chooses where its traces go, so that every address is checked after its name has been
//! resolved, by the connector that dials it, and no redirect is followed.

mod addresses;
mod connector;
mod errors;
mod otlp;
mod sender;
mod settings;
mod signature;
mod tls;

pub use addresses::is_public;
pub use errors::BroadcastError;
pub use otlp::OtlpTraceEncoder;
pub use sender::HttpMessageSender;
pub use settings::BroadcastSettings;
pub use signature::signature;

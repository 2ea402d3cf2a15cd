//! Encodes traces as OTLP and delivers them to destinations over HTTP.
//!
//! Workspace managers choose the destinations. Therefore the connector checks every address after name resolution, and
//! no redirect is followed.

mod connector;
mod errors;
mod otlp;
mod sender;
mod settings;
mod signature;
mod tls;

pub use errors::BroadcastError;
pub use otlp::OtlpMessageEncoder;
pub use sender::HttpMessageSender;
pub use settings::BroadcastSettings;
pub use signature::signature;

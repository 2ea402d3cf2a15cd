//! Encodes traces as OTLP and delivers them to destinations over HTTP.
//!
//! Workspace managers choose the destinations. Therefore the client checks every address after name resolution, and
//! no redirect is followed.

mod otlp;
mod sender;
mod settings;

pub use otlp::OtlpMessageEncoder;
pub use sender::{HttpMessageSender, signature};
pub use settings::{BroadcastError, BroadcastSettings};

//! A message that is stored together with a charge.

use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;

/// The trace of one request for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxMessage {
    /// The id, by which the destination can detect a repeated delivery.
    pub id: OutboxId,
    /// The destination.
    pub destination_id: DestinationId,
    /// The trace in the encoding for destinations.
    pub payload: Json,
}

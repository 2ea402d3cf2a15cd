//! A message that is stored together with a charge.

use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;

/// One request's trace on its way to one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxMessage {
    /// Its id; the receiver can tell a repeated delivery by it.
    pub id: OutboxId,
    /// Where to.
    pub destination_id: DestinationId,
    /// The trace in the encoding of the destinations.
    pub payload: Json,
}

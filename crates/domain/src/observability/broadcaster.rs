//! Writes the traces of requests for their destinations.

use std::sync::Arc;

use super::{Destination, Destinations, MessageEncoder, SampledGroup};
use crate::decision::{Broadcast, TraceContent};
use crate::ids::WorkspaceId;
use crate::system::IdGenerator;
use crate::usage::{OutboxMessage, UsageRecord};

/// Creates trace messages for the destinations of a workspace and for the operator's collector.
pub struct Broadcaster {
    destinations: Arc<dyn Destinations>,
    operators: Option<Destination>,
    encoder: Arc<dyn MessageEncoder>,
    ids: Arc<dyn IdGenerator>,
}

impl Broadcaster {
    /// Wires the ports.
    pub fn new(
        destinations: Arc<dyn Destinations>,
        operators: Option<Destination>,
        encoder: Arc<dyn MessageEncoder>,
        ids: Arc<dyn IdGenerator>,
    ) -> Self {
        Self { destinations, operators, encoder, ids }
    }
}

impl Broadcast for Broadcaster {
    fn messages(&self, record: &UsageRecord, exchange: &TraceContent<'_>) -> Vec<OutboxMessage> {
        let own = self.destinations.for_workspace(record.workspace_id);
        if own.is_none() && self.operators.is_none() {
            return Vec::new();
        }
        let group = SampledGroup::of_request(record);
        let own = own.as_deref().unwrap_or_default();
        // Each form is encoded once and shared by all destinations.
        let (mut whole, mut private) = (None, None);
        own.iter()
            .chain(&self.operators)
            .filter(|destination| destination.receives(record.api_key, &group))
            .map(|destination| {
                let payload = if destination.privacy_mode {
                    private.get_or_insert_with(|| self.encoder.encode_private(record))
                } else {
                    whole.get_or_insert_with(|| self.encoder.encode(record, exchange))
                };
                OutboxMessage { id: self.ids.outbox_id(), destination_id: destination.id, payload: payload.clone() }
            })
            .collect()
    }

    fn takes_labels(&self, workspace_id: WorkspaceId) -> bool {
        let own = self.destinations.for_workspace(workspace_id);
        let all = own.as_deref().unwrap_or_default().iter().chain(&self.operators);
        all.into_iter().any(|destination| destination.enabled && !destination.privacy_mode)
    }
}

#[cfg(test)]
mod tests;

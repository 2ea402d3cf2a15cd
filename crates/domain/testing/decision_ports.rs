//! The ports of decisions over fakes.

use std::sync::Arc;

use super::{
    FixedClock, ManualTimer, MemoryCatalogue, MemoryStore, ScriptedProvider, ScriptedRandomness, SequentialIds,
};
use crate::decision::{FilterPorts, NoBroadcast, NoMetrics, RoutingPorts, SubmitDecisionPorts, UsagePorts};
use crate::guardrail::NoGuardrails;
use crate::model::Model;
use crate::routing::{Endpoint, EndpointDirectory, HealthBoard, HealthPolicy};
use crate::system::{InlineExecutor, TimeSource};

/// Returns the ports of [`crate::decision::SubmitDecision`] over the fakes, without guardrails, metrics and
/// destinations. A test replaces those that it is about; the provider has no answers.
pub fn decision_ports(store: &MemoryStore, rows: Vec<Model>, endpoints: Vec<Endpoint>) -> SubmitDecisionPorts {
    let clock = FixedClock::default();
    SubmitDecisionPorts {
        provider: Arc::new(ScriptedProvider::default()),
        routing: RoutingPorts {
            catalogue: Arc::new(MemoryCatalogue::new(rows)),
            health: Arc::new(HealthBoard::new(endpoints.len(), HealthPolicy::default())),
            endpoints: Arc::new(EndpointDirectory::new(endpoints)),
            random: Arc::new(ScriptedRandomness::default()),
        },
        guardrails: FilterPorts { policies: Arc::new(NoGuardrails), workers: Arc::new(InlineExecutor) },
        usage: UsagePorts {
            ledger: store.ledger(),
            records: store.usage(),
            ids: Arc::new(SequentialIds::default()),
            metrics: Arc::new(NoMetrics),
            broadcaster: Arc::new(NoBroadcast),
        },
        time: TimeSource { timer: Arc::new(ManualTimer::new(clock.clone())), clock: Arc::new(clock) },
    }
}

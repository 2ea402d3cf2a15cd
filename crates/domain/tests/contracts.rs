//! The fakes keep the same contracts as the real adapters.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ids::WorkspaceId;
use domain::observability::{Broadcaster, Destination, Destinations, MessageEncoder};
use domain::system::{Timer, Workers};
use domain::testing::contract::{
    Blobs, Broadcasts, Catalogues, Journals, Policies, Providers, RateLimiters, RemoteProviders, Senders, Stores,
    inline_workers,
};
use domain::testing::{PlainMessageEncoder, SequentialIds};

async fn memory() -> Stores {
    Stores::memory()
}

async fn memory_blobs() -> Blobs {
    Blobs::memory()
}

async fn memory_journals() -> Journals {
    Journals::memory()
}

async fn plain_traces() -> Box<dyn MessageEncoder> {
    Box::new(PlainMessageEncoder)
}

/// A timer of the runtime.
struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

async fn memory_provider() -> Providers {
    memory_remote_provider().await.providers
}

async fn memory_remote_provider() -> RemoteProviders {
    RemoteProviders::memory(Arc::new(TokioTimer))
}

async fn memory_rate_limiter() -> RateLimiters {
    RateLimiters::memory()
}

async fn memory_catalogue() -> Catalogues {
    Catalogues::memory()
}

async fn memory_policies() -> Policies {
    Policies::memory()
}

async fn memory_sender() -> Senders {
    Senders::memory(Arc::new(TokioTimer))
}

async fn inline_executor() -> Arc<dyn Workers> {
    inline_workers()
}

/// Destinations in memory.
struct FixedDestinations(Vec<Destination>);

impl Destinations for FixedDestinations {
    fn for_workspace(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>> {
        let own = self.0.iter().filter(|destination| destination.workspace_id == workspace_id);
        let own: Vec<Destination> = own.cloned().collect();
        (!own.is_empty()).then(|| own.into())
    }
}

fn broadcaster(destinations: Vec<Destination>, operators: Option<Destination>) -> Broadcasts {
    let broadcast = Broadcaster::new(
        Arc::new(FixedDestinations(destinations.clone())),
        operators.clone(),
        Arc::new(PlainMessageEncoder),
        Arc::new(SequentialIds::default()),
    );
    Broadcasts { broadcast: Arc::new(broadcast), destinations, operators }
}

async fn broadcast_without_destinations() -> Broadcasts {
    Broadcasts::none()
}

async fn broadcast_to_destinations() -> Broadcasts {
    broadcaster(Broadcasts::sample_destinations(), None)
}

async fn broadcast_to_operators() -> Broadcasts {
    broadcaster(Vec::new(), Some(Broadcasts::sample_operators()))
}

async fn broadcast_to_all() -> Broadcasts {
    broadcaster(Broadcasts::sample_destinations(), Some(Broadcasts::sample_operators()))
}

domain::store_contracts!(
    #[tokio::test]
    crate::memory
);
domain::ledger_contract!(
    #[tokio::test]
    crate::memory
);
domain::ledger_audit_contract!(
    #[tokio::test]
    crate::memory
);
domain::blob_store_contract!(
    #[tokio::test]
    crate::memory_blobs
);
domain::usage_journal_contract!(
    #[tokio::test]
    crate::memory_journals
);
domain::trace_encoder_contract!(
    #[tokio::test]
    crate::plain_traces
);
domain::decision_provider_contract!(
    #[tokio::test]
    crate::memory_provider
);
domain::remote_provider_contract!(
    #[tokio::test]
    crate::memory_remote_provider
);
domain::rate_limiter_contract!(
    #[tokio::test]
    crate::memory_rate_limiter
);
domain::catalogue_contract!(
    #[tokio::test]
    crate::memory_catalogue
);
domain::guardrail_policies_contract!(
    #[tokio::test]
    crate::memory_policies
);
domain::message_sender_contract!(
    #[tokio::test]
    crate::memory_sender
);
domain::workers_contract!(
    #[tokio::test]
    crate::inline_executor
);

mod no_broadcast {
    domain::broadcast_contract!(
        #[tokio::test]
        crate::broadcast_without_destinations
    );
}
mod broadcaster_to_destinations {
    domain::broadcast_contract!(
        #[tokio::test]
        crate::broadcast_to_destinations
    );
}
mod broadcaster_to_operators {
    domain::broadcast_contract!(
        #[tokio::test]
        crate::broadcast_to_operators
    );
}
mod broadcaster_to_all {
    domain::broadcast_contract!(
        #[tokio::test]
        crate::broadcast_to_all
    );
}

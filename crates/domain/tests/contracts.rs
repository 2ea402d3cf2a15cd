//! The fakes keep the same contracts as the real adapters.

use domain::observability::TraceEncoder;
use domain::testing::PlainTraceEncoder;
use domain::testing::contract::{Blobs, Journals, Stores};

async fn memory() -> Stores {
    Stores::memory()
}

async fn memory_blobs() -> Blobs {
    Blobs::memory()
}

async fn memory_journals() -> Journals {
    Journals::memory()
}

async fn plain_traces() -> Box<dyn TraceEncoder> {
    Box::new(PlainTraceEncoder)
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

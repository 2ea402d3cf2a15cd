//! The fakes keep the same contracts as the real adapters.

use domain::testing::contract::{Blobs, Stores};

async fn memory() -> Stores {
    Stores::memory()
}

async fn memory_blobs() -> Blobs {
    Blobs::memory()
}

domain::store_contracts!(
    #[tokio::test]
    crate::memory
);
domain::blob_store_contract!(
    #[tokio::test]
    crate::memory_blobs
);

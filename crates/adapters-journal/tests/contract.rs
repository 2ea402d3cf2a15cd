//! The contract of the ports on a real disk.

use std::sync::Arc;

use adapters_journal::testing::LocalMachine;
use domain::testing::FixedClock;
use domain::testing::contract::Journals;
use uuid::Uuid;

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
async fn local() -> Journals {
    let machine = LocalMachine::new(Uuid::from_u128(1), FixedClock::default()).unwrap();
    Journals { machine: Arc::new(machine), keep: Box::new(()) }
}

domain::usage_journal_contract!(
    #[tokio::test]
    crate::local
);

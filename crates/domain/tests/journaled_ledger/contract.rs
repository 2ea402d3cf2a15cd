//! The contract of a ledger, and the cases of processes that fail.

use std::sync::Arc;
use std::time::Duration;

use domain::budget::{JournaledLedger, LedgerSettings};
use domain::ids::ProcessId;
use domain::testing::contract::{LedgerMachine, Stores};
use domain::testing::{JournalBounds, PromptLedger, create_time_without_timer};

async fn prompt() -> Stores {
    let LedgerMachine { stores, journals, .. } = LedgerMachine::memory();
    let process = ProcessId::from_uuid(uuid::Uuid::from_u128(1));
    let ledger = JournaledLedger::new(
        Arc::clone(&stores.budget),
        journals.start(process, JournalBounds::default()),
        create_time_without_timer(&stores.clock),
        Arc::clone(&stores.limits),
        LedgerSettings { limits_recheck: Duration::ZERO, ..LedgerSettings::default() },
    );
    let ledger = PromptLedger(Arc::new(ledger));
    let (limits, ledger) = (Arc::new(ledger.clone()), Arc::new(ledger));
    Stores { ledger, limits, ..stores }
}

async fn machine() -> LedgerMachine {
    LedgerMachine::memory()
}

domain::journaled_ledger_contract!(
    #[tokio::test]
    crate::contract::prompt
);
domain::ledger_machine_contract!(
    #[tokio::test]
    crate::contract::machine
);

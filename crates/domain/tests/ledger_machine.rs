//! The ledger under random sequences of operations.

use domain::testing::contract::{LedgerMachine, LedgerStep, Stores, excess_script, ledger_script, usage_script};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(200, ProptestConfig::default().cases)))]

    #[test]
    fn ledger_equals_simple_model_after_any_steps(draws in vec(any::<(u8, u8, u8)>(), 1..120)) {
        let steps: Vec<LedgerStep> =
            draws.into_iter().map(|(kind, what, amount)| LedgerStep::drawn(kind, what, amount)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { ledger_script(&Stores::memory(), &steps).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(250, ProptestConfig::default().cases)))]

    #[test]
    fn limit_is_exceeded_by_excesses_in_flight_alone(seed: u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(excess_script(&LedgerMachine::memory(), seed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(200, ProptestConfig::default().cases)))]

    #[test]
    fn sums_and_pages_equal_records_after_any_steps(seed: u64, steps in 1..80_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(usage_script(&Stores::memory(), seed, steps));
    }
}

#[tokio::test]
async fn scripts_by_seed_hold_as_well() {
    for seed in 0..50 {
        ledger_script(&Stores::memory(), &LedgerStep::script(seed, 150)).await;
    }
}

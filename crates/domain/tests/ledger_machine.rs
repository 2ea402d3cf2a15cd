//! The ledger under any order of anything.

use domain::testing::contract::{LedgerStep, Stores, ledger_script};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(200, ProptestConfig::default().cases)))]

    #[test]
    fn whatever_happens_the_ledger_is_what_a_list_of_it_comes_to(draws in vec(any::<(u8, u8, u8)>(), 1..120)) {
        let steps: Vec<LedgerStep> =
            draws.into_iter().map(|(kind, what, amount)| LedgerStep::drawn(kind, what, amount)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { ledger_script(&Stores::memory(), &steps).await });
    }
}

#[tokio::test]
async fn scripts_by_seed_hold_as_well() {
    for seed in 0..50 {
        ledger_script(&Stores::memory(), &LedgerStep::script(seed, 150)).await;
    }
}

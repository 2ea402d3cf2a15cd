//! Charges that the ledger could not write.

use std::sync::atomic::Ordering;

use super::fixture::*;
use super::recording_ledger::{RecordingLedger, bound, key, setup};
use super::*;

/// A gateway whose ledger rejects charges.
async fn gateway(limit: Option<i64>) -> (TestGateway, Arc<RecordingLedger>) {
    let ledger = RecordingLedger::new(None, &[limit]).await;
    ledger.rejects_charges.store(true, Ordering::SeqCst);
    (setup(&ledger).build(), ledger)
}

fn unlimited() -> InferenceKey {
    InferenceKey::for_tests(key(1).id(), key(1).workspace_id())
}

#[tokio::test(start_paused = true)]
async fn request_is_unavailable_and_settled_once_when_its_record_is_not_written() {
    for (limit, key) in [(None, unlimited()), (Some(1_000), key(1))] {
        let (gateway, ledger) = gateway(limit).await;
        let pending = gateway.send_with(key, nouls(1)).await;
        gateway.answer(0, 30).await;
        assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::Unavailable, "no answer without a record");
        assert_eq!((ledger.records().await, ledger.settle_calls.load(Ordering::SeqCst)), (vec![], 1));
        if limit.is_some() {
            assert_eq!(ledger.spent_and_held(1).await, (0, bound(&nouls(1))), "the hold stays");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn charge_of_disconnected_client_is_passed_to_the_ledger_when_its_record_is_not_written() {
    let (gateway, ledger) = gateway(None).await;
    let pending = gateway.send_with(unlimited(), nouls(1)).await;
    pending.disconnect();
    run_until_idle().await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(ledger.settle_calls.load(Ordering::SeqCst), 1);
}

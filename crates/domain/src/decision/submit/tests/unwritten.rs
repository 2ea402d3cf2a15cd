//! Charges that the ledger could not write.

use std::sync::atomic::Ordering;

use super::books::{Books, bound, key, plan};
use super::stage::*;
use super::*;

/// A world whose ledger writes no records.
async fn world(limit: Option<i64>) -> (World, Arc<Books>) {
    let books = Books::new(None, &[limit]).await;
    books.takes_no_records.store(true, Ordering::SeqCst);
    (plan(&books).build(), books)
}

fn unlimited() -> InferenceKey {
    InferenceKey::for_tests(key(1).id(), key(1).workspace_id())
}

#[tokio::test]
async fn request_is_unavailable_and_settled_once_when_its_record_is_not_written() {
    for (limit, key) in [(None, unlimited()), (Some(1_000), key(1))] {
        let (world, books) = world(limit).await;
        let asked = world.ask_with(key, nouls(1)).await;
        world.answer(0, 30).await;
        assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable, "no answer without a record");
        assert_eq!((books.records().await, books.settle_calls.load(Ordering::SeqCst)), (vec![], 1));
        if limit.is_some() {
            assert_eq!(books.standing(1).await, (0, bound(&nouls(1))), "the hold stays");
        }
    }
}

#[tokio::test]
async fn charge_of_disconnected_client_is_passed_to_the_ledger_when_its_record_is_not_written() {
    let (world, books) = world(None).await;
    let asked = world.ask_with(unlimited(), nouls(1)).await;
    asked.leave();
    settle().await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(books.settle_calls.load(Ordering::SeqCst), 1);
}

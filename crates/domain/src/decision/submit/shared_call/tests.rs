use super::*;
use std::future::{Pending, pending, ready};

type Flight = SingleFlight<u8, u8>;

/// A client that stays connected.
fn connected() -> Pending<()> {
    pending()
}

/// Joins the call in flight, which has to exist.
fn join(flight: &Flight) -> (Shared<Call<u8>>, Participant<u8, u8>) {
    flight.enter(1, |_| -> BoxFuture<'static, u8> { panic!("it is in flight") })
}

#[tokio::test]
async fn entry_is_removed_when_call_ends_is_dropped_or_panics() {
    let flight = Flight::default();
    let result = flight.join(1, connected(), |_| async { 7 }).await;
    assert_eq!((*result.value, result.index, result.participants), (7, 0, 1));
    assert!(lock(&flight.calls).is_empty(), "it ended");

    {
        let endless = flight.join(2, connected(), |_| pending());
        let never_polled = flight.join(3, connected(), |_| pending());
        tokio::select! {
            biased;
            _ = endless => panic!("it does not end"),
            () = ready(()) => {}
        }
        drop(never_polled);
        assert!(lock(&flight.calls).is_empty(), "its only participant was dropped");
    }

    let broken = flight.join(4, connected(), |_| async { panic!("a defect") });
    assert!(std::panic::AssertUnwindSafe(broken).catch_unwind().await.is_err());
    assert!(lock(&flight.calls).is_empty(), "it panicked");
}

#[tokio::test]
async fn join_starts_new_call_after_panic() {
    let flight = Flight::default();
    let (one, first) = flight.enter(1, |_| async { panic!("a defect") });
    let (two, second) = join(&flight);
    assert!(std::panic::AssertUnwindSafe(one).catch_unwind().await.is_err());
    assert!(lock(&flight.calls).is_empty(), "though both still participate");
    drop((two, first, second));
}

#[tokio::test]
async fn call_cannot_be_joined_when_all_participants_have_disconnected() {
    let flight = Flight::default();
    let (one, first) = flight.enter(1, |_| pending());
    let (_two, second) = join(&flight);
    let participants = Arc::clone(&first.of);
    let mut disconnected = std::pin::pin!(participants.disconnected());
    assert!(disconnected.as_mut().now_or_never().is_none());
    first.disconnect();
    assert!(disconnected.as_mut().now_or_never().is_none());
    second.disconnect();
    assert!(disconnected.as_mut().now_or_never().is_some());
    let (_three, third) = flight.enter(1, |_| pending());
    assert!(!Arc::ptr_eq(&third.of, &participants), "it is another call");
    drop((one, first, second));
    assert_eq!(lock(&flight.calls).len(), 1, "the later call of the same key stays");
    drop(third);
}

#[tokio::test]
async fn participants_share_one_value_and_have_different_indexes() {
    let flight = Flight::default();
    let (started, gate) = tokio::sync::oneshot::channel::<()>();
    let first = flight.join(1, connected(), |_| async move {
        gate.await.unwrap();
        9
    });
    let second = flight.join(1, ready(()), |_| -> BoxFuture<'static, u8> { panic!("it is in flight") });
    let (first, second, ()) = tokio::join!(biased; first, second, async { started.send(()).unwrap() });
    assert!(Arc::ptr_eq(&first.value, &second.value));
    let mut indexes = [first.index, second.index];
    indexes.sort_unstable();
    assert_eq!((indexes, first.participants, second.participants), ([0, 1], 2, 2));
}

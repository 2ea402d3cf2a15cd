//! The bound on the bytes that records of a workspace take in a day.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::stage::*;
use super::*;
use crate::decision::RecordQuotaExceeded;

const LIMIT: u64 = 10_000;

/// A ledger that counts nothing itself: it reports a figure, or fails, and knows how often it was read.
#[derive(Default)]
struct Figures {
    bytes: AtomicU64,
    is_away: std::sync::atomic::AtomicBool,
    read: AtomicUsize,
}

fn world(figures: &Arc<Figures>) -> World {
    let mut ledger = granting_ledger();
    ledger.expect_settle().returning(|_| Ok(()));
    let (mut volumes, read) = (MockRecordVolumeReader::new(), Arc::clone(figures));
    volumes.expect_recorded_bytes().returning(move |_| {
        read.read.fetch_add(1, Ordering::SeqCst);
        if read.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("away"));
        }
        Ok(read.bytes.load(Ordering::SeqCst))
    });
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a")]);
    plan.settings.max_record_bytes_per_day = Some(LIMIT);
    plan.ledger = Some(Arc::new(ledger));
    plan.volumes = Arc::new(volumes);
    plan.build()
}

/// A request whose trace has so many bytes.
fn traced(bytes: usize) -> DecisionRequest {
    let trace = Json::object([("a", Json::string(&"x".repeat(bytes - 8)).text())]);
    assert_eq!(trace.text().len(), bytes);
    DecisionRequest { trace: Some(trace), ..nouls(1) }
}

/// Asks, and lets the provider answer where it is called.
async fn ask(world: &World, workspace: u64, bytes: usize) -> Result<(), RecordQuotaExceeded> {
    let before = world.upstreams().len();
    let asked = world.ask_in(workspace, traced(bytes)).await;
    if world.upstreams().len() > before {
        world.answer(before, 1).await;
    }
    match asked.end().await {
        Ok(_) => Ok(()),
        Err(SubmitDecisionError::RecordQuotaExceeded(full)) => {
            assert_eq!(world.upstreams().len(), before, "no provider is called");
            Err(full)
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn records_of_this_process_count_at_once_and_those_of_others_within_a_second() {
    let figures = Arc::new(Figures::default());
    let world = world(&figures);
    assert_eq!(ask(&world, 900, 6_000).await, Ok(()));
    assert_eq!(ask(&world, 900, 6_000).await, Ok(()), "the bound is not reached yet");
    let full = ask(&world, 900, 10).await.unwrap_err();
    assert!(full.limit == LIMIT && full.used > 12_000, "{full:?}");
    assert_eq!(figures.read.load(Ordering::SeqCst), 1, "the figure of the store is read once a second");
    assert_eq!(ask(&world, 901, 6_000).await, Ok(()), "another workspace has its own");

    // The figure of the store takes the place of what was added.
    figures.bytes.store(9_999, Ordering::SeqCst);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&world, 900, 10).await, Ok(()));
    figures.bytes.store(LIMIT, Ordering::SeqCst);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&world, 900, 10).await.unwrap_err().used, LIMIT, "the bound itself is reached");
    let status = world.record_quota_status();
    assert_eq!((status.largest_bytes > 0, status.rejected), (true, 2));
}

#[tokio::test]
async fn bound_begins_again_with_the_next_utc_day() {
    let figures = Arc::new(Figures::default());
    figures.bytes.store(LIMIT, Ordering::SeqCst);
    let world = world(&figures);
    let full = ask(&world, 900, 10).await.unwrap_err();
    assert_eq!(full.resets_at, crate::budget::ResetInterval::Daily.end_of(world.clock.now()));
    assert_eq!(full.resets_in, (full.resets_at - world.clock.now()).to_std().unwrap());
    world.clock.advance(full.resets_in);
    figures.bytes.store(0, Ordering::SeqCst);
    assert_eq!(ask(&world, 900, 10).await, Ok(()));
}

#[tokio::test]
async fn last_known_figure_counts_while_the_store_does_not_answer() {
    let figures = Arc::new(Figures::default());
    let world = world(&figures);
    figures.is_away.store(true, Ordering::SeqCst);
    assert_eq!(ask(&world, 900, 9_000).await, Ok(()));
    assert_eq!(ask(&world, 900, 2_000).await, Ok(()));
    world.clock.advance(Duration::from_secs(1));
    assert!(ask(&world, 900, 10).await.is_err(), "what this process added is not forgotten");
    assert_eq!(figures.read.load(Ordering::SeqCst), 2);
}

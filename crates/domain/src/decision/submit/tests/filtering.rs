//! Content filters on the request's thread and on workers, and requests whose filters do not finish.

use super::fixture::*;
use super::guardrails::{about, emails, guardrail, under};
use super::*;
use crate::decision::{FilteringError, MockBroadcast, MockMetrics, TraceContent};
use crate::guardrail::{ContentFilter, GuardrailRules};
use crate::system::{InlineExecutor, MockWorkers, TaskError, Work, WorkOwner};
use crate::usage::FilterAction;

/// The most bytes that one to eight filters scan on the request's thread.
const MAX_INLINE_BYTES: usize = 16 << 10;

fn redacting(workers: impl Workers + 'static) -> GatewaySetup {
    GatewaySetup { workers: Arc::new(workers), ..under(guardrail(emails(FilterAction::Redact))).0 }
}

/// A request with a provider input of `bytes` bytes.
fn of_bytes(bytes: usize) -> DecisionRequest {
    let address = "from eve@example.com ";
    let around = about("").provider_input.len_bytes();
    let request = about(&format!("{address}{}", ".".repeat(bytes - around - address.len())));
    assert_eq!(request.provider_input.len_bytes(), bytes);
    request
}

fn unused_workers() -> MockWorkers {
    let mut workers = MockWorkers::new();
    workers.expect_run().never();
    workers
}

fn failing_workers(end: Result<(), TaskError>) -> MockWorkers {
    let mut workers = MockWorkers::new();
    workers.expect_run().times(1).returning(move |_, _| end);
    workers
}

/// Workers that never run a task.
struct StalledWorkers;

#[async_trait]
impl Workers for StalledWorkers {
    async fn run(&self, _: WorkOwner, _: Work) -> Result<(), TaskError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn small_input_is_scanned_on_request_thread() {
    let gateway = redacting(unused_workers()).build();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES)).await;
    let sent = gateway.call(0).provider_input;
    assert!(sent.state.as_ref().unwrap().text().contains("from [EMAIL]"));
    assert!(gateway.timer.waiting().is_empty(), "it needs no timer either");
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn large_input_is_scanned_on_workers() {
    let mut workers = MockWorkers::new();
    workers
        .expect_run()
        .times(1)
        .withf(|owner, _| *owner == WorkOwner::Workspace(WorkspaceId::from_uuid(SequentialIds::uuid(900))))
        .returning(|_, work| {
            work();
            Ok(())
        });
    let gateway = redacting(workers).build();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await;
    let (_, policy) = under(guardrail(emails(FilterAction::Redact)));
    let sent = gateway.call(0).provider_input;
    assert_eq!(sent, policy.filter(&of_bytes(MAX_INLINE_BYTES + 1).provider_input).unwrap().provider_input);
    assert!(sent.state.as_ref().unwrap().text().contains("from [EMAIL]"));
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn inline_scan_limit_depends_on_filter_count() {
    let content_filters = (0..64)
        .map(|number| ContentFilter { pattern: format!("needle{number}"), label: None, action: FilterAction::Redact })
        .collect();
    let many = || guardrail(GuardrailRules { content_filters, ..GuardrailRules::default() });
    let (setup, _) = under(many());
    let gateway = GatewaySetup { workers: Arc::new(failing_workers(Err(TaskError::Stopped))), ..setup }.build();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES / 8)).await;
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
    let rejected = gateway.send(of_bytes(MAX_INLINE_BYTES / 8 + 1)).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn input_is_not_scanned_without_filters() {
    let (under_no_filter, _) = under(guardrail(GuardrailRules::default()));
    let under_nothing = GatewaySetup { policies: Arc::new(NoGuardrails), ..redacting(unused_workers()) };
    for setup in [GatewaySetup { workers: Arc::new(unused_workers()), ..under_no_filter }, under_nothing] {
        let gateway = setup.build();
        let pending = gateway.send(of_bytes(1 << 20)).await;
        gateway.answer(0, 1).await;
        pending.end().await.unwrap();
    }
}

/// In the last case, the workers report success without running the task.
#[rstest]
#[case(Err(TaskError::Panicked), ErrorKind::Internal)]
#[case(Err(TaskError::Stopped), ErrorKind::Unavailable)]
#[case(Err(TaskError::QueueFull), ErrorKind::RateLimited)]
#[case(Ok(()), ErrorKind::Unavailable)]
#[tokio::test(start_paused = true)]
async fn request_is_not_sent_when_scan_fails(#[case] end: Result<(), TaskError>, #[case] kind: ErrorKind) {
    let gateway = redacting(failing_workers(end)).build();
    let rejected = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), kind);
    assert!(matches!(rejected, SubmitDecisionError::Filtering(FilteringError::TaskFailed(_))), "{rejected:?}");
    assert!(gateway.upstreams().is_empty() && gateway.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn request_times_out_while_filters_run() {
    let gateway = redacting(StalledWorkers).build();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await;
    assert_eq!(gateway.timer.waiting(), [Duration::from_secs(25)]);
    gateway.elapse(Duration::from_secs(25)).await;
    let rejected = pending.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Filtering(FilteringError::TimedOut)), "{rejected:?}");
    assert_eq!(rejected.kind(), ErrorKind::TimedOut);
    assert!(gateway.upstreams().is_empty() && gateway.records().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deadline_of_filters_and_attempts_begins_with_the_request() {
    let mut gateway = redacting(StalledWorkers).build();
    gateway.clock.advance(Duration::from_secs(20));
    gateway.began = Some(Duration::from_secs(2));
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await;
    assert_eq!(gateway.timer.waiting(), [Duration::from_secs(7)], "18 of 25 seconds have passed");
    pending.disconnect();
    pending.end().await.unwrap_err();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES)).await;
    assert_eq!(gateway.call(0).timeout, Duration::from_secs(7));
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
    gateway.began = Some(Duration::ZERO);
    gateway.clock.advance(Duration::from_secs(5));
    let late = gateway.send(of_bytes(MAX_INLINE_BYTES)).await.end().await.unwrap_err();
    assert_eq!((late.kind(), gateway.upstreams().len()), (ErrorKind::TimedOut, 1), "it is not sent any more");
}

#[tokio::test(start_paused = true)]
async fn scan_is_cancelled_when_client_disconnects() {
    let gateway = redacting(StalledWorkers).build();
    let pending = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await;
    pending.disconnect();
    let rejected = pending.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::ClientDisconnected);
    assert!(gateway.upstreams().is_empty() && gateway.records().is_empty());
    assert!(gateway.timer.waiting().is_empty(), "nor is the deadline");
}

#[tokio::test(start_paused = true)]
async fn blocked_scan_on_workers_is_counted_once() {
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().withf(|action| action == "block").times(1).return_const(());
    let setup = under(guardrail(emails(FilterAction::Block))).0;
    let gateway = GatewaySetup { metrics: Arc::new(metrics), ..setup }.build();
    let rejected = gateway.send(of_bytes(MAX_INLINE_BYTES + 1)).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Blocked(_)), "{rejected:?}");
    assert!(gateway.upstreams().is_empty());
}

fn labelled(trace_bytes: usize) -> DecisionRequest {
    let trace = Json::object([("note", Json::string(&"x@example.com ".repeat(trace_bytes / 14)).text())]);
    let clean = request_with(r#"{"q":{"type":"noul","instructions":"?"}}"#);
    DecisionRequest { trace: Some(trace), user: Some("x@example.com".to_owned()), ..clean }
}

/// A broadcaster that accepts labels and records them.
fn recording_broadcaster(kept: &Arc<Mutex<Vec<Option<RequestLabels>>>>) -> MockBroadcast {
    let mut broadcaster = MockBroadcast::new();
    broadcaster.expect_takes_labels().return_const(true);
    let kept = Arc::clone(kept);
    broadcaster.expect_messages().returning(move |_, exchange: &TraceContent<'_>| {
        kept.lock().unwrap().push(exchange.redacted_labels.cloned());
        Vec::new()
    });
    broadcaster
}

async fn labels_of(setup: GatewaySetup, request: DecisionRequest) -> Option<RequestLabels> {
    let kept = Arc::default();
    let gateway = GatewaySetup { broadcaster: Arc::new(recording_broadcaster(&kept)), ..setup }.build();
    let stored = request.user.clone();
    let pending = gateway.send(request).await;
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
    assert_eq!(gateway.record().user, stored, "the record keeps what came");
    let kept = kept.lock().unwrap();
    let [labels] = &kept[..] else { panic!("one message, not {}", kept.len()) };
    labels.clone()
}

#[tokio::test(start_paused = true)]
async fn labels_are_redacted_and_block_nothing_when_filters_block() {
    let setup = under(guardrail(emails(FilterAction::Block))).0;
    let labels = labels_of(setup, labelled(1_000)).await.unwrap();
    assert_eq!(labels.user.as_deref(), Some("[EMAIL]"));
    assert!(!labels.trace.unwrap().text().contains("example.com"));
}

#[tokio::test(start_paused = true)]
async fn labels_are_those_of_the_record_when_no_filter_applies() {
    let setup = under(guardrail(GuardrailRules::default())).0;
    assert_eq!(labels_of(setup, labelled(1_000)).await, None);
}

#[tokio::test(start_paused = true)]
async fn large_labels_are_redacted_on_a_worker() {
    let labels = labels_of(redacting(InlineExecutor), labelled(40_000)).await.unwrap();
    assert!(labels.trace.unwrap().text().contains("[EMAIL] [EMAIL]"));
    let withheld = labels_of(redacting(failing_workers(Err(TaskError::Stopped))), labelled(40_000)).await;
    assert_eq!(withheld, Some(RequestLabels::default()));
}

#[tokio::test(start_paused = true)]
async fn labels_are_not_filtered_when_no_destination_takes_them() {
    let gateway = redacting(unused_workers()).build();
    let pending = gateway.send(labelled(40_000)).await;
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
}

//! Where content filters look through a provider input, and what becomes of one that they did not get to the end of.

use super::guardrails::{about, emails, guardrail, under};
use super::stage::*;
use super::*;
use crate::decision::FilteringError;
use crate::decision::{MockBroadcast, MockMetrics, TraceContent};
use crate::guardrail::{ContentFilter, GuardrailRules};
use crate::system::{InlineExecutor, MockWorkers, TaskError, Work, WorkOwner};
use crate::usage::FilterAction;

/// One filter, or eight, may look through so many bytes where it is asked for.
const PROMPT: usize = 16 << 10;

fn redacting(workers: impl Workers + 'static) -> Plan {
    Plan { workers: Arc::new(workers), ..under(guardrail(emails(FilterAction::Redact))).0 }
}

/// A request whose provider input has so many bytes.
fn of_bytes(bytes: usize) -> DecisionRequest {
    let address = "from eve@example.com ";
    let around = about("").provider_input.len_bytes();
    let request = about(&format!("{address}{}", ".".repeat(bytes - around - address.len())));
    assert_eq!(request.provider_input.len_bytes(), bytes);
    request
}

fn nobody() -> MockWorkers {
    let mut workers = MockWorkers::new();
    workers.expect_run().never();
    workers
}

fn losing(end: Result<(), TaskError>) -> MockWorkers {
    let mut workers = MockWorkers::new();
    workers.expect_run().times(1).returning(move |_, _| end);
    workers
}

/// Never comes to it.
struct Busy;

#[async_trait]
impl Workers for Busy {
    async fn run(&self, _: WorkOwner, _: Work) -> Result<(), TaskError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_small_inquiry_is_looked_through_where_it_is_asked_for() {
    let world = redacting(nobody()).build();
    let asked = world.ask(of_bytes(PROMPT)).await;
    let sent = world.call(0).provider_input;
    assert!(sent.state.as_ref().unwrap().text().contains("from [EMAIL]"));
    assert!(world.bell.waiting().is_empty(), "it needs no timer either");
    world.answer(0, 1).await;
    asked.end().await.unwrap();
}

#[tokio::test]
async fn a_large_one_is_handed_on_and_what_comes_back_is_sent() {
    let mut workers = MockWorkers::new();
    workers
        .expect_run()
        .times(1)
        .withf(|owner, _| *owner == WorkOwner::Workspace(WorkspaceId::from_uuid(SequentialIds::uuid(900))))
        .returning(|_, work| {
            work();
            Ok(())
        });
    let world = redacting(workers).build();
    let asked = world.ask(of_bytes(PROMPT + 1)).await;
    let (_, policy) = under(guardrail(emails(FilterAction::Redact)));
    let sent = world.call(0).provider_input;
    assert_eq!(sent, policy.filter(&of_bytes(PROMPT + 1).provider_input).unwrap().provider_input);
    assert!(sent.state.as_ref().unwrap().text().contains("from [EMAIL]"));
    world.answer(0, 1).await;
    asked.end().await.unwrap();
}

#[tokio::test]
async fn what_is_large_depends_on_how_many_filters_there_are() {
    let content_filters = (0..64)
        .map(|number| ContentFilter { pattern: format!("needle{number}"), label: None, action: FilterAction::Redact })
        .collect();
    let many = || guardrail(GuardrailRules { content_filters, ..GuardrailRules::default() });
    let (plan, _) = under(many());
    let world = Plan { workers: Arc::new(losing(Err(TaskError::Stopped))), ..plan }.build();
    let asked = world.ask(of_bytes(PROMPT / 8)).await;
    world.answer(0, 1).await;
    asked.end().await.unwrap();
    let refused = world.ask(of_bytes(PROMPT / 8 + 1)).await.end().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn where_no_filter_applies_nothing_is_handed_on_however_large() {
    let (under_no_filter, _) = under(guardrail(GuardrailRules::default()));
    let under_nothing = Plan { policies: Arc::new(NoGuardrails), ..redacting(nobody()) };
    for plan in [Plan { workers: Arc::new(nobody()), ..under_no_filter }, under_nothing] {
        let world = plan.build();
        let asked = world.ask(of_bytes(1 << 20)).await;
        world.answer(0, 1).await;
        asked.end().await.unwrap();
    }
}

/// The last says that it is done, and has done nothing.
#[rstest]
#[case(Err(TaskError::Panicked), ErrorKind::Internal)]
#[case(Err(TaskError::Stopped), ErrorKind::Unavailable)]
#[case(Err(TaskError::QueueFull), ErrorKind::RateLimited)]
#[case(Ok(()), ErrorKind::Unavailable)]
#[tokio::test]
async fn what_was_not_looked_through_is_not_sent(#[case] end: Result<(), TaskError>, #[case] kind: ErrorKind) {
    let world = redacting(losing(end)).build();
    let refused = world.ask(of_bytes(PROMPT + 1)).await.end().await.unwrap_err();
    assert_eq!(refused.kind(), kind);
    assert!(matches!(refused, SubmitDecisionError::Filtering(FilteringError::TaskFailed(_))), "{refused:?}");
    assert!(world.upstreams().is_empty() && world.records().is_empty());
}

#[tokio::test]
async fn the_deadline_holds_while_filters_are_at_work() {
    let world = redacting(Busy).build();
    let asked = world.ask(of_bytes(PROMPT + 1)).await;
    assert_eq!(world.bell.waiting(), [Duration::from_secs(25)]);
    world.ring(Duration::from_secs(25)).await;
    let refused = asked.end().await.unwrap_err();
    assert!(matches!(refused, SubmitDecisionError::Filtering(FilteringError::TimedOut)), "{refused:?}");
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(world.upstreams().is_empty() && world.records().is_empty());
}

#[tokio::test]
async fn who_leaves_while_filters_are_at_work_is_not_waited_for() {
    let world = redacting(Busy).build();
    let asked = world.ask(of_bytes(PROMPT + 1)).await;
    asked.leave();
    let refused = asked.end().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ClientDisconnected);
    assert!(world.upstreams().is_empty() && world.records().is_empty());
    assert!(world.bell.waiting().is_empty(), "nor is the deadline");
}

#[tokio::test]
async fn what_blocks_blocks_elsewhere_too_and_is_counted_once() {
    let mut metrics = MockMetrics::new();
    metrics.expect_record_guardrail_action().withf(|action| action == "block").times(1).return_const(());
    let plan = under(guardrail(emails(FilterAction::Block))).0;
    let world = Plan { metrics: Arc::new(metrics), ..plan }.build();
    let refused = world.ask(of_bytes(PROMPT + 1)).await.end().await.unwrap_err();
    assert!(matches!(refused, SubmitDecisionError::Blocked(_)), "{refused:?}");
    assert!(world.upstreams().is_empty());
}

fn labelled(trace_bytes: usize) -> DecisionRequest {
    let trace = Json::object([("note", Json::string(&"x@example.com ".repeat(trace_bytes / 14)).text())]);
    let clean = asking(r#"{"q":{"type":"noul","instructions":"?"}}"#);
    DecisionRequest { trace: Some(trace), user: Some("x@example.com".to_owned()), ..clean }
}

/// A broadcaster that takes labels and keeps those it is given.
fn keeping(kept: &Arc<Mutex<Vec<Option<RequestLabels>>>>) -> MockBroadcast {
    let mut broadcaster = MockBroadcast::new();
    broadcaster.expect_takes_labels().return_const(true);
    let kept = Arc::clone(kept);
    broadcaster.expect_messages().returning(move |_, exchange: &TraceContent<'_>| {
        kept.lock().unwrap().push(exchange.redacted_labels.cloned());
        Vec::new()
    });
    broadcaster
}

async fn labels_of(plan: Plan, request: DecisionRequest) -> Option<RequestLabels> {
    let kept = Arc::default();
    let world = Plan { broadcaster: Arc::new(keeping(&kept)), ..plan }.build();
    let stored = request.user.clone();
    let asked = world.ask(request).await;
    world.answer(0, 1).await;
    asked.end().await.unwrap();
    assert_eq!(world.record().user, stored, "the record keeps what came");
    let kept = kept.lock().unwrap();
    let [labels] = &kept[..] else { panic!("one message, not {}", kept.len()) };
    labels.clone()
}

#[tokio::test]
async fn labels_are_redacted_and_block_nothing_when_filters_block() {
    let plan = under(guardrail(emails(FilterAction::Block))).0;
    let labels = labels_of(plan, labelled(1_000)).await.unwrap();
    assert_eq!(labels.user.as_deref(), Some("[EMAIL]"));
    assert!(!labels.trace.unwrap().text().contains("example.com"));
}

#[tokio::test]
async fn labels_are_those_of_the_record_when_no_filter_applies() {
    let plan = under(guardrail(GuardrailRules::default())).0;
    assert_eq!(labels_of(plan, labelled(1_000)).await, None);
}

#[tokio::test]
async fn large_labels_are_redacted_on_a_worker() {
    let labels = labels_of(redacting(InlineExecutor), labelled(40_000)).await.unwrap();
    assert!(labels.trace.unwrap().text().contains("[EMAIL] [EMAIL]"));
    let withheld = labels_of(redacting(losing(Err(TaskError::Stopped))), labelled(40_000)).await;
    assert_eq!(withheld, Some(RequestLabels::default()));
}

#[tokio::test]
async fn labels_are_not_filtered_when_no_destination_takes_them() {
    let world = redacting(nobody()).build();
    let asked = world.ask(labelled(40_000)).await;
    world.answer(0, 1).await;
    asked.end().await.unwrap();
}

//! Cases of [`Workers`].

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;

use super::super::system::lock;
use super::super::{SequentialIds, join_all};
use crate::ids::WorkspaceId;
use crate::system::{CancelFlag, InlineExecutor, TaskError, Work, WorkOwner, Workers};

suite! {
    /// The cases for every implementation, also one that works on the calling thread.
    workers_cases as workers_contract over Executors {
        run_returns_after_the_work,
        get_returns_the_value,
        panic_is_never_success,
        work_runs_after_a_panic,
        work_of_one_owner_runs_in_order,
        concurrent_work_runs_exactly_once,
        flag_is_not_cancelled_while_the_caller_waits,
    }
}

suite! {
    /// The cases for implementations with threads and queues.
    worker_pool_cases as worker_pool_contract over WorkerPools {
        work_runs_on_another_thread,
        owners_are_scheduled_in_turn,
        owner_has_at_most_half_of_the_threads,
        full_queue_rejects_work_of_its_owner_only,
        dropped_call_removes_queued_work,
        dropped_call_cancels_running_work,
        panic_is_an_error,
    }
}

type Executors = Arc<dyn Workers>;

/// Worker threads with bounded queues.
pub struct WorkerPools {
    /// Starts workers with a number of threads and the longest queue of an owner.
    pub start: Box<dyn Fn(usize, usize) -> Arc<dyn Workers> + Send + Sync>,
}

type Call<'w> = Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send + 'w>>;

/// The time within which a thread must react.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the executor on the calling thread.
pub fn inline_workers() -> Arc<dyn Workers> {
    Arc::new(InlineExecutor)
}

fn owner(number: u64) -> WorkOwner {
    WorkOwner::Workspace(WorkspaceId::from_uuid(SequentialIds::uuid(number)))
}

/// A list that work appends to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn work(&self, name: impl Into<String>) -> Work {
        let (log, name) = (self.clone(), name.into());
        Box::new(move || lock(&log.0).push(name))
    }

    fn names(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// Work that reports its start, and ends when this value is dropped.
struct BlockingWork {
    started: Receiver<()>,
    _release: Sender<()>,
}

impl BlockingWork {
    fn create() -> (Self, Work) {
        let ((start, started), (release, released)) = (channel(), channel());
        let work = move || {
            let _ = start.send(());
            let _ = released.recv();
        };
        (Self { started, _release: release }, Box::new(work))
    }

    fn wait_until_started(&self) {
        self.started.recv_timeout(PATIENCE).expect("the work starts");
    }

    fn has_started(&self) -> bool {
        self.started.try_recv().is_ok()
    }
}

/// Polls a call once.
async fn is_pending<F: Future + Unpin>(call: &mut F) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *call).poll(context).is_pending())).await
}

/// Begins a call that has to wait: the work is running or queued afterwards.
async fn begin(mut call: Call<'_>) -> Call<'_> {
    assert!(is_pending(&mut call).await, "the call waits for its work");
    call
}

async fn run_returns_after_the_work(subject: &Executors) {
    let log = Log::default();
    assert_eq!(subject.run(owner(1), log.work("done")).await, Ok(()));
    assert_eq!(log.names(), ["done"]);
}

async fn get_returns_the_value(subject: &Executors) {
    for number in 0..10 {
        assert_eq!(subject.get(WorkOwner::System, move |_| number * 2).await, Ok(number * 2));
    }
}

async fn panic_is_never_success(subject: &Executors) {
    let call = subject.run(owner(1), Box::new(|| panic!("of the work")));
    let ended = AssertUnwindSafe(call).catch_unwind().await;
    assert!(!matches!(ended, Ok(Ok(()))), "the caller sees that the work did not end");
}

async fn work_runs_after_a_panic(subject: &Executors) {
    for _ in 0..3 {
        let call = subject.run(owner(1), Box::new(|| panic!("of the work")));
        drop(AssertUnwindSafe(call).catch_unwind().await);
    }
    assert_eq!(subject.get(owner(1), |_| 7).await, Ok(7));
}

async fn work_of_one_owner_runs_in_order(subject: &Executors) {
    let log = Log::default();
    let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    for ended in join_all(names.iter().map(|name| subject.run(owner(1), log.work(name)))).await {
        assert_eq!(ended, Ok(()));
    }
    assert_eq!(log.names(), names);
}

async fn concurrent_work_runs_exactly_once(subject: &Executors) {
    let log = Log::default();
    let calls = (0..40).map(|number| subject.run(owner(number % 4), log.work(format!("{number:02}"))));
    for ended in join_all(calls).await {
        assert_eq!(ended, Ok(()));
    }
    let mut names = log.names();
    names.sort();
    assert_eq!(names, (0..40).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

async fn flag_is_not_cancelled_while_the_caller_waits(subject: &Executors) {
    assert_eq!(subject.get(owner(1), CancelFlag::is_cancelled).await, Ok(false));
}

async fn work_runs_on_another_thread(subject: &WorkerPools) {
    let workers = (subject.start)(1, 10);
    let on = workers.get(owner(1), |_| thread::current().id()).await.unwrap();
    assert_ne!(on, thread::current().id(), "the thread of the caller serves other requests");
}

async fn owners_are_scheduled_in_turn(subject: &WorkerPools) {
    let workers = (subject.start)(1, 10);
    let (blocking, work) = BlockingWork::create();
    let log = Log::default();
    let mut calls = vec![begin(workers.run(owner(1), work)).await];
    blocking.wait_until_started();
    for (number, name) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (2, "b2")] {
        calls.push(begin(workers.run(owner(number), log.work(name))).await);
    }
    drop(blocking);
    for ended in join_all(calls).await {
        assert_eq!(ended, Ok(()));
    }
    assert_eq!(log.names(), ["a1", "b1", "a2", "b2", "a3"]);
}

async fn owner_has_at_most_half_of_the_threads(subject: &WorkerPools) {
    let workers = (subject.start)(4, 10);
    let mut calls = Vec::new();
    let mut first = Vec::new();
    for _ in 0..4 {
        let (blocking, work) = BlockingWork::create();
        calls.push(begin(workers.run(owner(1), work)).await);
        first.push(blocking);
    }
    first[0].wait_until_started();
    first[1].wait_until_started();
    let (second, work) = BlockingWork::create();
    calls.push(begin(workers.run(owner(2), work)).await);
    second.wait_until_started();
    assert!(!first[2].has_started() && !first[3].has_started(), "the other threads are for other owners");
    drop((first, second));
    for ended in join_all(calls).await {
        assert_eq!(ended, Ok(()));
    }
}

async fn full_queue_rejects_work_of_its_owner_only(subject: &WorkerPools) {
    let workers = (subject.start)(1, 2);
    let (blocking, work) = BlockingWork::create();
    let log = Log::default();
    let mut calls = vec![begin(workers.run(owner(1), work)).await];
    blocking.wait_until_started();
    for name in ["a1", "a2"] {
        calls.push(begin(workers.run(owner(1), log.work(name))).await);
    }
    assert_eq!(workers.run(owner(1), log.work("rejected")).await, Err(TaskError::QueueFull));
    calls.push(begin(workers.run(owner(2), log.work("b1"))).await);
    drop(blocking);
    for ended in join_all(calls).await {
        assert_eq!(ended, Ok(()));
    }
    assert_eq!(log.names(), ["a1", "b1", "a2"], "rejected work never runs");
    assert_eq!(workers.run(owner(1), log.work("later")).await, Ok(()), "the queue has room again");
}

async fn dropped_call_removes_queued_work(subject: &WorkerPools) {
    let workers = (subject.start)(1, 1);
    let (blocking, work) = BlockingWork::create();
    let log = Log::default();
    let running = begin(workers.run(owner(1), work)).await;
    blocking.wait_until_started();
    drop(begin(workers.run(owner(1), log.work("dropped"))).await);
    let queued = begin(workers.run(owner(1), log.work("queued"))).await;
    drop(blocking);
    assert_eq!(join_all([running, queued]).await, [Ok(()), Ok(())]);
    assert_eq!(log.names(), ["queued"], "the dropped work made room and never ran");
}

async fn dropped_call_cancels_running_work(subject: &WorkerPools) {
    let workers = (subject.start)(1, 10);
    let ((start, started), (end, ended)) = (channel(), channel());
    let scan = move |flag: &CancelFlag| {
        let _ = start.send(());
        while !flag.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = end.send(());
    };
    let mut call = Box::pin(workers.get(owner(1), scan));
    assert!(is_pending(&mut call).await);
    started.recv_timeout(PATIENCE).expect("the work starts");
    drop(call);
    ended.recv_timeout(PATIENCE).expect("the work sees the flag");
    assert_eq!(workers.get(owner(1), |_| 7).await, Ok(7), "the thread is free again");
}

async fn panic_is_an_error(subject: &WorkerPools) {
    let workers = (subject.start)(1, 10);
    let ended = workers.run(owner(1), Box::new(|| panic!("of the work"))).await;
    assert_eq!(ended, Err(TaskError::Panicked));
}

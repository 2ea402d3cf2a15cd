use super::*;
use domain::ids::WorkspaceId;
use domain::system::CancelFlag;
use domain::testing::contract::WorkerPools;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{ThreadId, current};
use std::time::Duration;
use tokio::task::JoinSet;

const A: u8 = 1;
const B: u8 = 2;

fn owner(number: u8) -> WorkOwner {
    WorkOwner::Workspace(format!("00000000-0000-7000-8000-0000000000{number:02x}").parse::<WorkspaceId>().unwrap())
}

fn workers(threads: usize) -> FairWorkers {
    FairWorkers::start(WorkerSettings { threads, queue_per_owner: 100 }).unwrap()
}

async fn two_threads() -> Arc<dyn Workers> {
    Arc::new(workers(2))
}

async fn any_pool() -> WorkerPools {
    let start = |threads, queue_per_owner| -> Arc<dyn Workers> {
        Arc::new(FairWorkers::start(WorkerSettings { threads, queue_per_owner }).unwrap())
    };
    WorkerPools { start: Box::new(start) }
}

domain::workers_contract!(
    #[tokio::test]
    crate::workers::tests::two_threads
);
domain::worker_pool_contract!(
    #[tokio::test]
    crate::workers::tests::any_pool
);

/// Polls until the condition holds.
async fn until(condition: impl Fn() -> bool) {
    let polls = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), polls).await.unwrap();
}

/// Returns a task that ends when the sender is dropped, and that counts its start.
fn blocking_task(begun: &Arc<AtomicUsize>) -> (mpsc::Sender<()>, Work) {
    let (let_go, wait) = mpsc::channel::<()>();
    let begun = Arc::clone(begun);
    let work = move || {
        begun.fetch_add(1, Ordering::SeqCst);
        let _ = wait.recv();
    };
    (let_go, Box::new(work))
}

/// Waiting calls, each added to the queue before the next.
struct Calls {
    workers: FairWorkers,
    waiting: JoinSet<Result<(), TaskError>>,
    order: Arc<Mutex<Vec<String>>>,
}

impl Calls {
    fn of(workers: &FairWorkers) -> Self {
        Self { workers: workers.clone(), waiting: JoinSet::new(), order: Arc::default() }
    }

    async fn add(&mut self, owner: WorkOwner, work: Work) {
        let before = self.workers.handle.0.lock().next_id;
        let workers = self.workers.clone();
        self.waiting.spawn(async move { workers.run(owner, work).await });
        until(|| self.workers.handle.0.lock().next_id > before).await;
    }

    /// Adds a task that records its name.
    async fn add_named(&mut self, number: u8, name: &str) {
        let (order, name) = (Arc::clone(&self.order), name.to_owned());
        self.add(owner(number), Box::new(move || order.lock().unwrap().push(name))).await;
    }

    async fn end(&mut self) -> Vec<String> {
        while let Some(ended) = self.waiting.join_next().await {
            assert_eq!(ended.unwrap(), Ok(()));
        }
        self.order.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn run_executes_task_on_worker_thread() {
    let on: Arc<Mutex<Option<ThreadId>>> = Arc::default();
    let seen = Arc::clone(&on);
    let work = Box::new(move || *seen.lock().unwrap() = Some(current().id()));
    workers(2).run(WorkOwner::System, work).await.unwrap();
    assert_ne!(on.lock().unwrap().expect("it was done"), current().id());
}

#[tokio::test]
async fn tasks_of_owners_alternate() {
    let workers = workers(1);
    let mut calls = Calls::of(&workers);
    let begun = Arc::default();
    let (let_go, work) = blocking_task(&begun);
    calls.add(owner(A), work).await;
    until(|| begun.load(Ordering::SeqCst) == 1).await;
    for number in 2..=12 {
        calls.add_named(A, &format!("a{number}")).await;
    }
    calls.add_named(B, "b1").await;
    calls.add_named(B, "b2").await;
    calls.add(WorkOwner::System, Box::new(|| ())).await;
    assert_eq!(workers.status().waiting, 14);
    drop(let_go);
    let order = calls.end().await;
    // The task of B waits for two tasks of A, not for all twelve.
    assert_eq!(order[..5], ["a2", "b1", "a3", "b2", "a4"]);
    assert_eq!(order[5..], ["a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12"], "an owner's order is kept");
}

#[tokio::test]
async fn owner_uses_at_most_half_of_threads() {
    let workers = workers(4);
    let mut calls = Calls::of(&workers);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let mut keys = Vec::new();
    for _ in 0..12 {
        let (let_go, work) = blocking_task(&of_a);
        calls.add(owner(A), work).await;
        keys.push(let_go);
    }
    until(|| of_a.load(Ordering::SeqCst) == 2).await;
    let (let_go, work) = blocking_task(&of_b);
    calls.add(owner(B), work).await;
    until(|| of_b.load(Ordering::SeqCst) == 1).await;
    let status = workers.status();
    assert_eq!((status.threads, status.busy, status.waiting), (4, 3, 10), "A has no third thread");
    drop(let_go);
    drop(keys);
    calls.end().await;
    assert_eq!(of_a.load(Ordering::SeqCst), 12);
    assert_eq!(workers.status(), WorkerStatus { threads: 4, ..WorkerStatus::default() });
}

#[tokio::test]
async fn queue_is_limited_per_owner() {
    let workers = FairWorkers::start(WorkerSettings { threads: 1, queue_per_owner: 2 }).unwrap();
    let mut calls = Calls::of(&workers);
    let begun = Arc::default();
    let (let_go, work) = blocking_task(&begun);
    calls.add(owner(A), work).await;
    until(|| begun.load(Ordering::SeqCst) == 1).await;
    calls.add_named(A, "a2").await;
    calls.add_named(A, "a3").await;
    assert_eq!(workers.run(owner(A), Box::new(|| ())).await, Err(TaskError::QueueFull));
    calls.add_named(B, "b1").await;
    assert_eq!(workers.status().rejected, 1);
    drop(let_go);
    assert_eq!(calls.end().await, ["a2", "b1", "a3"]);
    assert_eq!(workers.run(owner(A), Box::new(|| ())).await, Ok(()));
}

#[tokio::test]
async fn panic_is_error_and_keeps_thread() {
    let workers = workers(1);
    for _ in 0..3 {
        assert_eq!(workers.run(owner(A), Box::new(|| panic!("as it should"))).await, Err(TaskError::Panicked));
    }
    assert_eq!(workers.run(owner(A), Box::new(|| ())).await, Ok(()));
}

#[tokio::test]
async fn waiting_task_is_removed_when_caller_leaves() {
    let workers = workers(1);
    let begun = Arc::default();
    let (let_go, work) = blocking_task(&begun);
    let mut first = Calls::of(&workers);
    first.add(owner(A), work).await;
    until(|| begun.load(Ordering::SeqCst) == 1).await;
    let mut second = Calls::of(&workers);
    second.add_named(A, "never").await;
    second.add_named(B, "never").await;
    second.waiting.shutdown().await;
    assert_eq!((workers.status().waiting, workers.status().abandoned), (0, 2), "its room is free at once");
    // The first caller has left as well, and its task is still running.
    first.waiting.shutdown().await;
    assert_eq!(workers.status().busy, 1);
    drop(let_go);
    assert_eq!(workers.run(owner(A), Box::new(|| ())).await, Ok(()));
    assert!(second.order.lock().unwrap().is_empty());
}

#[tokio::test]
async fn running_task_is_notified_when_caller_leaves() {
    let workers: Arc<dyn Workers> = Arc::new(workers(1));
    let (began, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_began, of_ended) = (Arc::clone(&began), Arc::clone(&ended));
    let scan = move |flag: &CancelFlag| {
        of_began.fetch_add(1, Ordering::SeqCst);
        while !flag.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        of_ended.fetch_add(1, Ordering::SeqCst);
    };
    let mut waiting = JoinSet::new();
    let of_scan = Arc::clone(&workers);
    waiting.spawn(async move { of_scan.get(owner(A), scan).await });
    until(|| began.load(Ordering::SeqCst) == 1).await;
    waiting.shutdown().await;
    until(|| ended.load(Ordering::SeqCst) == 1).await;
    assert_eq!(workers.get(owner(A), |_| 7).await, Ok(7), "the thread is free again");
}

#[tokio::test]
async fn waiting_task_fails_when_threads_end() {
    let workers = workers(1);
    let shared = Arc::clone(&workers.handle.0);
    let begun = Arc::default();
    let (let_go, work) = blocking_task(&begun);
    let (end, first) = oneshot::channel();
    shared.add(owner(A), work, end).unwrap();
    until(|| begun.load(Ordering::SeqCst) == 1).await;
    let (end, second) = oneshot::channel();
    shared.add(owner(A), Box::new(|| ()), end).unwrap();
    drop(workers);
    assert!(second.await.is_err());
    drop(let_go);
    assert_eq!(first.await.unwrap(), Ok(()), "what has begun ends");
    let (end, _) = oneshot::channel();
    assert_eq!(shared.add(owner(A), Box::new(|| ()), end), Err(TaskError::Stopped));
    until(|| Arc::strong_count(&shared) == 1).await;
}

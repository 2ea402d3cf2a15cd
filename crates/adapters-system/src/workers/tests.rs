use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{ThreadId, current};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};

/// Lets every task go on until it waits for something.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Work that ends when the sender is dropped, and that says when it begins.
fn held(begun: &Arc<AtomicUsize>) -> (mpsc::Sender<()>, Work) {
    let (let_go, wait) = mpsc::channel::<()>();
    let begun = Arc::clone(begun);
    let work = move || {
        begun.fetch_add(1, Ordering::SeqCst);
        let _ = wait.recv();
    };
    (let_go, Box::new(work))
}

async fn until(begun: &AtomicUsize, count: usize) {
    while begun.load(Ordering::SeqCst) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn work_is_done_on_another_thread_before_it_returns() {
    let on: Arc<Mutex<Option<ThreadId>>> = Arc::default();
    let told = Arc::clone(&on);
    BlockingWorkers::new().run(Box::new(move || *told.lock().unwrap() = Some(current().id()))).await.unwrap();
    let on = on.lock().unwrap().expect("it was done");
    assert_ne!(on, current().id());
}

#[tokio::test]
async fn who_waits_does_not_keep_its_thread() {
    let begun = Arc::default();
    let (let_go, work) = held(&begun);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { BlockingWorkers::at_once(1).run(work).await });
    // This test has one thread: it goes on while the work is at it.
    until(&begun, 1).await;
    drop(let_go);
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), Ok(()));
}

#[tokio::test]
async fn so_much_at_a_time_and_the_rest_in_its_order() {
    let workers = BlockingWorkers::at_once(2);
    let begun = Arc::default();
    let mut waiting = JoinSet::new();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (let_go, work) = held(&begun);
        let workers = workers.clone();
        waiting.spawn(async move { workers.run(work).await });
        keys.push(let_go);
    }
    until(&begun, 2).await;
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    for number in 0..8 {
        let (workers, order) = (workers.clone(), Arc::clone(&order));
        waiting.spawn(async move { workers.run(Box::new(move || order.lock().unwrap().push(number))).await });
        settle().await;
    }
    assert!(order.lock().unwrap().is_empty(), "there is no place for a third");
    // One place alone, so that one follows the other.
    keys.pop();
    while waiting.len() > 1 {
        assert_eq!(waiting.join_next().await.unwrap().unwrap(), Ok(()));
    }
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    drop(keys);
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), Ok(()));
}

#[tokio::test]
async fn a_panic_is_an_error_and_takes_no_place_with_it() {
    let workers = BlockingWorkers::at_once(1);
    for _ in 0..3 {
        assert_eq!(workers.run(Box::new(|| panic!("as it should"))).await, Err(WorkLost::Panicked));
    }
    assert_eq!(workers.run(Box::new(|| ())).await, Ok(()));
}

#[tokio::test]
async fn who_leaves_is_not_worked_for_unless_it_has_begun_and_that_keeps_its_place() {
    let workers = BlockingWorkers::at_once(1);
    let begun = Arc::default();
    let (let_go, work) = held(&begun);
    let mut first = JoinSet::new();
    let of_first = workers.clone();
    first.spawn(async move { of_first.run(work).await });
    until(&begun, 1).await;
    let mut second = JoinSet::new();
    let (of_second, count) = (workers.clone(), Arc::clone(&begun));
    second.spawn(async move {
        let work = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        of_second.run(Box::new(work)).await
    });
    settle().await;
    second.shutdown().await;
    first.shutdown().await;
    // Nobody waits for the first any more, and it is still at it.
    assert_eq!(workers.places.available_permits(), 0);
    drop(let_go);
    assert_eq!(workers.run(Box::new(|| ())).await, Ok(()));
    assert_eq!(begun.load(Ordering::SeqCst), 1, "the second was never begun");
}

#[test]
fn a_runtime_that_has_ended_does_no_work_and_says_so() {
    let ended = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = ended.handle().clone();
    ended.shutdown_background();
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let work = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let workers = BlockingWorkers::at_once(1);
    let mut run = workers.run(Box::new(work));
    // Waited for elsewhere, but begun where everything has ended.
    let lost = Builder::new_current_thread().build().unwrap().block_on(std::future::poll_fn(|context| {
        let _entered = handle.enter();
        run.as_mut().poll(context)
    }));
    assert_eq!(lost, Err(WorkLost::Stopped));
    assert_eq!(begun.load(Ordering::SeqCst), 0);
    assert_eq!(workers.places.available_permits(), 1);
}

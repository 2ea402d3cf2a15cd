use futures_util::FutureExt;

use super::*;

/// Keeps all work and never returns.
#[derive(Default)]
struct StalledWorkers(Mutex<Vec<(WorkOwner, Work)>>);

#[async_trait]
impl Workers for StalledWorkers {
    async fn run(&self, owner: WorkOwner, work: Work) -> Result<(), TaskError> {
        self.0.lock().unwrap().push((owner, work));
        std::future::pending().await
    }
}

#[tokio::test]
async fn get_cancels_its_work_when_it_is_dropped() {
    let keeper = Arc::new(StalledWorkers::default());
    let workers: Arc<dyn Workers> = Arc::clone(&keeper) as Arc<dyn Workers>;
    let seen: Arc<Mutex<Option<CancelFlag>>> = Arc::default();
    let of_work = Arc::clone(&seen);
    let mut get = Box::pin(workers.get(WorkOwner::System, move |flag| {
        *of_work.lock().unwrap() = Some(flag.clone());
    }));
    assert!((&mut get).now_or_never().is_none());
    let (owner, work) = keeper.0.lock().unwrap().pop().unwrap();
    work();
    let flag = seen.lock().unwrap().take().unwrap();
    assert!(owner == WorkOwner::System && !flag.is_cancelled(), "the future is still alive");
    drop(get);
    assert!(flag.is_cancelled());
}

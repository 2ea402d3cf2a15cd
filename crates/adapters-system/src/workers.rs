//! Work on threads that serve nobody.

use std::sync::Arc;
use std::thread::available_parallelism;

use async_trait::async_trait;
use domain::system::{Work, WorkLost, Workers};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Does work on tokio's threads for blocking work, as much at a time as there are processors; the rest waits in the
/// order in which it came. Needs a tokio runtime. Clones share the bound: share one in a process.
#[derive(Debug, Clone)]
pub struct BlockingWorkers {
    places: Arc<Semaphore>,
}

impl BlockingWorkers {
    /// As many as there are processors for this process; two where that cannot be told.
    pub fn new() -> Self {
        Self::at_once(available_parallelism().map_or(2, usize::from))
    }

    /// So many at a time, at least one.
    pub fn at_once(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))) }
    }
}

impl Default for BlockingWorkers {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Workers for BlockingWorkers {
    async fn run(&self, work: Work) -> Result<(), WorkLost> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| WorkLost::Stopped)?;
        let work = move || {
            work();
            // Given back by the work, not by whoever waits for it: who leaves does not make room that there is not.
            drop(place);
        };
        // Work that neither ended nor panicked was never begun: the runtime ends.
        let lost = |error: JoinError| if error.is_panic() { WorkLost::Panicked } else { WorkLost::Stopped };
        spawn_blocking(work).await.map_err(lost)
    }
}

#[cfg(test)]
mod tests;

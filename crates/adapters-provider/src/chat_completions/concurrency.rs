//! Bounded concurrency for the calls of an attempt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs jobs `0..count`, at most 8 at once, and returns their results in order. The first failure cancels the other
/// jobs.
pub(super) async fn run_concurrently<T, E, F>(count: usize, job: impl Fn(usize) -> F) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>>,
{
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let lane = || async {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return Ok(());
            }
            let one = Box::pin(job(place)).await?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push((place, one));
        }
    };
    tokio::try_join!(lane(), lane(), lane(), lane(), lane(), lane(), lane(), lane())?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(place, _)| *place);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_runs_eight_jobs_and_keeps_order() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let made = run_concurrently(100, |place| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(place as u64 % 7)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ()>(place * 2)
            }
        });
        assert_eq!(made.await.unwrap(), (0..100).map(|place| place * 2).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn run_concurrently_stops_at_first_failure() {
        let begun = AtomicUsize::new(0);
        let ended = run_concurrently(100, |place| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                if place == 3 {
                    // The other seven begin first.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    return Err(place);
                }
                std::future::pending::<Result<(), _>>().await
            }
        });
        assert_eq!(ended.await, Err(3));
        assert_eq!(begun.into_inner(), 8);
    }
}

//! A load at a fixed rate, whether or not the server keeps up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::http::Connection;
use crate::load::Target;

/// The running load. Latencies count from the planned time of each request, so that a slow server does not hide behind
/// fewer requests.
pub struct PacedLoad {
    tasks: JoinSet<Result<()>>,
    cancelled: CancellationToken,
    latencies: Arc<Mutex<Vec<Duration>>>,
}

impl PacedLoad {
    /// Opens the connections and begins to send `per_second` requests over all of them.
    pub async fn start(target: &Target, connections: u32, per_second: f64) -> Result<Self> {
        let (latencies, cancelled) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
        let period = Duration::from_secs_f64(f64::from(connections) / per_second);
        let mut tasks = JoinSet::new();
        let began = now();
        for number in 0..connections {
            let mut connection = Connection::open(target.address).await?;
            let (requests, latencies) = (target.requests.clone(), Arc::clone(&latencies));
            let cancelled = cancelled.clone();
            let first = began + period * number / connections;
            tasks.spawn(async move {
                let mut ticks = interval_at(first.into(), period);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                loop {
                    let planned = tokio::select! {
                        () = cancelled.cancelled() => return Ok(()),
                        planned = ticks.tick() => planned.into_std(),
                    };
                    let status = connection.exchange(requests.next()).await?;
                    if status != 200 {
                        bail!("an answer was {status}");
                    }
                    let latency = now().saturating_duration_since(planned);
                    latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
                }
            });
        }
        Ok(Self { tasks, cancelled, latencies })
    }

    /// Returns the latencies since the last call.
    ///
    /// # Errors
    /// No request was answered: the load or the server has ended.
    pub fn take_latencies(&self) -> Result<Vec<Duration>> {
        let taken = std::mem::take(&mut *self.latencies.lock().unwrap_or_else(PoisonError::into_inner));
        if taken.is_empty() {
            bail!("no request was answered");
        }
        Ok(taken)
    }

    /// Ends the load after the requests in flight.
    ///
    /// # Errors
    /// A connection broke, or a response was not 200.
    pub async fn stop(mut self) -> Result<()> {
        self.cancelled.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

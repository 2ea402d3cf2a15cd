//! The rate limiter of all replicas.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::rate::{RateLimitError, RateLimiter, RateSubject, RateUnit};
use domain::system::Clock;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Counters, OutageLog};
use crate::link::{Backoff, Connector, Link, Unavailable, check_interval};
use crate::script::{Bucket, Invocation, RateScript, buckets, correct, take, verdict};
use crate::{RateStoreStatus, ValkeyError, ValkeySettings};

/// The delay that a rejected client gets during an outage.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The decision about requests while the server is not used.
pub enum Fallback {
    /// A limiter of this process decides by its share.
    Local(Arc<dyn RateLimiter>),
    /// Requests with limits are rejected as unavailable.
    Reject,
}

impl Fallback {
    fn name(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Reject => "reject",
        }
    }
}

/// A rate limiter whose counts all replicas share on a server. While the server fails or is slow, the fallback decides.
#[derive(Clone)]
pub struct ValkeyRateLimiter(Arc<Shared>);

struct Shared {
    link: Link,
    key_prefix: String,
    fallback: Fallback,
    counters: Counters,
    corrections: Corrections,
}

/// The tasks that correct tokens after their requests.
struct Corrections {
    tasks: TaskTracker,
    runtime: Handle,
}

impl ValkeyRateLimiter {
    /// Reads the files of the settings, without a connection.
    ///
    /// # Errors
    /// A file of certificates or a key cannot be used.
    pub fn check(settings: &ValkeySettings) -> Result<(), ValkeyError> {
        Connector::new(settings).map(drop)
    }

    /// Connects to the server. If it is down, the limiter begins with an outage. `tasks` tracks the corrections, which
    /// run in the runtime of the caller.
    ///
    /// # Errors
    /// The settings cannot be used, or the server rejects the credentials or lacks a permission.
    pub async fn connect(
        settings: &ValkeySettings,
        fallback: Fallback,
        tasks: TaskTracker,
    ) -> Result<Self, ValkeyError> {
        Self::with_script(settings, fallback, tasks, RateScript::with_server_time()).await
    }

    async fn with_script(
        settings: &ValkeySettings,
        fallback: Fallback,
        tasks: TaskTracker,
        script: RateScript,
    ) -> Result<Self, ValkeyError> {
        let link = Link::start(settings, script).await?;
        let counters = Counters::default();
        if link.outage().is_some() {
            counters.outages.add_one();
        }
        Ok(Self(Arc::new(Shared {
            link,
            key_prefix: settings.key_prefix.clone(),
            fallback,
            counters,
            corrections: Corrections { tasks, runtime: Handle::current() },
        })))
    }

    /// Checks the server every second, and connects again after a failure, until `cancelled`.
    pub async fn keep_connected(self, clock: Arc<dyn Clock>, cancelled: CancellationToken) {
        tokio::select! {
            () = cancelled.cancelled() => {}
            () = self.0.keep_connected(clock) => {}
        }
    }

    /// Returns the status of the shared counts.
    pub fn status(&self) -> RateStoreStatus {
        let Counters { outages, decided_locally, rejected, lost_corrections } = &self.0.counters;
        RateStoreStatus {
            outage: self.0.link.outage(),
            outages: outages.get(),
            decided_locally: decided_locally.get(),
            rejected: rejected.get(),
            lost_corrections: lost_corrections.get(),
        }
    }
}

impl Shared {
    async fn keep_connected(&self, clock: Arc<dyn Clock>) {
        let (mut backoff, mut log) = (Backoff::new(Arc::clone(&clock)), OutageLog::default());
        loop {
            self.wait_for_outage().await;
            let mut delay = backoff.after_failure();
            while let Some(error) = self.link.outage() {
                log.warn(self.link.server(), &error, self.fallback.name(), clock.monotonic());
                sleep(delay).await;
                match self.link.reconnect(&self.key_prefix).await {
                    Ok(()) => backoff.connected(),
                    Err(_) => delay = backoff.next_delay(),
                }
            }
            log.recover(self.link.server());
        }
    }

    /// Returns when the server is not used. An idle link is checked, so that readiness shows an outage before a request
    /// waits for it.
    async fn wait_for_outage(&self) {
        while self.link.outage().is_none() {
            tokio::select! {
                () = self.link.wait_for_failure() => {}
                () = check_interval() => self.link.check(&self.key_prefix, &self.counters).await,
            }
        }
    }

    fn buckets(&self, subject: &RateSubject, unit: RateUnit) -> Vec<Bucket> {
        buckets(&self.key_prefix, subject, unit)
    }

    async fn run(&self, invocation: &Invocation) -> Result<Vec<i64>, Unavailable> {
        self.link.run(invocation, &self.counters).await
    }

    /// Takes an amount from all buckets or from none. Returns `Unavailable` if the server did not decide.
    async fn take(
        &self,
        buckets: &[Bucket],
        amount: u64,
        released: &[Bucket],
    ) -> Result<Result<(), RateLimitError>, Unavailable> {
        let reply = self.run(&take(buckets, amount, released)).await?;
        Ok(verdict(buckets, amount, &reply).ok_or(Unavailable)?.map_err(RateLimitError::from))
    }

    fn local(&self) -> Result<&dyn RateLimiter, RateLimitError> {
        match &self.fallback {
            Fallback::Local(limiter) => {
                self.counters.decided_locally.add_one();
                Ok(&**limiter)
            }
            Fallback::Reject => {
                self.counters.rejected.add_one();
                Err(RateLimitError::Unavailable { retry_after: RETRY_AFTER })
            }
        }
    }
}

#[async_trait]
impl RateLimiter for ValkeyRateLimiter {
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError> {
        let requests = self.0.buckets(subject, RateUnit::Requests);
        if requests.is_empty() {
            return Ok(());
        }
        match self.0.take(&requests, 1, &[]).await {
            Ok(decided) => decided,
            Err(Unavailable) => self.0.local()?.count_request(subject).await,
        }
    }

    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError> {
        let buckets = self.0.buckets(subject, RateUnit::Tokens);
        if buckets.is_empty() {
            return Ok(());
        }
        match self.0.take(&buckets, tokens, &self.0.buckets(subject, RateUnit::Requests)).await {
            Ok(decided) => decided,
            Err(Unavailable) => self.0.local()?.take_tokens(subject, tokens).await,
        }
    }

    /// Corrects in the background: the response does not wait. During an outage it corrects the local counts.
    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64) {
        let buckets = self.0.buckets(subject, RateUnit::Tokens);
        if buckets.is_empty() || taken == used {
            return;
        }
        match &self.0.fallback {
            Fallback::Local(limiter) if self.0.link.outage().is_some() => {
                return limiter.correct_tokens(subject, taken, used);
            }
            _ => {}
        }
        let (shared, invocation) = (Arc::clone(&self.0), correct(&buckets, taken, used));
        let correction = async move {
            if shared.run(&invocation).await.is_err() {
                shared.counters.lost_corrections.add_one();
            }
        };
        let Corrections { tasks, runtime } = &self.0.corrections;
        tasks.spawn_on(correction, runtime);
    }
}

#[cfg(test)]
mod tests;

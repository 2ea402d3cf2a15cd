//! Fakes of the machine: a manual clock, predictable ids and secrets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::yield_now;
use crate::error::StoreError;
use crate::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, PresetId, ProcessId, RequestId, WorkspaceId,
};
use crate::rate::{RateLimitError, RateLimited, RateLimiter, RateScope, RateSubject, RateUnit};
use crate::secret::ApiKeySecret;
use crate::system::{Clock, HealthProbe, IdGenerator, SecretGenerator, TimeSource, Timer};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A clock that moves only when set or advanced. Clones share the time.
#[derive(Debug, Clone)]
pub struct FixedClock(Arc<Mutex<(DateTime<Utc>, Duration)>>);

impl FixedClock {
    /// Creates a clock at `now`; the monotonic time is zero.
    pub fn at(now: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new((now, Duration::ZERO))))
    }

    /// Sets the wall clock, also backwards. The monotonic time stays.
    pub fn set(&self, now: DateTime<Utc>) {
        lock(&self.0).0 = now;
    }

    /// Advances wall clock and monotonic time.
    pub fn advance(&self, duration: Duration) {
        let mut time = lock(&self.0);
        time.0 += TimeDelta::from_std(duration).unwrap_or(TimeDelta::zero());
        time.1 += duration;
    }
}

impl Default for FixedClock {
    /// Creates a clock at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default())
    }
}

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        lock(&self.0).0
    }

    fn monotonic(&self) -> Duration {
        lock(&self.0).1
    }
}

/// A timer that advances a [`FixedClock`] instead of waiting.
#[derive(Debug, Clone)]
pub struct ManualTimer {
    clock: FixedClock,
    slept: Arc<Mutex<Vec<Duration>>>,
}

impl ManualTimer {
    /// Creates a timer that advances this clock.
    pub fn new(clock: FixedClock) -> Self {
        Self { clock, slept: Arc::default() }
    }

    /// Returns all sleeps so far.
    pub fn slept(&self) -> Vec<Duration> {
        lock(&self.slept).clone()
    }
}

/// Returns a time source whose sleeps never end.
pub fn create_time_without_timer(clock: &FixedClock) -> TimeSource {
    TimeSource { clock: Arc::new(clock.clone()), timer: Arc::new(StoppedTimer) }
}

struct StoppedTimer;

#[async_trait]
impl Timer for StoppedTimer {
    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl Timer for ManualTimer {
    async fn sleep(&self, duration: Duration) {
        self.clock.advance(duration);
        lock(&self.slept).push(duration);
        yield_now().await;
    }
}

/// Ids that count up from one, in the form of a UUIDv7. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct SequentialIds(Arc<AtomicU64>);

impl SequentialIds {
    /// Returns the `number`th generated UUID, counted from one.
    pub fn uuid(number: u64) -> Uuid {
        Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + u128::from(number))
    }

    /// Returns the key id of the `number`th generated UUID.
    pub fn key(number: u64) -> ApiKeyId {
        ApiKeyId::from_uuid(Self::uuid(number))
    }

    fn next(&self) -> Uuid {
        Self::uuid(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl IdGenerator for SequentialIds {
    fn workspace_id(&self) -> WorkspaceId {
        WorkspaceId::from_uuid(self.next())
    }

    fn api_key_id(&self) -> ApiKeyId {
        ApiKeyId::from_uuid(self.next())
    }

    fn guardrail_id(&self) -> GuardrailId {
        GuardrailId::from_uuid(self.next())
    }

    fn document_id(&self) -> DocumentId {
        DocumentId::from_uuid(self.next())
    }

    fn decision_id(&self, _: DateTime<Utc>) -> DecisionId {
        DecisionId::from_uuid(self.next())
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::from_uuid(self.next())
    }

    fn request_id(&self, _: DateTime<Utc>) -> RequestId {
        RequestId::from_uuid(self.next())
    }

    fn preset_id(&self) -> PresetId {
        PresetId::from_uuid(self.next())
    }

    fn destination_id(&self) -> DestinationId {
        DestinationId::from_uuid(self.next())
    }

    fn outbox_id(&self) -> OutboxId {
        OutboxId::from_uuid(self.next())
    }
}

/// Predictable secrets that count up.
#[derive(Debug, Clone, Default)]
pub struct FixedSecrets(Arc<AtomicU64>);

impl FixedSecrets {
    /// Returns the `number`th generated secret, counted from one.
    pub fn secret(number: u64) -> ApiKeySecret {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        ApiKeySecret::from_random(bytes)
    }
}

impl SecretGenerator for FixedSecrets {
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError> {
        Ok(Self::secret(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// A health check with a settable result. Clones share it.
#[derive(Debug, Clone)]
pub struct ToggleHealthCheck {
    name: &'static str,
    healthy: Arc<Mutex<bool>>,
    bridged: Arc<Mutex<bool>>,
}

impl ToggleHealthCheck {
    /// Creates a healthy check.
    pub fn new(name: &'static str) -> Self {
        Self { name, healthy: Arc::new(Mutex::new(true)), bridged: Arc::default() }
    }

    /// Sets the result of the next probes.
    pub fn set_healthy(&self, healthy: bool) {
        *lock(&self.healthy) = healthy;
    }

    /// Sets whether requests are served while the check is unhealthy.
    pub fn set_bridged(&self, bridged: bool) {
        *lock(&self.bridged) = bridged;
    }
}

#[async_trait]
impl HealthProbe for ToggleHealthCheck {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn probe(&self) -> Result<(), StoreError> {
        if *lock(&self.healthy) { Ok(()) } else { Err(StoreError::unavailable("switched off")) }
    }

    fn serves_during_outage(&self) -> bool {
        *lock(&self.bridged)
    }
}

/// A rate limiter with the same total of requests and tokens for every key, regardless of the limits of the subject and
/// of time. [`super::MemoryRateLimiter`] fulfils the contract.
#[derive(Debug, Clone)]
pub struct FixedRateLimiter {
    limit: u32,
    token_limit: u32,
    used: Arc<Mutex<std::collections::HashMap<ApiKeyId, (u32, u64)>>>,
    corrections: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl FixedRateLimiter {
    /// Creates a limiter with `limit` requests for each key, and unlimited tokens.
    pub fn new(limit: u32) -> Self {
        Self { limit, token_limit: u32::MAX, used: Arc::default(), corrections: Arc::default() }
    }

    /// Sets the tokens of each key.
    #[must_use]
    pub fn with_tokens(self, limit: u32) -> Self {
        Self { token_limit: limit, ..self }
    }

    /// Returns the estimated and the used tokens of all ended requests.
    pub fn corrections(&self) -> Vec<(u64, u64)> {
        lock(&self.corrections).clone()
    }
}

#[async_trait]
impl RateLimiter for FixedRateLimiter {
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError> {
        let mut used = lock(&self.used);
        let (requests, _) = used.entry(subject.api_key).or_default();
        if *requests < self.limit {
            *requests += 1;
            return Ok(());
        }
        let (scope, unit, retry_after) = (RateScope::Key, RateUnit::Requests, Duration::from_secs(1));
        Err(RateLimited { scope, unit, limit: self.limit, remaining: 0, retry_after }.into())
    }

    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError> {
        let mut used = lock(&self.used);
        let (requests, taken) = used.entry(subject.api_key).or_default();
        let left = u64::from(self.token_limit).saturating_sub(*taken);
        if tokens <= left {
            *taken += tokens;
            return Ok(());
        }
        *requests = requests.saturating_sub(1);
        let (scope, unit, retry_after) = (RateScope::Key, RateUnit::Tokens, Duration::from_secs(1));
        let remaining = u32::try_from(left).unwrap_or(u32::MAX);
        Err(RateLimited { scope, unit, limit: self.token_limit, remaining, retry_after }.into())
    }

    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64) {
        lock(&self.corrections).push((taken, used));
        let mut all = lock(&self.used);
        let (_, tokens) = all.entry(subject.api_key).or_default();
        *tokens = tokens.saturating_sub(taken).saturating_add(used);
    }
}

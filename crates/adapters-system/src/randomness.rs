//! Random numbers for load distribution, which are unfit for secrets, ids that sort by creation time, and secrets.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, PresetId, ProcessId, RequestId, WorkspaceId,
};
use domain::secret::ApiKeySecret;
use domain::system::{IdGenerator, Randomness, SecretGenerator};
use uuid::{NoContext, Timestamp, Uuid};

/// The increment of the state: 2^64 divided by the golden ratio, odd, so that all states occur before one repeats.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// `SplitMix64` (Steele, Lea and Flood, 2014): a counter with a mixing function. Threads share the counter without a
/// lock, and each value is drawn once.
#[derive(Debug)]
struct SplitMix64(AtomicU64);

impl SplitMix64 {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Random numbers with a seed from the operating system.
#[derive(Debug)]
pub struct OsRandomness(SplitMix64);

impl OsRandomness {
    /// Draws a seed.
    ///
    /// # Errors
    /// The operating system's random source failed.
    pub fn new() -> Result<Self, StoreError> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| StoreError::unavailable(error.to_string()))?;
        Ok(Self(SplitMix64::new(u64::from_ne_bytes(seed))))
    }
}

impl Randomness for OsRandomness {
    fn next_u64(&self) -> u64 {
        self.0.next()
    }
}

/// Reproducible random numbers: equal seeds yield equal sequences on every machine. Concurrent threads share one
/// sequence, so only sequential draws are reproducible.
#[derive(Debug)]
pub struct SeededRandomness(SplitMix64);

impl SeededRandomness {
    /// Starts with this seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }
}

impl Randomness for SeededRandomness {
    fn next_u64(&self) -> u64 {
        self.0.next()
    }
}

/// Creates ids from UUIDv7.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidV7Ids;

#[expect(clippy::disallowed_methods, reason = "this is the one place that makes ids")]
fn fresh() -> Uuid {
    Uuid::now_v7()
}

/// Returns an id of this time, without a reading of the clock.
fn fresh_at(at: DateTime<Utc>) -> Uuid {
    let seconds = u64::try_from(at.timestamp()).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, at.timestamp_subsec_nanos()))
}

impl IdGenerator for UuidV7Ids {
    fn workspace_id(&self) -> WorkspaceId {
        WorkspaceId::from_uuid(fresh())
    }

    fn api_key_id(&self) -> ApiKeyId {
        ApiKeyId::from_uuid(fresh())
    }

    fn guardrail_id(&self) -> GuardrailId {
        GuardrailId::from_uuid(fresh())
    }

    fn document_id(&self) -> DocumentId {
        DocumentId::from_uuid(fresh())
    }

    fn decision_id(&self, at: DateTime<Utc>) -> DecisionId {
        DecisionId::from_uuid(fresh_at(at))
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::from_uuid(fresh())
    }

    fn request_id(&self, at: DateTime<Utc>) -> RequestId {
        RequestId::from_uuid(fresh_at(at))
    }

    fn preset_id(&self) -> PresetId {
        PresetId::from_uuid(fresh())
    }

    fn destination_id(&self) -> DestinationId {
        DestinationId::from_uuid(fresh())
    }

    fn outbox_id(&self) -> OutboxId {
        OutboxId::from_uuid(fresh())
    }
}

/// Draws secrets from the operating system's cryptographic random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsSecrets;

impl SecretGenerator for OsSecrets {
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::unavailable(error.to_string()))?;
        Ok(ApiKeySecret::from_random(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(source: &dyn Randomness, count: usize) -> Vec<u64> {
        (0..count).map(|_| source.next_u64()).collect()
    }

    #[test]
    fn seeded_numbers_match_published_algorithm() {
        let drawn = draw(&SeededRandomness::new(1_234_567), 3);
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn seeded_numbers_repeat_for_same_seed() {
        let first = draw(&SeededRandomness::new(7), 100);
        assert_eq!(first, draw(&SeededRandomness::new(7), 100));
        let other = draw(&SeededRandomness::new(8), 100);
        assert!(first.iter().all(|number| !other.contains(number)));
    }

    #[test]
    fn system_seeds_differ() {
        let (one, other) = (OsRandomness::new().unwrap(), OsRandomness::new().unwrap());
        assert_ne!(draw(&one, 4), draw(&other, 4));
    }

    /// Counts 64,000 draws in sixteen equal ranges: 4,000 each, within six standard deviations of 61.
    #[test]
    fn numbers_and_bits_are_uniform() {
        for seed in [0, 1, u64::MAX] {
            let drawn = draw(&SeededRandomness::new(seed), 64_000);
            for range in 0..16 {
                let count = drawn.iter().filter(|number| **number >> 60 == range).count();
                assert!((3_630..=4_370).contains(&count), "seed {seed}, range {range}: {count}");
            }
            for bit in 0..64 {
                let count = drawn.iter().filter(|number| **number >> bit & 1 == 1).count();
                assert!((31_240..=32_760).contains(&count), "seed {seed}, bit {bit}: {count}");
            }
        }
    }

    #[test]
    fn concurrent_draws_are_distinct() {
        let source = SeededRandomness::new(3);
        let mut drawn: Vec<u64> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(|| draw(&source, 1_000))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        drawn.sort_unstable();
        let mut alone = draw(&SeededRandomness::new(3), 4_000);
        alone.sort_unstable();
        assert_eq!(drawn, alone);
    }

    #[test]
    fn ids_are_unique_and_sort_by_creation() {
        let made: Vec<DocumentId> = (0..10_000).map(|_| UuidV7Ids.document_id()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn ids_have_expected_format() {
        let workspace = UuidV7Ids.workspace_id();
        assert_eq!(workspace.uuid().get_version_num(), 7);
        assert_eq!(workspace.to_string().parse(), Ok(workspace));
        assert_eq!(UuidV7Ids.api_key_id().uuid().get_version_num(), 7);
        assert_eq!(UuidV7Ids.guardrail_id().uuid().get_version_num(), 7);
        let at = DateTime::from_timestamp(1_795_252_087, 999_999_999).unwrap();
        let decision = UuidV7Ids.decision_id(at);
        assert_eq!(decision.as_str().parse(), Ok(decision.clone()));
        let request = UuidV7Ids.request_id(at);
        assert_eq!(request.as_str().parse(), Ok(request.clone()));
        let uuid: Uuid = request.as_str().parse().unwrap();
        assert_eq!(uuid.get_timestamp().unwrap().to_unix(), (1_795_252_087, 999_000_000));
    }

    #[test]
    fn secrets_are_distinct_and_not_zero() {
        let zeros = ApiKeySecret::from_random([0; 32]);
        let (one, other) = (OsSecrets.api_key_secret().unwrap(), OsSecrets.api_key_secret().unwrap());
        assert!(one != other && one != zeros && other != zeros);
        assert!(one.expose().parse::<ApiKeySecret>().is_ok());
    }
}

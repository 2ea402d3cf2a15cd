//! The settings, the random source and the health board of routing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use adapters_system::{OsRandomness, SeededRandomness};
use anyhow::Context;
use domain::decision::DecisionSettings;
use domain::routing::{EndpointDirectory, HealthBoard, PauseDetector};
use domain::system::Randomness;

use crate::config::Config;
use crate::telemetry::HEARTBEAT;

/// The end of `limits.request_timeout_ms` that is reserved for recording a request; no attempt runs in it.
const RECORD_TIME: Duration = Duration::from_millis(250);
/// The maximum of that time, as a fraction of the whole: one in this many.
const RECORD_SHARE: u32 = 20;

/// Returns the settings of routing.
pub fn settings(config: &Config) -> DecisionSettings {
    let models = config.models.iter().map(|model| (model.model.clone(), model.options));
    let record_time = (config.limits.request_timeout / RECORD_SHARE).min(RECORD_TIME);
    DecisionSettings {
        deadline: config.limits.request_timeout.saturating_sub(record_time),
        unknown_usage: config.unknown_usage,
        max_tokens_per_byte: config.money.max_tokens_per_byte,
        unpriced: config.money.unpriced_models,
        budget_wait: config.limits.budget_wait,
        max_concurrent_subrequests: config.routing.max_concurrent_subrequests,
        max_record_bytes_per_day: config.limits.workspace_record_bytes_per_day,
        models: models.collect::<HashMap<_, _>>(),
    }
}

/// Returns a random source with the configured seed, or with a random one.
///
/// # Errors
/// The machine's random source failed.
pub fn randomness(config: &Config) -> anyhow::Result<Arc<dyn Randomness>> {
    Ok(match config.routing.seed {
        Some(seed) => Arc::new(SeededRandomness::new(seed)),
        None => Arc::new(OsRandomness::new().context("random numbers cannot be drawn")?),
    })
}

/// The heartbeat delay from which the process counts as paused.
const PAUSE_TOLERANCE: Duration = Duration::from_millis(500);

/// Returns a health board of every endpoint, without observations.
pub fn health(config: &Config, endpoints: &EndpointDirectory) -> Arc<HealthBoard> {
    let pauses = PauseDetector::new(HEARTBEAT, PAUSE_TOLERANCE);
    Arc::new(HealthBoard::with_pauses(endpoints.all().len(), config.throttling, pauses))
}

#[cfg(test)]
mod tests {
    use domain::decision::{SingleFlightMode, UnpricedModels};
    use domain::routing::{Endpoint, Wire};
    use domain::usage::UnknownUsage;

    use super::*;
    use crate::config::{Environment, load_text};

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    #[test]
    fn settings_follow_configuration() {
        let shipped = settings(&read(""));
        let deadline = Duration::from_millis(59_750);
        let max_record_bytes_per_day = Some(1 << 30);
        let expected =
            DecisionSettings { deadline, max_record_bytes_per_day, ..DecisionSettings::new(Duration::from_mins(1)) };
        assert_eq!(shipped, expected);
        let config = read(
            "[limits]\nrequest_timeout_ms = 20\nbudget_wait_ms = 7\nworkspace_record_bytes_per_day = 0\n\
             [money]\nunreported_usage = \"free\"\nmax_tokens_per_byte = \"2\"\nunpriced_models = \"free\"\n\
             [routing]\nmax_concurrent_subrequests = 2\n\
             [[models]]\nmodel = \"a/b\"\nsingle_flight = \"split_cost\"\n",
        );
        let set = settings(&config);
        assert_eq!((set.deadline, set.unknown_usage), (Duration::from_millis(19), UnknownUsage::Free));
        assert_eq!(set.max_record_bytes_per_day, None, "0 is no bound");
        assert_eq!((set.max_concurrent_subrequests, set.budget_wait), (2, Duration::from_millis(7)));
        assert_eq!((set.max_tokens_per_byte.times(3), set.unpriced), (6, UnpricedModels::Free));
        assert_eq!(set.options(&"a/b".parse().unwrap()).single_flight, SingleFlightMode::SplitCost);
        assert_eq!(set.options(&"a/c".parse().unwrap()).single_flight, SingleFlightMode::Off);
    }

    #[test]
    fn randomness_repeats_only_with_seed() {
        let draw = |config: &Config| randomness(config).unwrap().next_u64();
        let seeded = read("[routing]\nseed = 7\n");
        assert_eq!(draw(&seeded), draw(&seeded));
        assert_ne!(draw(&read("")), draw(&read("")));
    }

    #[test]
    fn board_has_every_endpoint_and_the_configured_policy() {
        let endpoint = || Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        let endpoints = EndpointDirectory::new(vec![endpoint(), endpoint()]);
        let config = read("[throttling]\nmax_backoff_ms = 7_000\n");
        let board = health(&config, &endpoints);
        assert_eq!((board.len(), board.policy().max_backoff), (2, Duration::from_secs(7)));
        let wall = chrono::DateTime::UNIX_EPOCH;
        let beat = |millis| board.pauses().beat(Duration::from_millis(millis), wall);
        assert_eq!((beat(0), beat(600), beat(1_000)), (None, None, None));
        assert_eq!(beat(2_001), Some(Duration::from_millis(1_001)), "100 ms and 500 ms more");
        assert!(health(&read(""), &EndpointDirectory::new(Vec::new())).is_empty());
    }
}

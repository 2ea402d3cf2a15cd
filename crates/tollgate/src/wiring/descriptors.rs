//! The required and the available number of file descriptors.

use std::num::NonZero;
use std::thread;

use adapters_system::DescriptorLimit;

use super::instance::METRICS_CONNECTIONS;
use crate::config::Config;

/// Descriptors per operation: a provider's connection and a hedged one, or the two files of a copy.
const PER_OPERATION: u64 = 2;
/// Descriptors per database connection: its file, the write-ahead log and its index.
const PER_DATABASE_CONNECTION: u64 = 3;
/// Database connections beside those for reads: two for writes, one that checkpoints the write-ahead log, and one that
/// detects commits.
const OTHER_DATABASE_CONNECTIONS: u64 = 4;
/// Connections that each worker accepts beyond its limit.
const WAITING_CONNECTIONS: u64 = 16;
/// A generous estimate for the process itself and its tasks.
const OTHERS: u64 = 128;

/// Raises the limit of the process to the system's maximum. Logs a warning if the configuration may need more.
pub fn prepare_descriptors(config: &Config) {
    let limit = DescriptorLimit::raise().soft;
    let needed = needed(config, thread::available_parallelism().map_or(1, NonZero::get));
    if needed > limit {
        tracing::warn!(
            descriptors.limit = limit,
            descriptors.needed = needed,
            "too few file descriptors for this configuration: \
             raise LimitNOFILE (ulimit -n) or lower server.max_connections_per_worker"
        );
    }
}

/// Returns the maximum number of descriptors that the configuration can require.
fn needed(config: &Config, processors: usize) -> u64 {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let workers = number(config.server.workers.unwrap_or(processors));
    let places = number(config.server.max_connections_per_worker).saturating_mul(workers);
    let measures = config.server.metrics_listen.map_or(0, |_| number(METRICS_CONNECTIONS));
    let waiting = workers.saturating_add(1).saturating_mul(WAITING_CONNECTIONS);
    let connections = places.saturating_add(measures).saturating_add(waiting);
    let operations = number(config.limits.admission.max_in_flight).min(places);
    let database = u64::from(config.storage.read_connections) + OTHER_DATABASE_CONNECTIONS;
    connections
        .saturating_add(operations.saturating_mul(PER_OPERATION))
        .saturating_add(database.saturating_mul(PER_DATABASE_CONNECTION))
        .saturating_add(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};

    #[test]
    fn needed_descriptors_depend_on_configuration() {
        let of = |text: &str| needed(&load_text(None, text, &Environment::default()).unwrap(), 4);
        assert_eq!(of(""), 4 * 8_192 + 5 * 16 + 2 * 4_096 + 3 * 8 + 128);
        let small = "[server]\nworkers = 2\nmax_connections_per_worker = 16\n[storage]\nread_connections = 1\n";
        assert_eq!(of(small), 32 + 3 * 16 + 2 * 32 + 3 * 5 + 128);
        let measured = small.replace("workers", "metrics_listen = \"127.0.0.1:9100\"\nworkers");
        assert_eq!(of(&measured), of(small) + 64);
        let huge = format!("[server]\nmax_connections_per_worker = {}\n", i64::MAX);
        assert_eq!(of(&huge), u64::MAX);
    }
}

//! File descriptors: the number that a server may need, and the number that it may have.

use std::num::NonZero;
use std::thread;

use adapters_system::DescriptorLimit;

use crate::config::Config;

/// Descriptors of an operation at work: a provider's connection and one that races it, or the two files of a copy.
const PER_OPERATION: u64 = 2;
/// Descriptors of each connection to the database: its file, the write-ahead log and its index.
const PER_DATABASE_CONNECTION: u64 = 3;
/// Connections to the database beside those that read: the two that write, the one that copies the write-ahead log, and
/// the one that looks for commits.
const OTHER_DATABASE_CONNECTIONS: u64 = 4;
/// Connections that each worker accepts beyond its places.
const WAITING_CONNECTIONS: u64 = 16;
/// Descriptors of the process itself and of its tasks, generously.
const OTHERS: u64 = 128;

/// Raises the limit of the process to what the system allows. Logs a warning where the configuration may need more.
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

/// The most descriptors that the configuration lets the server open.
fn needed(config: &Config, processors: usize) -> u64 {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let workers = number(config.server.workers.unwrap_or(processors));
    let places = number(config.server.max_connections_per_worker).saturating_mul(workers);
    let measures = config.server.metrics_listen.map_or(0, |_| number(config.server.metrics_max_connections));
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
    fn needed_descriptors_follow_the_configuration() {
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

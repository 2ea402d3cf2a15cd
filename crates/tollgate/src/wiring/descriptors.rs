//! File descriptors: the number that a server may need, and the number that it may have.

use std::num::NonZero;
use std::thread;

use adapters_system::DescriptorLimit;

use crate::config::Config;

/// Descriptors of an operation at work: a provider's connection and one that races it, or the two files of a copy.
const PER_OPERATION: u64 = 2;
/// Descriptors of each connection to the database: its file, the write-ahead log and its index.
const PER_DATABASE_CONNECTION: u64 = 3;
/// Connections to the database beside those that read: the writer, and the one that copies the write-ahead log.
const OTHER_DATABASE_CONNECTIONS: u64 = 2;
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
             raise LimitNOFILE (ulimit -n) or lower server.max_connections"
        );
    }
}

/// The most descriptors that the configuration lets the server open.
fn needed(config: &Config, processors: usize) -> u64 {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let workers = number(config.server.workers.unwrap_or(processors));
    let connections = number(config.server.max_connections).saturating_mul(workers);
    let operations = number(config.limits.max_in_flight).min(connections);
    let database = u64::from(config.storage.max_readers) + OTHER_DATABASE_CONNECTIONS;
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
        assert_eq!(of(""), 4 * 8_192 + 2 * 4_096 + 3 * 6 + 128);
        let small = "[server]\nworkers = 2\nmax_connections = 16\n[storage]\nmax_readers = 1\n";
        assert_eq!(of(small), 32 + 2 * 32 + 3 * 3 + 128);
        let huge = format!("[server]\nmax_connections = {}\n", i64::MAX);
        assert_eq!(of(&huge), u64::MAX);
    }
}

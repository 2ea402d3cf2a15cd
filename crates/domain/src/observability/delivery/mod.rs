//! Delivery of the outbox to its destinations.

mod deliver_batch;
mod deliver_outbox;
mod retry_dead_letters;

pub use deliver_batch::{DeliverOutboxPorts, DeliverySettings};
pub use deliver_outbox::DeliverOutbox;
pub use retry_dead_letters::RetryDeadLetters;

#[cfg(test)]
mod tests;

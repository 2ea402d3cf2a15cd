//! Delivery of the outbox to its destinations.

mod deliver_batch;
mod deliver_outbox;

pub use deliver_batch::{DeliverOutboxPorts, DeliverySettings};
pub use deliver_outbox::{DeliverOutbox, RetryDeadLetters};

#[cfg(test)]
mod tests;

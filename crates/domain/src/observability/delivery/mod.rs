//! Delivery of the outbox to its destinations.

mod back_off;
mod deliver_batch;
mod deliver_outbox;
mod destination_state;
mod retry_dead_letters;
mod settings;

pub use deliver_outbox::{DeliverOutbox, DeliverOutboxPorts};
pub use retry_dead_letters::{DeadLetterRetry, RetryDeadLetters};
pub use settings::DeliverySettings;

#[cfg(test)]
mod tests;

//! Delivery of the outbox to its destinations.

mod deliver_batch;
mod deliver_outbox;
mod retry_dead_letters;
mod settings;

pub use deliver_batch::DeliverOutboxPorts;
pub use deliver_outbox::DeliverOutbox;
pub use retry_dead_letters::RetryDeadLetters;
pub use settings::DeliverySettings;

#[cfg(test)]
mod tests;

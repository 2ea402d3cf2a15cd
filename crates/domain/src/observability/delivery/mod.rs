//! Bringing what is in the outbox to its receivers.

mod back_off;
mod deliver_outbox;
mod line;
mod retry_dead_letters;
mod settings;
mod turn;

pub use deliver_outbox::{DeliverOutbox, DeliverOutboxPorts};
pub use retry_dead_letters::{RetryDeadLetters, Revival};
pub use settings::DeliverySettings;

#[cfg(test)]
mod tests;

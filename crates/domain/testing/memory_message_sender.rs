//! A fake sender, and the receiver that it sends to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::contract::{Receiver, ReceiverReaction, Senders};
use super::system::lock;
use crate::json::Json;
use crate::observability::{Delivery, DeliveryError, DeliveryErrorKind, Destination, MessageSender};
use crate::system::Timer;

const URL: &str = "https://10.0.0.1/in";
const CLOSED_URL: &str = "https://10.0.0.2/in";
/// The deadline of a delivery.
const DEADLINE: Duration = Duration::from_secs(1);

/// A receiver that records deliveries. Clones share the records.
#[derive(Debug, Clone, Default)]
pub struct MemoryReceiver(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// `None` accepts the delivery.
    reaction: Option<ReceiverReaction>,
    bodies: Vec<String>,
}

impl Receiver for MemoryReceiver {
    fn url(&self) -> String {
        URL.to_owned()
    }

    fn closed_url(&self) -> String {
        CLOSED_URL.to_owned()
    }

    fn react(&self, reaction: ReceiverReaction) {
        lock(&self.0).reaction = Some(reaction);
    }

    fn bodies(&self) -> Vec<String> {
        lock(&self.0).bodies.clone()
    }
}

/// Sends to a [`MemoryReceiver`], whose address is private; other addresses are closed.
pub struct MemoryMessageSender {
    receiver: MemoryReceiver,
    timer: Arc<dyn Timer>,
    allow_private_addresses: bool,
}

impl MemoryMessageSender {
    /// Creates a sender. The timer measures its deadline.
    pub fn new(receiver: MemoryReceiver, timer: Arc<dyn Timer>, allow_private_addresses: bool) -> Self {
        Self { receiver, timer, allow_private_addresses }
    }

    /// Delivers, and returns the reaction of the receiver.
    fn deliver(&self, delivery: &Delivery) -> ReceiverReaction {
        let traces: Vec<&str> = delivery.traces.iter().map(Json::text).collect();
        let mut receiver = lock(&self.receiver.0);
        receiver.bodies.push(format!("[{}]", traces.join(",")));
        receiver.reaction.unwrap_or(ReceiverReaction::Status(200))
    }
}

fn error(kind: DeliveryErrorKind, retry_after: Option<Duration>) -> DeliveryError {
    DeliveryError { reason: "the fake receiver was set so".to_owned(), kind, retry_after }
}

fn by_status(status: u16, is_test: bool) -> Result<(), DeliveryError> {
    match status {
        200..=299 => Ok(()),
        400 if is_test => Ok(()),
        400 | 413 | 415 | 422 => Err(error(DeliveryErrorKind::Body, None)),
        _ => Err(error(DeliveryErrorKind::Receiver, None)),
    }
}

#[async_trait]
impl MessageSender for MemoryMessageSender {
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError> {
        if !to.url.starts_with("https://") || !self.allow_private_addresses {
            return Err(error(DeliveryErrorKind::Address, None));
        }
        if to.url != URL {
            return Err(error(DeliveryErrorKind::Receiver, None));
        }
        match self.deliver(delivery) {
            ReceiverReaction::Status(status) => by_status(status, delivery.is_test),
            ReceiverReaction::Delay(seconds) => {
                Err(error(DeliveryErrorKind::Receiver, Some(Duration::from_secs(seconds))))
            }
            ReceiverReaction::Stall => {
                self.timer.sleep(DEADLINE).await;
                Err(error(DeliveryErrorKind::Receiver, None))
            }
        }
    }
}

impl Senders {
    /// Returns the fake.
    pub fn memory(timer: Arc<dyn Timer>) -> Self {
        let receiver = MemoryReceiver::default();
        let sender = |is_open| Arc::new(MemoryMessageSender::new(receiver.clone(), Arc::clone(&timer), is_open));
        Self {
            sender: sender(true),
            public_only: sender(false),
            receiver: Arc::new(receiver.clone()),
            timer,
            keep: Box::new(()),
        }
    }
}

//! Cases of [`MessageSender`].

use std::any::Any;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use futures_util::future::{Either, select};

use super::super::{SequentialIds, join_all};
use crate::ids::{DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::observability::{Delivery, DeliveryError, DeliveryErrorKind, Destination, DestinationKind, MessageSender};
use crate::secret::SecretString;
use crate::system::Timer;

suite! {
    /// Every case of the port's contract.
    message_sender_cases as message_sender_contract over Senders {
        accepted_delivery_arrives_once,
        traces_are_one_body_in_their_order,
        delivery_without_traces_is_sent,
        rejected_body_is_an_error_of_the_body,
        other_status_is_an_error_of_the_receiver,
        failed_delivery_is_not_repeated,
        error_contains_the_requested_delay,
        error_contains_no_text_of_the_receiver,
        redirect_is_not_followed,
        test_accepts_status_400,
        silent_receiver_is_an_error_in_time,
        closed_address_is_an_error_of_the_receiver,
        invalid_address_is_an_error_of_the_address,
        private_address_is_rejected_unless_allowed,
        concurrent_deliveries_all_arrive,
    }
}

/// A sender, and a receiver at a private address.
pub struct Senders {
    /// A sender that may send to private addresses. Its deadline is less than 10 seconds.
    pub sender: Arc<dyn MessageSender>,
    /// A sender that may not.
    pub public_only: Arc<dyn MessageSender>,
    /// The receiver. It accepts deliveries until a test sets another reaction.
    pub receiver: Arc<dyn Receiver>,
    /// A timer, which bounds the duration of a test.
    pub timer: Arc<dyn Timer>,
    /// Values that must live as long as the receiver.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// A receiver of deliveries.
pub trait Receiver: Send + Sync {
    /// Returns the URL.
    fn url(&self) -> String;

    /// Returns a private URL that no receiver listens at.
    fn closed_url(&self) -> String;

    /// Sets the reaction to the next deliveries.
    fn react(&self, reaction: ReceiverReaction);

    /// Returns the bodies of all received deliveries, in order.
    fn bodies(&self) -> Vec<String>;
}

/// The reaction of a receiver to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverReaction {
    /// It responds with this status and with [`RECEIVER_TEXT`]. The target of a redirect is the same receiver.
    Status(u16),
    /// It responds with status 503, and asks for a delay in seconds.
    Delay(u64),
    /// It never responds.
    Stall,
}

/// The text of a receiver, which must not appear in an error.
pub const RECEIVER_TEXT: &str = "receiver-text";

/// The time within which every delivery of a test must end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Senders {
    /// Sends, and fails the test if the call does not end.
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError> {
        match select(pin!(self.sender.send(to, delivery)), pin!(self.timer.sleep(PATIENCE))).await {
            Either::Left((end, _)) => end,
            Either::Right(_) => panic!("the delivery did not end"),
        }
    }

    fn destination(&self) -> Destination {
        destination(self.receiver.url())
    }

    async fn fail(&self, reaction: ReceiverReaction) -> DeliveryError {
        self.receiver.react(reaction);
        self.send(&self.destination(), &delivery(&[1])).await.unwrap_err()
    }
}

fn destination(url: String) -> Destination {
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(1)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(2)),
        name: "one".to_owned(),
        kind: DestinationKind::Webhook,
        url,
        headers: Vec::new(),
        signing_secret: Some(SecretString::new("0123456789abcdef")),
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: None,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

/// Returns a delivery of numbered traces.
fn delivery(traces: &[u64]) -> Delivery {
    let trace = |number: &u64| Json::parse(&format!(r#"{{"resourceSpans":["trace {number}"]}}"#)).unwrap();
    Delivery {
        ids: traces.iter().map(|number| OutboxId::from_uuid(SequentialIds::uuid(*number))).collect(),
        traces: traces.iter().map(trace).collect(),
        is_test: false,
    }
}

async fn accepted_delivery_arrives_once(subject: &Senders) {
    for status in [200, 202, 204] {
        subject.receiver.react(ReceiverReaction::Status(status));
        let before = subject.receiver.bodies().len();
        assert_eq!(subject.send(&subject.destination(), &delivery(&[1])).await, Ok(()), "status {status}");
        assert_eq!(subject.receiver.bodies().len(), before + 1);
    }
}

async fn traces_are_one_body_in_their_order(subject: &Senders) {
    subject.send(&subject.destination(), &delivery(&[3, 1, 2])).await.unwrap();
    let bodies = subject.receiver.bodies();
    assert_eq!(bodies.len(), 1);
    let places = ["trace 3", "trace 1", "trace 2"].map(|trace| bodies[0].find(trace).unwrap());
    assert!(places.is_sorted(), "{bodies:?}");
    assert!(Json::parse(&bodies[0]).is_ok(), "{bodies:?}");
}

async fn delivery_without_traces_is_sent(subject: &Senders) {
    subject.send(&subject.destination(), &delivery(&[])).await.unwrap();
    assert_eq!(subject.receiver.bodies().len(), 1);
}

async fn rejected_body_is_an_error_of_the_body(subject: &Senders) {
    for status in [400, 413, 415, 422] {
        assert_eq!(subject.fail(ReceiverReaction::Status(status)).await.kind, DeliveryErrorKind::Body, "{status}");
    }
}

/// Other messages would fail as well, so none of them may become a dead letter for it.
async fn other_status_is_an_error_of_the_receiver(subject: &Senders) {
    for status in [401, 403, 404, 408, 429, 500, 503] {
        assert_eq!(subject.fail(ReceiverReaction::Status(status)).await.kind, DeliveryErrorKind::Receiver, "{status}");
    }
}

async fn failed_delivery_is_not_repeated(subject: &Senders) {
    for (status, count) in [(503, 1), (400, 2)] {
        subject.fail(ReceiverReaction::Status(status)).await;
        assert_eq!(subject.receiver.bodies().len(), count);
    }
}

async fn error_contains_the_requested_delay(subject: &Senders) {
    let error = subject.fail(ReceiverReaction::Delay(7)).await;
    assert_eq!((error.kind, error.retry_after), (DeliveryErrorKind::Receiver, Some(Duration::from_secs(7))));
    assert_eq!(subject.fail(ReceiverReaction::Status(503)).await.retry_after, None);
}

async fn error_contains_no_text_of_the_receiver(subject: &Senders) {
    for status in [400, 500] {
        let error = subject.fail(ReceiverReaction::Status(status)).await;
        let text = format!("{error} {error:?}");
        assert!(!text.contains(RECEIVER_TEXT) && !text.contains(&subject.receiver.url()), "{text}");
    }
}

async fn redirect_is_not_followed(subject: &Senders) {
    let error = subject.fail(ReceiverReaction::Status(307)).await;
    assert_eq!((error.kind, subject.receiver.bodies().len()), (DeliveryErrorKind::Receiver, 1));
}

async fn test_accepts_status_400(subject: &Senders) {
    let test = Delivery { is_test: true, ..delivery(&[]) };
    subject.receiver.react(ReceiverReaction::Status(400));
    assert_eq!(subject.send(&subject.destination(), &test).await, Ok(()), "the receiver read the test");
    subject.receiver.react(ReceiverReaction::Status(401));
    assert!(subject.send(&subject.destination(), &test).await.is_err());
}

async fn silent_receiver_is_an_error_in_time(subject: &Senders) {
    let error = subject.fail(ReceiverReaction::Stall).await;
    assert_eq!((error.kind, error.retry_after), (DeliveryErrorKind::Receiver, None));
}

async fn closed_address_is_an_error_of_the_receiver(subject: &Senders) {
    let error = subject.send(&destination(subject.receiver.closed_url()), &delivery(&[1])).await.unwrap_err();
    assert_eq!(error.kind, DeliveryErrorKind::Receiver, "it may be back later");
}

async fn invalid_address_is_an_error_of_the_address(subject: &Senders) {
    let error = subject.send(&destination("no url".to_owned()), &delivery(&[1])).await.unwrap_err();
    assert_eq!(error.kind, DeliveryErrorKind::Address);
}

async fn private_address_is_rejected_unless_allowed(subject: &Senders) {
    let error = subject.public_only.send(&subject.destination(), &delivery(&[1])).await.unwrap_err();
    assert_eq!(error.kind, DeliveryErrorKind::Address);
    assert_eq!(subject.receiver.bodies(), [""; 0], "no byte is sent");
}

async fn concurrent_deliveries_all_arrive(subject: &Senders) {
    let destination = subject.destination();
    let deliveries: Vec<Delivery> = (1..=4).map(|number| delivery(&[number])).collect();
    let ends = join_all(deliveries.iter().map(|delivery| subject.send(&destination, delivery))).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    let bodies = subject.receiver.bodies();
    for number in 1..=4 {
        let trace = format!("trace {number}");
        assert_eq!(bodies.iter().filter(|body| body.contains(&trace)).count(), 1, "{trace} in {bodies:?}");
    }
}

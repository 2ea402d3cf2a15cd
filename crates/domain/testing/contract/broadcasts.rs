//! Cases of [`Broadcast`].

use std::collections::HashSet;
use std::sync::Arc;

use super::super::SequentialIds;
use super::usage_record;
use crate::decision::{Broadcast, NoBroadcast, TraceContent};
use crate::ids::{DecisionId, DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::observability::{Destination, DestinationKind, SampledGroup};
use crate::question::{ProviderInput, Questions};
use crate::usage::{OutboxMessage, UsageRecord};

suite! {
    /// Every case of the port's contract.
    broadcast_cases as broadcast_contract over Broadcasts {
        each_receiving_destination_gets_one_message,
        other_workspaces_get_messages_of_the_operator_only,
        unsampled_session_gets_no_message,
        message_ids_are_unique,
        private_destination_gets_no_content,
        other_destination_gets_content,
        labels_are_taken_if_a_destination_receives_them,
        concurrent_requests_have_all_messages,
    }
}

/// A broadcast to some destinations.
pub struct Broadcasts {
    /// The broadcast.
    pub broadcast: Arc<dyn Broadcast>,
    /// The destinations of workspaces.
    pub destinations: Vec<Destination>,
    /// The collector of the operator, which receives the traces of all workspaces.
    pub operators: Option<Destination>,
}

const CONTENT: [&str; 3] = ["the question", "the session", "the team"];

impl Broadcasts {
    /// Returns the broadcast without destinations.
    pub fn none() -> Self {
        Self { broadcast: Arc::new(NoBroadcast), destinations: Vec::new(), operators: None }
    }

    /// Returns destinations of every kind: plain, private, disabled, sampled, of another key and of another workspace.
    pub fn sample_destinations() -> Vec<Destination> {
        vec![
            destination(1),
            Destination { privacy_mode: true, ..destination(2) },
            Destination { enabled: false, ..destination(3) },
            Destination { sampling: 5_000, ..destination(4) },
            Destination { api_key_ids: Some(vec![SequentialIds::key(0xee)]), ..destination(5) },
            Destination { api_key_ids: Some(vec![record(1).api_key]), ..destination(6) },
            Destination { workspace_id: workspace_id(0xee), ..destination(7) },
        ]
    }

    /// Returns a collector of the operator.
    pub fn sample_operators() -> Destination {
        Destination { id: Destination::OPERATORS, privacy_mode: true, ..destination(8) }
    }

    fn messages(&self, record: &UsageRecord) -> Vec<OutboxMessage> {
        let questions = Questions { json: Json::string("the question"), typed: None };
        let provider_input = ProviderInput::new(questions, None);
        let content =
            TraceContent { provider_input: &provider_input, answers: None, outcomes: None, redacted_labels: None };
        self.broadcast.messages(record, &content)
    }

    /// Returns all destinations of a workspace.
    fn of_workspace(&self, id: WorkspaceId) -> impl Iterator<Item = &Destination> {
        self.destinations.iter().filter(move |destination| destination.workspace_id == id).chain(&self.operators)
    }

    /// Returns the destinations that receive the trace of a request.
    fn receivers(&self, record: &UsageRecord) -> HashSet<DestinationId> {
        let group = SampledGroup::of_request(record);
        let receives = |destination: &&Destination| destination.receives(record.api_key, &group);
        self.of_workspace(record.workspace_id).filter(receives).map(|destination| destination.id).collect()
    }
}

fn workspace_id(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

fn destination(number: u64) -> Destination {
    let record = record(1);
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(100 + number)),
        workspace_id: record.workspace_id,
        name: "one".to_owned(),
        kind: DestinationKind::OtelCollector,
        url: "https://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: None,
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: None,
        created_at: record.created_at,
        updated_at: None,
    }
}

/// Returns the record of a request with labels.
fn record(number: u64) -> UsageRecord {
    UsageRecord {
        id: DecisionId::from_uuid(SequentialIds::uuid(number)),
        session_id: Some(format!("the session {number}")),
        trace: Json::parse(r#"{"team":"the team"}"#).ok(),
        ..usage_record(1, 7)
    }
}

async fn each_receiving_destination_gets_one_message(subject: &Broadcasts) {
    for number in 1..50 {
        let record = record(number);
        let sent: Vec<DestinationId> = subject.messages(&record).iter().map(|message| message.destination_id).collect();
        assert_eq!(sent.iter().copied().collect::<HashSet<_>>(), subject.receivers(&record));
        assert_eq!(sent.len(), subject.receivers(&record).len(), "no destination gets two messages");
    }
}

async fn other_workspaces_get_messages_of_the_operator_only(subject: &Broadcasts) {
    let elsewhere = UsageRecord { workspace_id: workspace_id(0xff), ..record(1) };
    let sent: Vec<DestinationId> = subject.messages(&elsewhere).iter().map(|message| message.destination_id).collect();
    assert_eq!(sent, subject.operators.iter().map(|operators| operators.id).collect::<Vec<_>>());
}

/// All requests of a session are sent, or none.
async fn unsampled_session_gets_no_message(subject: &Broadcasts) {
    for number in 1..50 {
        let first = record(number);
        let second = UsageRecord { id: DecisionId::from_uuid(SequentialIds::uuid(number + 1_000)), ..first.clone() };
        let destinations = |record| -> HashSet<DestinationId> {
            subject.messages(record).into_iter().map(|message| message.destination_id).collect()
        };
        assert_eq!(destinations(&first), destinations(&second), "session {number}");
    }
}

async fn message_ids_are_unique(subject: &Broadcasts) {
    let sent: Vec<OutboxId> =
        (1..20).flat_map(|number| subject.messages(&record(number))).map(|message| message.id).collect();
    assert_eq!(sent.iter().collect::<HashSet<_>>().len(), sent.len());
}

async fn private_destination_gets_no_content(subject: &Broadcasts) {
    let private =
        |id| subject.destinations.iter().chain(&subject.operators).any(|one| one.id == id && one.privacy_mode);
    for message in subject.messages(&record(1)).iter().filter(|message| private(message.destination_id)) {
        let text = message.payload.text();
        assert!(!CONTENT.iter().any(|word| text.contains(word)), "{text}");
    }
}

async fn other_destination_gets_content(subject: &Broadcasts) {
    let public = |id| subject.destinations.iter().any(|one| one.id == id && !one.privacy_mode);
    for message in subject.messages(&record(1)).iter().filter(|message| public(message.destination_id)) {
        let text = message.payload.text();
        assert!(CONTENT.iter().all(|word| text.contains(word)), "{text}");
    }
}

/// Labels are filtered only if a destination receives them.
async fn labels_are_taken_if_a_destination_receives_them(subject: &Broadcasts) {
    for id in [record(1).workspace_id, workspace_id(0xee), workspace_id(0xff)] {
        let receives = subject.of_workspace(id).any(|destination| destination.enabled && !destination.privacy_mode);
        assert_eq!(subject.broadcast.takes_labels(id), receives, "workspace {id}");
    }
}

async fn concurrent_requests_have_all_messages(subject: &Broadcasts) {
    let expected = subject.receivers(&record(1)).len();
    let sent: Vec<OutboxId> = std::thread::scope(|scope| {
        let send = || (0..50).flat_map(|_| subject.messages(&record(1))).map(|message| message.id).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(send)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sent.iter().collect::<HashSet<_>>().len(), 200 * expected, "each message has an id");
}

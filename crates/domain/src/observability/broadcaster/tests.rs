use super::*;
use crate::ids::{DestinationId, WorkspaceId};
use crate::json::Json;
use crate::observability::DestinationKind;
use crate::question::{ProviderInput, Questions};
use crate::testing::contract::usage_record;
use crate::testing::{PlainMessageEncoder, SequentialIds};
use crate::usage::RequestLabels;

struct FixedDestinations(Vec<Destination>);

impl Destinations for FixedDestinations {
    fn for_workspace(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>> {
        let own: Vec<Destination> = self.0.iter().filter(|one| one.workspace_id == workspace_id).cloned().collect();
        (!own.is_empty()).then(|| own.into())
    }
}

fn destination(number: u64) -> Destination {
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(100 + number)),
        workspace_id: record().workspace_id,
        name: "one".to_owned(),
        kind: DestinationKind::OtelCollector,
        url: "https://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: None,
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: None,
        created_at: record().created_at,
        updated_at: None,
    }
}

fn record() -> UsageRecord {
    usage_record(7, 7)
}

fn broadcaster(destinations: Vec<Destination>, operators: Option<Destination>) -> Broadcaster {
    let ids = Arc::new(SequentialIds::default());
    Broadcaster::new(Arc::new(FixedDestinations(destinations)), operators, Arc::new(PlainMessageEncoder), ids)
}

fn broadcast(
    destinations: Vec<Destination>,
    operators: Option<Destination>,
    record: &UsageRecord,
) -> Vec<OutboxMessage> {
    let questions = Questions { json: Json::string("a secret question"), typed: None };
    let provider_input = ProviderInput::new(questions, None);
    let broadcaster = broadcaster(destinations, operators);
    broadcaster.messages(
        record,
        &TraceContent { provider_input: &provider_input, answers: None, outcomes: None, redacted_labels: None },
    )
}

#[test]
fn broadcast_reaches_every_destination_of_the_workspace_only() {
    let elsewhere = Destination { workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(5)), ..destination(2) };
    let messages = broadcast(vec![destination(1), elsewhere, destination(3)], None, &record());
    let ids: Vec<DestinationId> = messages.iter().map(|message| message.destination_id).collect();
    assert_eq!(ids, [destination(1).id, destination(3).id]);
    assert_ne!(messages[0].id, messages[1].id);
    assert_eq!(broadcast(Vec::new(), None, &record()), []);
}

#[test]
fn operators_collector_receives_traces_of_all_workspaces() {
    let own = Destination { id: Destination::OPERATORS, privacy_mode: true, ..destination(9) };
    let elsewhere = UsageRecord { workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(5)), ..record() };
    let messages = broadcast(vec![destination(1)], Some(own.clone()), &elsewhere);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].destination_id, Destination::OPERATORS);
    assert_eq!(broadcast(vec![destination(1)], Some(own), &record()).len(), 2);
}

#[test]
fn private_destination_receives_no_questions() {
    let private = Destination { privacy_mode: true, ..destination(2) };
    let messages = broadcast(vec![destination(1), private], None, &record());
    assert!(messages[0].payload.text().contains("a secret question"));
    assert!(!messages[1].payload.text().contains("a secret question"));
}

#[test]
fn private_destination_receives_no_labels() {
    let labelled = UsageRecord {
        session_id: Some("the session".to_owned()),
        user: Some("the user".to_owned()),
        trace: Json::parse(r#"{"trace_id":"the id","trace_name":"the name","span_name":"the span","team":"the team"}"#)
            .ok(),
        ..record()
    };
    let private = Destination { privacy_mode: true, ..destination(2) };
    let messages = broadcast(vec![destination(1), private], None, &labelled);
    let bare = UsageRecord { session_id: None, user: None, trace: None, ..labelled };
    for word in ["the session", "the user", "the name", "the span", "the team"] {
        assert!(messages[0].payload.text().contains(word), "{word}");
    }
    assert_eq!(messages[1].payload, PlainMessageEncoder.encode_private(&bare), "not even in an id");
}

#[test]
fn public_destination_receives_filtered_labels() {
    let provider_input = ProviderInput::new(Questions { json: Json::string("q"), typed: None }, None);
    let labels = RequestLabels { session_id: Some("[EMAIL]".to_owned()), ..RequestLabels::default() };
    let exchange =
        TraceContent { provider_input: &provider_input, answers: None, outcomes: None, redacted_labels: Some(&labels) };
    let broadcaster = broadcaster(vec![destination(1)], None);
    let named = |name: &str| UsageRecord {
        session_id: Some(name.to_owned()),
        user: Some(name.to_owned()),
        trace: Json::parse(&format!(r#"{{"team":"{name}"}}"#)).ok(),
        ..record()
    };
    let sent = broadcaster.messages(&named("x@example.com"), &exchange);
    let text = sent[0].payload.text();
    assert!(text.contains("[EMAIL]") && !text.contains("x@example.com"), "{text}");
}

#[test]
fn takes_labels_is_true_when_a_destination_may_receive_them() {
    let takes = |own: Vec<Destination>, operators: Option<Destination>| {
        broadcaster(own, operators).takes_labels(record().workspace_id)
    };
    let private = || Destination { privacy_mode: true, ..destination(2) };
    let disabled = || Destination { enabled: false, ..destination(3) };
    let elsewhere = Destination { workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(5)), ..destination(4) };
    assert!(!takes(Vec::new(), None));
    assert!(!takes(vec![private(), disabled(), elsewhere], Some(private())));
    assert!(takes(vec![private(), destination(1)], None));
    assert!(takes(Vec::new(), Some(destination(1))));
}

#[test]
fn disabled_destination_and_other_keys_receive_nothing() {
    let disabled = Destination { enabled: false, ..destination(1) };
    let others = Destination { api_key_ids: Some(vec![SequentialIds::key(0xee)]), ..destination(2) };
    let this = Destination { api_key_ids: Some(vec![record().api_key]), ..destination(3) };
    let messages = broadcast(vec![disabled, others, this], None, &record());
    assert_eq!(messages.iter().map(|message| message.destination_id).collect::<Vec<_>>(), [destination(3).id]);
}

#[test]
fn sampling_includes_whole_sessions_only() {
    let half = Destination { sampling: 5_000, ..destination(1) };
    let mut sampled = 0;
    for session in 0..200 {
        let session = format!("s{session}");
        let mut sampled_once = (0..3).map(|number| {
            let id = crate::ids::DecisionId::from_uuid(SequentialIds::uuid(number));
            let record = UsageRecord { session_id: Some(session.clone()), id, ..record() };
            broadcast(vec![half.clone()], None, &record).len()
        });
        let first = sampled_once.next().unwrap();
        assert!(sampled_once.all(|other| other == first), "{session}");
        assert_eq!(first == 1, SampledGroup::of(&session).is_sampled_at(5_000));
        sampled += first;
    }
    assert!((60..=140).contains(&sampled), "{sampled} of 200");
}

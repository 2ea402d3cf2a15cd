//! Destinations of traces, messages to them, and the sampling of requests.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::TraceMetadata;
use crate::audit::{Actor, AuditDraft, RowHasher};
use crate::budget::BudgetAlert;
use crate::ids::{ApiKeyId, DestinationId, OutboxId, WorkspaceId};
use crate::json::{Json, ObjectWriter};
use crate::secret::SecretString;
use crate::usage::{OutboxMessage, UsageRecord};
use crate::version::Version;

/// A destination of a workspace's traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The id.
    pub id: DestinationId,
    /// The workspace whose requests are sent.
    pub workspace_id: WorkspaceId,
    /// The display name, 1 to 100 characters.
    pub name: String,
    /// The kind of the destination.
    pub kind: DestinationKind,
    /// The URL, `http` or `https`, without user or fragment.
    pub url: String,
    /// Additional headers; their values may be secret.
    pub headers: Vec<(String, SecretString)>,
    /// The signing secret. Deliveries without one are unsigned.
    pub signing_secret: Option<SecretString>,
    /// False while deliveries are paused.
    pub enabled: bool,
    /// True if traces leave out inputs, answers and the caller's labels.
    pub privacy_mode: bool,
    /// The share of sessions that is sent, in ten-thousandths: 1 to 10,000.
    pub sampling: u16,
    /// The keys whose requests are sent; `None` is all keys.
    pub api_key_ids: Option<Vec<ApiKeyId>>,
    /// The creation time.
    pub created_at: DateTime<Utc>,
    /// The time of the last change.
    pub updated_at: Option<DateTime<Utc>>,
}

named_enum! {
    /// The kind of a destination.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DestinationKind {
        /// An OpenTelemetry collector: OTLP over HTTP with JSON.
        OtelCollector = "otel-collector",
        /// A server that accepts the same body by POST, signed.
        Webhook = "webhook",
    }
}

/// A destination without its settings, which is readable without the key of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDestination {
    /// The id.
    pub id: DestinationId,
    /// The workspace whose requests are sent.
    pub workspace_id: WorkspaceId,
    /// The display name.
    pub name: String,
    /// The time of the last change.
    pub updated_at: Option<DateTime<Utc>>,
}

impl NamedDestination {
    /// Returns the version of the writable members.
    pub fn version(&self) -> Version {
        version(self.id, self.updated_at)
    }
}

/// Returns the version of a destination. Every change sets another update time; a digest of the members would reveal
/// short secrets.
fn version(id: DestinationId, updated_at: Option<DateTime<Utc>>) -> Version {
    let updated_at = updated_at.map(|at| at.timestamp_millis());
    RowHasher::new("destination").text(id.to_string().as_str()).number(updated_at).finish().into()
}

impl Destination {
    /// Returns the version of the writable members.
    pub fn version(&self) -> Version {
        version(self.id, self.updated_at)
    }

    /// Returns the destination without its settings.
    pub fn named(&self) -> NamedDestination {
        let Self { id, workspace_id, name, updated_at, .. } = self;
        NamedDestination { id: *id, workspace_id: *workspace_id, name: name.clone(), updated_at: *updated_at }
    }

    /// The operator's collector, which receives traces of all workspaces and exists in the configuration only.
    pub const OPERATORS: DestinationId = DestinationId::from_uuid(Uuid::nil());
    /// The most destinations of one kind in a workspace.
    pub const MAX_PER_KIND: u64 = 5;

    /// Returns true if requests of this key and sampling group are sent. The answer is the same for the whole group,
    /// because partial sessions are useless.
    pub fn receives(&self, api_key: ApiKeyId, group: &SampledGroup) -> bool {
        self.enabled
            && group.is_sampled_at(self.sampling)
            && self.api_key_ids.as_ref().is_none_or(|ids| ids.contains(&api_key))
    }

    /// Returns true if an alert is sent. A destination of some keys receives the alerts of these keys only, because
    /// those of the workspace show the spend of other keys. Sampling does not apply.
    pub fn receives_alert(&self, alert: &BudgetAlert) -> bool {
        let is_wanted = |ids: &Vec<ApiKeyId>| alert.api_key().is_some_and(|key| ids.contains(&key));
        self.enabled && self.api_key_ids.as_ref().is_none_or(is_wanted)
    }
}

/// A due message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// The message.
    pub message: OutboxMessage,
    /// Failed deliveries so far.
    pub failures: u32,
    /// The time at which it was added to the outbox.
    pub created_at: DateTime<Utc>,
}

/// One request to a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The messages, in their order in the body.
    pub ids: Vec<OutboxId>,
    /// The traces as [`super::MessageEncoder`] encoded them; none for a test of the connection.
    pub traces: Vec<Json>,
    /// True for a test of the connection: any 2xx or a 400 passes.
    pub is_test: bool,
}

/// The status of the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Pending messages.
    pub pending: u64,
    /// Dead letters.
    pub dead: u64,
    /// The time at which the oldest pending message was added.
    pub oldest: Option<DateTime<Utc>>,
}

/// A request to retry dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRetry {
    /// The requesting actor.
    pub actor: Actor,
    /// The destination whose dead letters are retried.
    pub destination: DestinationId,
    /// The state that was read, if it is stored.
    pub seen: Option<Destination>,
}

impl DeadLetterRetry {
    /// Returns the audit entry for the number of retried dead letters.
    pub fn audited(&self, retried: u64) -> AuditDraft {
        let subject = format!("destination {}", self.destination);
        let details = ObjectWriter::new().shown("retried_count", retried).finish();
        AuditDraft::done(&self.actor, "destination.retry", subject, details)
    }
}

/// The unit of sampling rates: ten-thousandths.
pub const SAMPLING_PARTS: u16 = 10_000;

/// The sampling position of a group of requests. It depends on the group's name alone, so every process and every
/// destination samples alike: the sessions of a lower rate are a subset of those of a higher rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledGroup(u64);

impl SampledGroup {
    /// Returns the group with this name.
    pub fn of(name: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let first = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self(first % u64::from(SAMPLING_PARTS))
    }

    /// Returns the group that a request is sampled with: its session, else its trace, else itself.
    pub fn of_request(record: &UsageRecord) -> Self {
        match &record.session_id {
            Some(session) => Self::of(session),
            None => Self::of(&TraceMetadata::parse(record.trace.as_ref()).trace_id(&record.id)),
        }
    }

    /// Returns true if the group is sampled at this rate.
    pub fn is_sampled_at(self, ten_thousandths: u16) -> bool {
        self.0 < u64::from(ten_thousandths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DecisionId;
    use crate::json::Json;
    use crate::testing::SequentialIds;
    use crate::testing::contract::usage_record;

    fn share(ten_thousandths: u16) -> usize {
        (0..20_000).filter(|n| SampledGroup::of(&format!("session {n}")).is_sampled_at(ten_thousandths)).count()
    }

    #[test]
    fn sampling_matches_rate_and_full_rate_includes_all() {
        assert_eq!(share(10_000), 20_000);
        let tenth = share(1_000);
        assert!((1_800..=2_200).contains(&tenth), "{tenth} of 2,000");
        assert!(share(1) <= 8);
    }

    #[test]
    fn rate_zero_samples_no_group() {
        assert_eq!(share(0), 0);
        let first =
            (0..200_000).map(|n| SampledGroup::of(&n.to_string())).find(|group| group.is_sampled_at(1)).unwrap();
        assert!(!first.is_sampled_at(0), "not even the first group");
    }

    #[test]
    fn higher_rate_includes_groups_of_lower_rate() {
        for number in 0..2_000 {
            let group = SampledGroup::of(&number.to_string());
            assert_eq!(group, SampledGroup::of(&number.to_string()), "always alike");
            assert!(!group.is_sampled_at(500) || group.is_sampled_at(2_500));
        }
    }

    #[test]
    fn request_is_sampled_by_session_else_by_trace() {
        let in_session = |session: &str, number| UsageRecord {
            session_id: Some(session.to_owned()),
            id: DecisionId::from_uuid(SequentialIds::uuid(number)),
            ..usage_record(1, 7)
        };
        assert_eq!(SampledGroup::of_request(&in_session("a", 1)), SampledGroup::of_request(&in_session("a", 2)));
        let alone = |trace: &str, number| UsageRecord {
            session_id: None,
            trace: Some(Json::parse(trace).unwrap()),
            ..in_session("", number)
        };
        assert_eq!(
            SampledGroup::of_request(&alone(r#"{"trace_id":"t"}"#, 1)),
            SampledGroup::of_request(&alone(r#"{"trace_id":"t"}"#, 2))
        );
        assert_ne!(SampledGroup::of_request(&alone("{}", 1)), SampledGroup::of_request(&alone("{}", 2)));
    }
}

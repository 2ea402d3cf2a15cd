//! Destinations of traces, and messages to them.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::SampledGroup;
use crate::audit::{Actor, AuditDraft};
use crate::budget::BudgetAlert;
use crate::ids::{ApiKeyId, DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::secret::SecretString;
use crate::usage::OutboxMessage;

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
    /// The signing secret; a webhook always has one.
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

/// The kind of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DestinationKind {
    /// An OpenTelemetry collector: OTLP over HTTP with JSON.
    OtelCollector,
    /// A server that accepts the same body by POST, signed.
    Webhook,
}

impl Destination {
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

impl DestinationKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::OtelCollector, Self::Webhook];

    /// Returns the name in configuration, API and store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtelCollector => "otel-collector",
            Self::Webhook => "webhook",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
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
    /// The destination whose dead letters are retried; `None` for all.
    pub destination: Option<DestinationId>,
}

impl DeadLetterRetry {
    /// Returns the audit entry for the number of retried dead letters.
    pub fn audited(&self, retried: u64) -> AuditDraft {
        let subject = match self.destination {
            Some(id) => format!("destination {id}"),
            None => "every destination".to_owned(),
        };
        let details = Json::object([("retried_count", retried.to_string().as_str())]);
        AuditDraft::done(&self.actor, "destination.retry", subject, details)
    }
}

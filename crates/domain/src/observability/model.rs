//! Destinations of traces, and messages on their way to them.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::SampledGroup;
use crate::ids::{ApiKeyId, DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::usage::OutboxMessage;

/// Where a workspace's traces are broadcast to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// The workspace whose requests it hears of.
    pub workspace_id: WorkspaceId,
    /// What people call it, 1 to 100 characters.
    pub name: String,
    /// What kind of receiver it is.
    pub kind: DestinationKind,
    /// The receiver's URL, `http` or `https`, without user or fragment.
    pub url: String,
    /// Headers that are sent along; their values may be secret.
    pub headers: Vec<(String, SecretString)>,
    /// What deliveries are signed with; a webhook always has one.
    pub signing_secret: Option<SecretString>,
    /// False while nothing is to be sent.
    pub enabled: bool,
    /// True where what was asked and answered stays here, and what the caller said of it.
    pub privacy_mode: bool,
    /// Which share of sessions it hears of, in ten-thousandths: 1 to 10,000.
    pub sampling: u16,
    /// The keys whose requests it hears of; `None` is all of them.
    pub api_key_ids: Option<Vec<ApiKeyId>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: Option<DateTime<Utc>>,
}

/// What kind of receiver a destination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DestinationKind {
    /// An OpenTelemetry collector: OTLP over HTTP with JSON.
    OtelCollector,
    /// Anything that takes the same body by POST, signed.
    Webhook,
}

impl Destination {
    /// The operator's own collector, which hears of all workspaces and is written in the configuration alone.
    pub const OPERATORS: DestinationId = DestinationId::from_uuid(Uuid::nil());
    /// Most destinations of one kind in a workspace.
    pub const MOST_OF_A_KIND: u64 = 5;

    /// True where it hears of requests of that key and group. The same group is always answered alike: a part of a
    /// session is of no use to anybody.
    pub fn receives(&self, api_key: ApiKeyId, group: &SampledGroup) -> bool {
        self.enabled
            && group.is_among(self.sampling)
            && self.api_key_ids.as_ref().is_none_or(|ids| ids.contains(&api_key))
    }
}

impl DestinationKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::OtelCollector, Self::Webhook];

    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtelCollector => "otel-collector",
            Self::Webhook => "webhook",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A text that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretString(String);

impl SecretString {
    /// Hides it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for those who send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// A message that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// The message.
    pub message: OutboxMessage,
    /// Deliveries that failed so far.
    pub failures: u32,
    /// When it was put into the outbox.
    pub created_at: DateTime<Utc>,
}

/// What is sent to a destination at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The messages, in their order in the body.
    pub ids: Vec<OutboxId>,
    /// The traces as [`super::TraceEncoder`] encoded them; none for a test of the connection.
    pub traces: Vec<Json>,
    /// True for a test of the connection: any 2xx or a 400 will do.
    pub is_test: bool,
}

/// How the outbox stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Messages that wait.
    pub pending: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// When the oldest of those that wait was put there.
    pub oldest: Option<DateTime<Utc>>,
}

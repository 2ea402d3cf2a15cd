//! Stored keys, and authenticated callers.

use chrono::{DateTime, Utc};

use super::{InvalidApiKeyName, InvalidUserLabel, KeyIdentity};
use crate::audit::{Actor, AuditDraft, RowHasher};
use crate::authority::{Authority, ManagementScope};
use crate::budget::{ResetInterval, SpendLimit};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::json::{Json, ObjectWriter};
use crate::rate::RateLimits;
use crate::secret::ApiKeyHash;
use crate::version::Version;

/// A stored key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The id, which accounts, records and the audit log refer to. A rotation keeps it.
    pub id: ApiKeyId,
    /// The SHA-256 of the current secret.
    pub hash: ApiKeyHash,
    /// The masked secret.
    pub label: String,
    /// The display name.
    pub name: ApiKeyName,
    /// The scope.
    pub scope: ApiKeyScope,
    /// True while the key is disabled.
    pub disabled: bool,
    /// The expiry; the key is rejected from then on.
    pub expires_at: Option<DateTime<Utc>>,
    /// The spend limit.
    pub limit: Option<SpendLimit>,
    /// The rate limits; `None` follows the configuration.
    pub rates: RateLimits,
    /// The guardrail of the key.
    pub guardrail_id: Option<GuardrailId>,
    /// The operator's labels.
    pub users: KeyUsers,
    /// The secret before the last rotation, while it is valid.
    pub previous_secret: Option<PreviousSecret>,
    /// The creation time.
    pub created_at: DateTime<Utc>,
    /// The time of the last update, except for assignments of guardrails.
    pub updated_at: Option<DateTime<Utc>>,
}

/// The users of a key: labels of the operator, which permit nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyUsers {
    /// The user who created the key.
    pub creator: Option<UserLabel>,
    /// The user of the operator's service that the key belongs to.
    pub external: Option<UserLabel>,
}

/// A label of a user, of 1 to 512 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserLabel(String);

text_access!(UserLabel);

impl UserLabel {
    /// Validates length and characters.
    pub fn try_new(label: &str) -> Result<Self, InvalidUserLabel> {
        let fits = (1..=512).contains(&label.chars().count()) && !label.chars().any(char::is_control);
        if fits { Ok(Self(label.to_owned())) } else { Err(InvalidUserLabel) }
    }
}

/// A secret that a rotation replaced, and that stays valid for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousSecret {
    /// Its SHA-256.
    pub hash: ApiKeyHash,
    /// The time from which it is rejected.
    pub expires_at: DateTime<Utc>,
}

impl ApiKey {
    /// Returns true for an unrestricted management key that is enabled and has not expired.
    pub fn is_unrestricted_at(&self, now: DateTime<Utc>) -> bool {
        let is_unrestricted = self.scope.management().is_some_and(ManagementScope::is_unrestricted);
        is_unrestricted && !self.disabled && self.expires_at.is_none_or(|at| at > now)
    }

    /// Returns the version of the writable members.
    pub fn version(&self) -> Version {
        let management = self.scope.management().map(ManagementScope::view);
        let label = |label: &Option<UserLabel>| label.as_ref().map(|label| label.as_str().to_owned());
        RowHasher::new("key")
            .text(self.id.to_string().as_str())
            .text(self.name.as_str())
            .text(management.as_ref().map(Json::text))
            .number(i64::from(self.disabled))
            .number(self.expires_at.map(|at| at.timestamp_millis()))
            .number(self.limit.map(|limit| limit.amount.pico()))
            .text(self.limit.and_then(|limit| limit.reset).map(ResetInterval::as_str))
            .number(self.rates.requests_per_minute.map(i64::from))
            .number(self.rates.tokens_per_minute.map(i64::from))
            .text(self.guardrail_id.map(|id| id.to_string()).as_deref())
            .text(label(&self.users.creator).as_deref())
            .text(label(&self.users.external).as_deref())
            .finish()
            .into()
    }

    /// Returns the id, the hash and the workspace.
    pub fn identity(&self) -> KeyIdentity {
        KeyIdentity { id: self.id, hash: self.hash, workspace_id: self.scope.workspace_id() }
    }
}

/// The scope of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKeyScope {
    /// Calls models and handles files of one workspace.
    Inference(WorkspaceId),
    /// Manages workspaces; cannot call models.
    Management(ManagementScope),
}

impl ApiKeyScope {
    /// Returns the workspace of an inference key.
    pub fn workspace_id(&self) -> Option<WorkspaceId> {
        match self {
            Self::Inference(id) => Some(*id),
            Self::Management(_) => None,
        }
    }

    /// Returns the scope of a management key.
    pub fn management(&self) -> Option<&ManagementScope> {
        match self {
            Self::Inference(_) => None,
            Self::Management(scope) => Some(scope),
        }
    }

    /// Returns true if keys of this scope exist for the caller. Management keys do for unrestricted callers only.
    pub fn is_visible_to(&self, by: &Authority) -> bool {
        self.workspace_id().map_or_else(|| by.scope().is_unrestricted(), |workspace| by.sees(workspace))
    }
}

display_name!(
    /// A name of 1 to 200 characters without control characters.
    ApiKeyName,
    200,
    InvalidApiKeyName
);

impl ApiKeyName {
    /// Returns the name of the key that the first start creates.
    pub fn first_management_key() -> Self {
        Self("first management key".to_owned())
    }
}

/// The data of a key that a request needs, read and cached as one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The id of the key.
    pub id: ApiKeyId,
    /// Returns the hash of the caller's secret.
    pub hash: ApiKeyHash,
    /// True while the key is disabled.
    pub disabled: bool,
    /// The expiry of the caller's secret; it is rejected from then on.
    pub expires_at: Option<DateTime<Utc>>,
    /// The scope of the key, with data of its workspace.
    pub scope: GrantScope,
}

/// The scope of a key, with data of its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// An inference key.
    Inference {
        /// The workspace.
        workspace_id: WorkspaceId,
        /// True while the workspace is suspended.
        workspace_suspended: bool,
        /// The workspace's owner, for error envelopes.
        owner_id: Option<String>,
        /// The guardrail of the key.
        guardrail_id: Option<GuardrailId>,
        /// The default guardrail of the workspace.
        workspace_guardrail_id: Option<GuardrailId>,
        /// True if the key has a limit, or its workspace has credit or a budget.
        limited: bool,
        /// The rate limits of the key.
        rates: RateLimits,
        /// The rate limits of all keys of the workspace together.
        workspace_rates: RateLimits,
    },
    /// A management key.
    Management(ManagementScope),
}

/// Proof that the caller holds a live inference key of a workspace that is not suspended. Only
/// [`super::Authenticate`] (and tests, by [`InferenceKey::for_tests`]) create it, so a use case that takes it needs
/// no own check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferenceKey {
    pub(super) id: ApiKeyId,
    pub(super) hash: ApiKeyHash,
    pub(super) workspace_id: WorkspaceId,
    pub(super) owner_id: Option<String>,
    pub(super) guardrail_id: Option<GuardrailId>,
    pub(super) workspace_guardrail_id: Option<GuardrailId>,
    pub(super) limited: bool,
    pub(super) rates: RateLimits,
    pub(super) workspace_rates: RateLimits,
}

impl InferenceKey {
    /// Returns the id of the key.
    pub fn id(&self) -> ApiKeyId {
        self.id
    }

    /// Returns the hash of the caller's secret.
    pub fn hash(&self) -> ApiKeyHash {
        self.hash
    }

    /// Returns the workspace of the caller.
    pub fn workspace_id(&self) -> WorkspaceId {
        self.workspace_id
    }

    /// Returns the workspace's owner, if set.
    pub fn owner_id(&self) -> Option<&str> {
        self.owner_id.as_deref()
    }

    /// Returns the guardrail of the key.
    pub fn guardrail_id(&self) -> Option<GuardrailId> {
        self.guardrail_id
    }

    /// Returns the default guardrail of the workspace.
    pub fn workspace_guardrail_id(&self) -> Option<GuardrailId> {
        self.workspace_guardrail_id
    }

    /// Returns true if the key has a limit, or its workspace has credit or a budget. Guardrails may limit it as well.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Returns the rate limits of the key.
    pub fn rates(&self) -> RateLimits {
        self.rates
    }

    /// Returns the rate limits of all keys of the workspace together.
    pub fn workspace_rates(&self) -> RateLimits {
        self.workspace_rates
    }

    /// Returns a caller without authentication, for tests: without guardrail, limit and hash.
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(id: ApiKeyId, workspace_id: WorkspaceId) -> Self {
        Self {
            id,
            hash: ApiKeyHash::from_bytes([0; 32]),
            workspace_id,
            owner_id: None,
            guardrail_id: None,
            workspace_guardrail_id: None,
            limited: false,
            rates: RateLimits::default(),
            workspace_rates: RateLimits::default(),
        }
    }

    /// Sets the hash of the secret, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_hash(self, hash: ApiKeyHash) -> Self {
        Self { hash, ..self }
    }

    /// Sets the guardrails, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn under(self, workspace_guardrail_id: Option<GuardrailId>, guardrail_id: Option<GuardrailId>) -> Self {
        Self { guardrail_id, workspace_guardrail_id, ..self }
    }

    /// Marks the caller as limited, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_limit(self) -> Self {
        Self { limited: true, ..self }
    }
}

/// Proof that the caller holds a live management key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementKey {
    pub(super) id: ApiKeyId,
    pub(super) hash: ApiKeyHash,
    pub(super) scope: ManagementScope,
}

impl ManagementKey {
    /// Returns the id of the key.
    pub fn id(&self) -> ApiKeyId {
        self.id
    }

    /// Returns the hash of the caller's secret.
    pub fn hash(&self) -> ApiKeyHash {
        self.hash
    }

    /// Returns the scope of the key.
    pub fn scope(&self) -> &ManagementScope {
        &self.scope
    }

    /// Returns the authority of the key; `actor` names the key in the audit log.
    pub fn authority(&self, actor: Actor) -> Authority {
        Authority::of_key(actor, self.scope.clone())
    }

    /// Returns a caller without authentication, for tests: unrestricted and without hash.
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(id: ApiKeyId) -> Self {
        Self { id, hash: ApiKeyHash::from_bytes([0; 32]), scope: ManagementScope::UNRESTRICTED }
    }

    /// Sets the scope, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_scope(self, scope: ManagementScope) -> Self {
        Self { scope, ..self }
    }
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// With an inference key.
    Inference(InferenceKey),
    /// With a management key.
    Management(ManagementKey),
    /// Without a key: the operator, whom the operating system authenticates.
    Operator(Authority),
}

impl Principal {
    /// Returns the id of the key; `None` for the operator.
    pub fn id(&self) -> Option<ApiKeyId> {
        match self {
            Self::Inference(key) => Some(key.id),
            Self::Management(key) => Some(key.id),
            Self::Operator(_) => None,
        }
    }

    /// Returns the authority over management operations, or an error for an inference key. `actor` names a management
    /// key in the audit log.
    pub fn authority(&self, actor: impl FnOnce(ApiKeyId) -> Actor) -> Result<Authority, super::WrongKeyKind> {
        match self {
            Self::Management(key) => Ok(key.authority(actor(key.id))),
            Self::Operator(by) => Ok(by.clone()),
            Self::Inference(_) => Err(super::WrongKeyKind::ManagementNeeded),
        }
    }

    /// Returns the inference key, or an error for another caller.
    pub fn inference(&self) -> Result<&InferenceKey, super::WrongKeyKind> {
        match self {
            Self::Inference(key) => Ok(key),
            Self::Management(_) | Self::Operator(_) => Err(super::WrongKeyKind::InferenceNeeded),
        }
    }
}

pub(super) fn view(key: &ApiKey) -> Json {
    let limit = key.limit;
    let management = key.scope.management().map(ManagementScope::view);
    ObjectWriter::new()
        .text("name", key.name.as_str())
        .text("hash", key.hash.to_string())
        .text_or_null("workspace_id", key.scope.workspace_id().map(|id| id.to_string()))
        .shown_or_null("management", management.as_ref().map(Json::text))
        .shown_or_null("limit_usd", limit.map(|limit| limit.amount))
        .text_or_null("limit_reset", limit.and_then(|limit| limit.reset).map(ResetInterval::as_str))
        .shown_or_null("requests_per_minute", key.rates.requests_per_minute)
        .shown_or_null("tokens_per_minute", key.rates.tokens_per_minute)
        .text_or_null("expires_at", key.expires_at.map(|at| at.to_rfc3339()))
        .shown("disabled", key.disabled)
        .text_or_null("guardrail_id", key.guardrail_id.map(|id| id.to_string()))
        .text_or_null("creator_user_id", key.users.creator.as_ref().map(UserLabel::as_str))
        .text_or_null("external_user", key.users.external.as_ref().map(UserLabel::as_str))
        .text_or_null("previous_secret_expires_at", key.previous_secret.map(|secret| secret.expires_at.to_rfc3339()))
        .finish()
}

pub(super) fn audit_draft(
    by: &Authority,
    action: &'static str,
    id: ApiKeyId,
    before: Option<Json>,
    after: Option<Json>,
) -> AuditDraft {
    AuditDraft::change(by.actor(), action, format!("key {id}"), before, after)
}

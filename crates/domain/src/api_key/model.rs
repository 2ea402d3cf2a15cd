//! A key as it is kept, and a caller as a key proves it.

use chrono::{DateTime, Utc};

use super::{ApiKeyHash, InvalidApiKeyName, KeyIdentity};
use crate::budget::SpendLimit;
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::rate::RateLimits;

/// A key as it is kept: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id, by which accounts, records and the audit log refer to it; a rotation leaves it.
    pub id: ApiKeyId,
    /// The SHA-256 of its present secret.
    pub hash: ApiKeyHash,
    /// The masked secret.
    pub label: String,
    /// What people call it.
    pub name: ApiKeyName,
    /// What it may do.
    pub scope: ApiKeyScope,
    /// True while it is switched off.
    pub disabled: bool,
    /// From this moment on it is refused.
    pub expires_at: Option<DateTime<Utc>>,
    /// How much it may spend.
    pub limit: Option<SpendLimit>,
    /// How often it may call; what is `None` here follows the configuration.
    pub rates: RateLimits,
    /// The guardrail that it holds; a key holds at most one.
    pub guardrail_id: Option<GuardrailId>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl ApiKey {
    /// Both of its names.
    pub fn identity(&self) -> KeyIdentity {
        KeyIdentity { id: self.id, hash: self.hash }
    }
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyScope {
    /// Runs models and handles files of one workspace.
    Inference(WorkspaceId),
    /// Manages, across workspaces; runs nothing.
    Management,
}

impl ApiKeyScope {
    /// The workspace of an inference key.
    pub fn workspace_id(self) -> Option<WorkspaceId> {
        match self {
            Self::Inference(id) => Some(id),
            Self::Management => None,
        }
    }
}

/// A name of 1 to 200 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyName(String);

impl ApiKeyName {
    /// Checks length and characters.
    pub fn try_new(name: &str) -> Result<Self, InvalidApiKeyName> {
        let fits = (1..=200).contains(&name.chars().count());
        if fits && !name.chars().any(char::is_control) && !name.trim().is_empty() {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidApiKeyName)
        }
    }

    /// What the first start calls the key that it makes.
    pub fn first_management_key() -> Self {
        Self("first management key".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// All that a request needs to know of its key, read in one piece so that it can be cached in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key.
    pub id: ApiKeyId,
    /// The hash of the secret that it was found by.
    pub hash: ApiKeyHash,
    /// True while the key is switched off.
    pub disabled: bool,
    /// From this moment on the key is refused.
    pub expires_at: Option<DateTime<Utc>>,
    /// What the key may do.
    pub scope: GrantScope,
}

/// What the key may do, with what its workspace adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// An inference key.
    Inference {
        /// Its workspace.
        workspace_id: WorkspaceId,
        /// True while the workspace is suspended.
        workspace_suspended: bool,
        /// The workspace's owner, for error envelopes.
        owner_id: Option<String>,
        /// The guardrail that the key holds.
        guardrail_id: Option<GuardrailId>,
        /// The guardrail that its whole workspace is under.
        workspace_guardrail_id: Option<GuardrailId>,
        /// True where the key has a limit, or its workspace credit or a budget.
        limited: bool,
        /// How often the key may call.
        rates: RateLimits,
        /// How often all keys of the workspace together may call.
        workspace_rates: RateLimits,
    },
    /// A management key.
    Management,
}

/// Proof that the caller holds a live inference key of a workspace that is not suspended. Only
/// [`super::Authenticate`] (and tests, by [`InferenceKey::for_tests`]) make one, so a use case that takes it needs
/// no check of its own.
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
    /// The key.
    pub fn id(&self) -> ApiKeyId {
        self.id
    }

    /// The hash of the caller's secret.
    pub fn hash(&self) -> ApiKeyHash {
        self.hash
    }

    /// The workspace that the caller acts in.
    pub fn workspace_id(&self) -> WorkspaceId {
        self.workspace_id
    }

    /// The workspace's owner, where one is set.
    pub fn owner_id(&self) -> Option<&str> {
        self.owner_id.as_deref()
    }

    /// The guardrail that the key holds.
    pub fn guardrail_id(&self) -> Option<GuardrailId> {
        self.guardrail_id
    }

    /// The guardrail that its whole workspace is under.
    pub fn workspace_guardrail_id(&self) -> Option<GuardrailId> {
        self.workspace_guardrail_id
    }

    /// True where the key has a limit, or its workspace credit or a budget. Guardrails may limit it as well.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// How often the key may call.
    pub fn rates(&self) -> RateLimits {
        self.rates
    }

    /// How often all keys of the workspace together may call.
    pub fn workspace_rates(&self) -> RateLimits {
        self.workspace_rates
    }

    /// A caller without authentication, for tests: under no guardrail, with no limit, and of no known hash.
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

    /// The same caller with the secret of that hash, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_hash(self, hash: ApiKeyHash) -> Self {
        Self { hash, ..self }
    }

    /// The same caller under guardrails, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn under(self, workspace_guardrail_id: Option<GuardrailId>, guardrail_id: Option<GuardrailId>) -> Self {
        Self { guardrail_id, workspace_guardrail_id, ..self }
    }

    /// The same caller with a limit, for tests.
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
}

impl ManagementKey {
    /// The key.
    pub fn id(&self) -> ApiKeyId {
        self.id
    }

    /// The hash of the caller's secret.
    pub fn hash(&self) -> ApiKeyHash {
        self.hash
    }

    /// A caller without authentication, for tests: of no known hash.
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(id: ApiKeyId) -> Self {
        Self { id, hash: ApiKeyHash::from_bytes([0; 32]) }
    }
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// With an inference key.
    Inference(InferenceKey),
    /// With a management key.
    Management(ManagementKey),
}

impl Principal {
    /// The key.
    pub fn id(&self) -> ApiKeyId {
        match self {
            Self::Inference(key) => key.id,
            Self::Management(key) => key.id,
        }
    }

    /// The caller as one who may manage.
    pub fn management(&self) -> Result<&ManagementKey, super::WrongKeyKind> {
        match self {
            Self::Management(key) => Ok(key),
            Self::Inference(_) => Err(super::WrongKeyKind::ManagementNeeded),
        }
    }

    /// The caller as one who may run models and handle files.
    pub fn inference(&self) -> Result<&InferenceKey, super::WrongKeyKind> {
        match self {
            Self::Inference(key) => Ok(key),
            Self::Management(_) => Err(super::WrongKeyKind::InferenceNeeded),
        }
    }
}

//! A guardrail's record, and its assignments to keys.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::InvalidGuardrailName;
use crate::api_key::ApiKeyName;
use crate::audit::{Actor, AuditDraft, RowHasher};
use crate::budget::{ResetInterval, SpendLimit};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::json::ObjectWriter;
use crate::secret::ApiKeyHash;
use crate::usage::FilterAction;
use crate::version::Version;

/// A named set of rules, assigned to keys of one workspace or to the whole workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// The id.
    pub id: GuardrailId,
    /// The workspace whose keys it can be assigned to.
    pub workspace_id: WorkspaceId,
    /// The display name.
    pub name: GuardrailName,
    /// The spend limit of each key that has the guardrail assigned, counted per key.
    pub budget: Option<SpendLimit>,
    /// All other rules.
    pub rules: GuardrailRules,
    /// The version, from 1; every change adds 1.
    pub version: u32,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last change.
    pub updated_at: Option<DateTime<Utc>>,
}

/// The rules of a guardrail besides its budget. Member names are those of the interface and of stores.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardrailRules {
    /// A description of at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Canonical slugs of the allowed models; all others are forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_models: Option<Vec<String>>,
    /// Canonical slugs of the forbidden models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_models: Option<Vec<String>>,
    /// The ids, without variants, that the models of [`Self::ignored_models`] had when the list was written. The ban
    /// still holds if the catalogue later gives a model another slug, or drops it and lists it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_model_ids: Vec<String>,
    /// Slugs of the allowed providers; all others are forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_providers: Option<Vec<String>>,
    /// Slugs of the forbidden providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_providers: Option<Vec<String>>,
    /// The rules for the handling of data by providers.
    #[serde(flatten)]
    pub data_policy: DataPolicyRules,
    /// Patterns of the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filters: Vec<ContentFilter>,
    /// Built-in patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filter_builtins: Vec<BuiltinContentFilter>,
}

/// The rules for the handling of data by providers, as far as endpoint records cover it. `None` is no rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataPolicyRules {
    /// If true, only endpoints with zero retention, for every group below without a value of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr: Option<bool>,
    /// The same rule for models of `anthropic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_anthropic: Option<bool>,
    /// The same rule for models of `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_openai: Option<bool>,
    /// The same rule for models of `google`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_google: Option<bool>,
    /// The same rule for models of `x-ai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_xai: Option<bool>,
    /// The same rule for models of all other authors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_other: Option<bool>,
    /// If false, no endpoint with a price that collects its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_paid_model_training: Option<bool>,
    /// If false, no endpoint without a price that collects its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_free_model_training: Option<bool>,
}

impl DataPolicyRules {
    /// The names of the rules.
    pub const FLAGS: [&str; 8] = [
        "enforce_zdr",
        "enforce_zdr_anthropic",
        "enforce_zdr_openai",
        "enforce_zdr_google",
        "enforce_zdr_xai",
        "enforce_zdr_other",
        "enable_paid_model_training",
        "enable_free_model_training",
    ];

    /// Returns the rule of that name.
    pub(super) fn flag_mut(&mut self, name: &str) -> Option<&mut Option<bool>> {
        Some(match name {
            "enforce_zdr" => &mut self.enforce_zdr,
            "enforce_zdr_anthropic" => &mut self.enforce_zdr_anthropic,
            "enforce_zdr_openai" => &mut self.enforce_zdr_openai,
            "enforce_zdr_google" => &mut self.enforce_zdr_google,
            "enforce_zdr_xai" => &mut self.enforce_zdr_xai,
            "enforce_zdr_other" => &mut self.enforce_zdr_other,
            "enable_paid_model_training" => &mut self.enable_paid_model_training,
            "enable_free_model_training" => &mut self.enable_free_model_training,
            _ => return None,
        })
    }
}

/// A pattern of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFilter {
    /// A regular expression, matched in linear time.
    pub pattern: String,
    /// The action on a match.
    pub action: FilterAction,
    /// The filter's name. In brackets it replaces a redacted match. At most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
}

/// The use of a built-in pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinContentFilter {
    /// The pattern.
    pub slug: BuiltinFilter,
    /// The action on a match.
    pub action: FilterAction,
    /// The scope that the client wrote.
    #[serde(default, skip_serializing_if = "ScanScope::is_default")]
    pub scan_scope: ScanScope,
}

impl BuiltinContentFilter {
    /// Creates the use of a pattern, with the default scope.
    pub fn new(slug: BuiltinFilter, action: FilterAction) -> Self {
        Self { slug, action, scan_scope: ScanScope::default() }
    }
}

named_enum! {
    /// The scope of a built-in pattern, as clients write it. All content is scanned in either.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ScanScope {
        /// Messages of the user.
        UserOnly = "user_only",
        /// All messages.
        #[default]
        AllMessages = "all_messages",
    }
}

impl ScanScope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named_enum! {
    /// The built-in patterns.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum BuiltinFilter {
        /// E-mail addresses.
        Email = "email",
        /// Telephone numbers.
        Phone = "phone",
        /// Social security numbers of the United States.
        Ssn = "ssn",
        /// Payment card numbers whose check digit is right.
        CreditCard = "credit-card",
        /// IP addresses, version 4 and 6.
        IpAddress = "ip-address",
        /// Keys and tokens of well-known services, private keys, and values labelled as a password.
        Secrets = "secrets",
        /// Attempts to make a model disregard its instructions.
        RegexPromptInjection = "regex-prompt-injection",
    }
}

impl BuiltinFilter {
    /// Returns the label for error messages. In brackets it replaces a redacted match.
    pub fn label(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
            Self::Ssn => "SSN",
            Self::CreditCard => "CREDIT_CARD",
            Self::IpAddress => "IP_ADDRESS",
            Self::Secrets => "SECRET",
            Self::RegexPromptInjection => "PROMPT_INJECTION",
        }
    }
}

/// A version of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailVersion {
    /// The guardrail in this version.
    pub guardrail: Guardrail,
    /// The time of the change to this version.
    pub changed_at: DateTime<Utc>,
    /// The name of the [`crate::audit::Actor`] who made the change.
    pub changed_by: String,
}

impl Guardrail {
    /// Estimates its size.
    pub fn stored_bytes(&self) -> u64 {
        const GUARDRAIL: usize = 1 << 10;
        const ELEMENT: usize = 32;
        let GuardrailRules { allowed_models, ignored_models, allowed_providers, ignored_providers, .. } = &self.rules;
        let lists = [allowed_models, ignored_models, allowed_providers, ignored_providers].into_iter().flatten();
        let names = lists.chain([&self.rules.ignored_model_ids]).flatten().map(|name| ELEMENT + name.len());
        let filters = self
            .rules
            .content_filters
            .iter()
            .map(|filter| ELEMENT + filter.pattern.len() + filter.label.as_ref().map_or(0, String::len));
        let description = self.rules.description.as_ref().map_or(0, String::len);
        (GUARDRAIL + description + names.chain(filters).sum::<usize>()) as u64
    }
}

display_name!(
    /// A name of 1 to 200 characters without control characters.
    GuardrailName,
    200,
    InvalidGuardrailName
);

/// The highest number of keys that one audit entry names.
const AUDITED_KEYS: usize = 100;

/// A key with an assigned guardrail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAssignment {
    /// The guardrail.
    pub guardrail_id: GuardrailId,
    /// The key.
    pub key_id: ApiKeyId,
    /// The hash of the key's current secret.
    pub key_hash: ApiKeyHash,
    /// The key's display name.
    pub key_name: ApiKeyName,
    /// The key's masked secret.
    pub key_label: String,
    /// The name of the [`crate::audit::Actor`] who assigned it; `None` for assignments made before this was recorded.
    pub assigned_by: Option<String>,
    /// The time of the assignment.
    pub assigned_at: DateTime<Utc>,
}

impl KeyAssignment {
    /// Returns the assignment's id. It depends only on the guardrail and the key: it survives a rotation of the secret,
    /// and a repeated assignment gets the same id again.
    pub fn id(&self) -> Uuid {
        let mut digest = Sha256::new();
        digest.update(self.guardrail_id.uuid().as_bytes());
        digest.update(self.key_id.uuid().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// A guardrail, and whether it is its workspace's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGuardrail {
    /// The guardrail.
    pub guardrail: Guardrail,
    /// True if it applies to all requests of its workspace, besides the guardrails of the keys.
    pub workspace_default: bool,
}

impl PlacedGuardrail {
    /// Returns the version of the writable members.
    pub fn version(&self) -> Version {
        let Guardrail { id, name, budget, rules, .. } = &self.guardrail;
        // Rules hold only strings, booleans and lists of them, so this never fails.
        let rules = serde_json::to_string(rules).unwrap_or_default();
        RowHasher::new("guardrail")
            .text(id.to_string().as_str())
            .number(i64::from(self.workspace_default))
            .text(name.as_str())
            .number(budget.map(|budget| budget.amount.pico()))
            .text(budget.and_then(|budget| budget.reset).map(ResetInterval::as_str))
            .text(rules.as_str())
            .finish()
            .into()
    }
}

/// Returns the audit entry for keys that a guardrail was assigned to: their number, and the first of them.
pub fn keys_assigned(actor: &Actor, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    on_keys(actor, "guardrail.assign_keys", id, keys)
}

/// Returns the audit entry for keys that a guardrail was removed from: their number, and the first of them.
pub fn keys_removed(actor: &Actor, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    on_keys(actor, "guardrail.remove_keys", id, keys)
}

fn on_keys(actor: &Actor, action: &'static str, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    let listed = keys.iter().take(AUDITED_KEYS).map(ToString::to_string);
    let details = ObjectWriter::new().shown("keys_count", keys.len()).texts("keys", listed);
    AuditDraft::done(actor, action, format!("guardrail {id}"), details.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_depends_on_guardrail_and_key_only() {
        let of = |guardrail: u128, key: u8| KeyAssignment {
            guardrail_id: GuardrailId::from_uuid(Uuid::from_u128(guardrail)),
            key_id: ApiKeyId::from_uuid(Uuid::from_u128(u128::from(key))),
            key_hash: ApiKeyHash::from_bytes([key; 32]),
            key_name: ApiKeyName::try_new("k").unwrap(),
            key_label: String::new(),
            assigned_by: None,
            assigned_at: DateTime::UNIX_EPOCH,
        };
        assert_eq!(of(1, 1).id(), KeyAssignment { assigned_by: Some("x".to_owned()), ..of(1, 1) }.id());
        let rotated = KeyAssignment { key_hash: ApiKeyHash::from_bytes([9; 32]), ..of(1, 1) };
        assert_eq!(of(1, 1).id(), rotated.id());
        assert_ne!(of(1, 1).id(), of(1, 2).id());
        assert_ne!(of(1, 1).id(), of(2, 1).id());
        assert_eq!(of(1, 1).id().get_version_num(), 8);
    }

    #[test]
    fn keys_assigned_lists_at_most_one_hundred_keys() {
        let keys: Vec<ApiKeyId> = (1..=101).map(|key| ApiKeyId::from_uuid(Uuid::from_u128(key))).collect();
        let guardrail = GuardrailId::from_uuid(Uuid::from_u128(1));
        let entry = keys_assigned(&Actor::system(), guardrail, &keys);
        let details = entry.details.text();
        assert!(
            details.starts_with(r#"{"keys_count":101,"keys":["00000000-0000-0000-0000-000000000001","#),
            "{details}"
        );
        assert!(details.ends_with(r#"-000000000064"]}"#), "{details}");
        assert_eq!((entry.action, entry.subject), ("guardrail.assign_keys", format!("guardrail {guardrail}")));
        assert_eq!(keys_removed(&Actor::system(), guardrail, &keys).action, "guardrail.remove_keys");
    }
}

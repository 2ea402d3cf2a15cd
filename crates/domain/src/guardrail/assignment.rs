//! That a key holds a guardrail.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::api_key::{ApiKeyName, KeyReference};
use crate::audit::{Actor, AuditDraft};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, GuardrailId};
use crate::json::Json;
use crate::secret::ApiKeyHash;

/// Most keys that an entry of the audit log names.
const AUDITED_KEYS: usize = 100;

/// A key that holds a guardrail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAssignment {
    /// The guardrail.
    pub guardrail_id: GuardrailId,
    /// The key.
    pub key_id: ApiKeyId,
    /// The hash of the key's present secret.
    pub key_hash: ApiKeyHash,
    /// What people call the key.
    pub key_name: ApiKeyName,
    /// The key's masked secret.
    pub key_label: String,
    /// Who gave it: the name of an [`crate::audit::Actor`]; `None` where that was not written down yet.
    pub assigned_by: Option<String>,
    /// When the key began to hold it.
    pub assigned_at: DateTime<Utc>,
}

impl KeyAssignment {
    /// Names the assignment: the same for as long as the key holds the guardrail, also under a new secret, and again when
    /// it does again.
    pub fn id(&self) -> Uuid {
        let mut digest = Sha256::new();
        digest.update(self.guardrail_id.uuid().as_bytes());
        digest.update(self.key_id.uuid().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// Some of the keys that hold a guardrail, and how many do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentPage {
    /// The newest assignment first.
    pub assignments: Vec<KeyAssignment>,
    /// How many live keys hold it, those beyond the page included.
    pub total: u64,
}

/// Keeps which keys hold which guardrail, beside [`super::GuardrailRepository::assign_keys`], which gives them.
///
/// # Contract
/// - Only live (not deleted; disabled and expired ones count) keys hold anything.
/// - Every method is one transaction; `remove` MUST be all or nothing however many names it takes, writes the entry of
///   [`keys_removed`] and the changed keys ([`crate::change_feed::ChangeSubject::keys_of`]) in it, both where it changes
///   something.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailAssignments: Send + Sync {
    /// Up to `limit` assignments without the first `offset`; `None` where there is no such guardrail.
    async fn list(&self, id: GuardrailId, offset: u64, limit: u64) -> Result<Option<AssignmentPage>, StoreError>;

    /// Takes the guardrail from every key of `keys` that holds it and skips the others. Returns how many did, each key
    /// once; `None` where there is no such guardrail. `keys` is sorted and holds no duplicates.
    async fn remove(&self, id: GuardrailId, keys: &[KeyReference], actor: &Actor) -> Result<Option<u64>, StoreError>;
}

/// The audit log's entry on keys that got a guardrail: how many, and the first of them.
pub fn keys_assigned(actor: &Actor, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    on_keys(actor, "guardrail.assign_keys", id, keys)
}

/// The audit log's entry on keys that lost a guardrail: how many, and the first of them.
pub fn keys_removed(actor: &Actor, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    on_keys(actor, "guardrail.remove_keys", id, keys)
}

fn on_keys(actor: &Actor, action: &'static str, id: GuardrailId, keys: &[ApiKeyId]) -> AuditDraft {
    let quoted: Vec<String> = keys.iter().take(AUDITED_KEYS).map(|key| format!("\"{key}\"")).collect();
    let listed = Json::array(quoted.iter().map(String::as_str));
    let count = keys.len().to_string();
    let details = Json::object([("keys_count", count.as_str()), ("keys", listed.text())]);
    AuditDraft::done(actor, action, format!("guardrail {id}"), details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_named_by_what_it_joins() {
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
    fn audit_entry_counts_all_keys_and_names_the_first_hundred() {
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

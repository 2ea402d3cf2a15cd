//! The assignment of a guardrail to a key.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::api_key::ApiKeyName;
use crate::audit::{Actor, AuditDraft};
use crate::ids::{ApiKeyId, GuardrailId};
use crate::json::Json;
use crate::secret::ApiKeyHash;

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

/// One page of the keys that have a guardrail assigned, and their total number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentPage {
    /// The assignments, newest first.
    pub assignments: Vec<KeyAssignment>,
    /// The number of live keys with this guardrail, on all pages.
    pub total: u64,
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

//! References to keys.

use std::fmt;
use std::str::FromStr;

use crate::ids::{ApiKeyId, WorkspaceId};
use crate::secret::ApiKeyHash;

/// A reference to a key: its id, or the hash of its current secret.
///
/// `Debug` and `Display` show it; neither form is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyReference {
    /// The id, which survives a rotation.
    Id(ApiKeyId),
    /// The hash of the secret, which a rotation replaces.
    Hash(ApiKeyHash),
}

impl fmt::Display for KeyReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Hash(hash) => hash.fmt(f),
        }
    }
}

impl From<ApiKeyId> for KeyReference {
    fn from(id: ApiKeyId) -> Self {
        Self::Id(id)
    }
}

impl From<ApiKeyHash> for KeyReference {
    fn from(hash: ApiKeyHash) -> Self {
        Self::Hash(hash)
    }
}

impl FromStr for KeyReference {
    type Err = InvalidKeyReference;

    /// Parses an [`ApiKeyHash`] or [`ApiKeyId`]; their lengths differ.
    fn from_str(text: &str) -> Result<Self, InvalidKeyReference> {
        let hash = text.parse().map(Self::Hash).ok();
        hash.or_else(|| text.parse().map(Self::Id).ok()).ok_or(InvalidKeyReference)
    }
}

/// The text is neither an id nor a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key reference must be an id (a UUID) or a hash (64 lower-case hex digits)")]
pub struct InvalidKeyReference;

/// The id, the hash and the workspace of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyIdentity {
    /// The id.
    pub id: ApiKeyId,
    /// The hash of the current secret.
    pub hash: ApiKeyHash,
    /// The workspace; `None` for a management key.
    pub workspace_id: Option<WorkspaceId>,
}

impl KeyIdentity {
    /// Returns true if the reference is to this key.
    pub fn is(&self, name: &KeyReference) -> bool {
        match name {
            KeyReference::Id(id) => *id == self.id,
            KeyReference::Hash(hash) => *hash == self.hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_an_id_or_a_hash() {
        let (id, hash) = ("01990000-0000-7000-8000-00000000000A", "a".repeat(64));
        assert_eq!(id.parse(), Ok(KeyReference::Id(id.parse().unwrap())));
        assert_eq!(hash.parse(), Ok(KeyReference::Hash(hash.parse().unwrap())));
        assert_eq!(id.parse::<KeyReference>().unwrap().to_string(), id.to_lowercase());
        assert_eq!(hash.parse::<KeyReference>().unwrap().to_string(), hash);
        for bad in ["", "01990000000070008000000000000001", &hash[1..], &hash.to_uppercase(), "sk-tg-v1-00"] {
            assert_eq!(bad.parse::<KeyReference>(), Err(InvalidKeyReference), "{bad}");
        }
    }

    #[test]
    fn identity_matches_id_and_hash() {
        let identity = |id: u128, hash: u8| KeyIdentity {
            id: ApiKeyId::from_uuid(uuid::Uuid::from_u128(id)),
            hash: ApiKeyHash::from_bytes([hash; 32]),
            workspace_id: None,
        };
        let (one, other) = (identity(1, 1), identity(2, 2));
        assert!(one.is(&one.id.into()) && one.is(&one.hash.into()));
        assert!(!one.is(&other.id.into()) && !one.is(&other.hash.into()));
    }
}

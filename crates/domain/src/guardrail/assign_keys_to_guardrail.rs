//! Operation 3 of the interface: many keys to one guardrail.

use std::sync::Arc;

use super::{AssignKeysError, GuardrailRepository};
use crate::api_key::ManagementKey;
use crate::audit::{Actor, AuditDraft};
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::secret::ApiKeyHash;

/// How many hashes of one call the audit log names.
const AUDITED_HASHES: usize = 100;

/// Assigns many keys to one guardrail in one transaction.
pub struct AssignKeysToGuardrail {
    guardrails: Arc<dyn GuardrailRepository>,
}

impl AssignKeysToGuardrail {
    /// Wires the port.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>) -> Self {
        Self { guardrails }
    }

    /// Returns how many distinct keys hold the guardrail because of this call, those that held it already included.
    ///
    /// Duplicates count once. A hash that no live inference key of the guardrail's workspace has is skipped: an
    /// element that is not 64 lower-case hex digits cannot name a key, so it is skipped without a look.
    pub async fn execute<'a>(
        &self,
        _authority: &ManagementKey,
        actor: &Actor,
        guardrail_id: &str,
        key_hashes: impl IntoIterator<Item = &'a str>,
    ) -> Result<u64, AssignKeysError> {
        let hashes = named(key_hashes)?;
        let id: GuardrailId = guardrail_id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        let audit = assignment_audit(actor, "guardrail.assign_keys", id, &hashes);
        self.guardrails.assign_keys(id, &hashes, &audit).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}

/// The hashes among `texts` that can name a key, sorted and without duplicates.
pub(super) fn named<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<ApiKeyHash>, AssignKeysError> {
    let mut hashes = Vec::new();
    let mut any = false;
    for (index, text) in texts.into_iter().enumerate() {
        any = true;
        if text.is_empty() {
            return Err(AssignKeysError::EmptyHash(index));
        }
        if let Ok(hash) = text.parse::<ApiKeyHash>() {
            hashes.push(hash);
        }
    }
    if !any {
        return Err(AssignKeysError::NoHashes);
    }
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}

/// What is written down of a change to many keys: how many, and the first of them.
pub fn assignment_audit(actor: &Actor, action: &'static str, id: GuardrailId, hashes: &[ApiKeyHash]) -> AuditDraft {
    let quoted: Vec<String> = hashes.iter().take(AUDITED_HASHES).map(|hash| format!("\"{hash}\"")).collect();
    let listed = Json::array(quoted.iter().map(String::as_str));
    let count = hashes.len().to_string();
    let details = Json::object([("key_hashes_count", count.as_str()), ("key_hashes", listed.text())]);
    AuditDraft::done(actor, action, format!("guardrail {id}"), details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, StoreError};
    use crate::guardrail::MockGuardrailRepository;

    const ID: &str = "01990000-0000-7000-8000-000000000001";

    async fn assign(repository: MockGuardrailRepository, id: &str, hashes: &[String]) -> Result<u64, AssignKeysError> {
        let authority = ManagementKey::for_tests(ApiKeyHash::from_bytes([9; 32]));
        AssignKeysToGuardrail::new(Arc::new(repository))
            .execute(&authority, &Actor::system(), id, hashes.iter().map(String::as_str))
            .await
    }

    #[tokio::test]
    async fn duplicates_and_impossible_hashes_never_reach_the_store() {
        let mut repository = MockGuardrailRepository::new();
        repository
            .expect_assign_keys()
            .withf(|id, hashes, _| id.to_string() == ID && hashes.len() == 2 && hashes.is_sorted())
            .return_once(|_, _, _| Ok(Some(2)));
        let hashes = ["b".repeat(64), "a".repeat(64), "b".repeat(64), "A".repeat(64), "'; DROP TABLE".to_owned()];
        assert_eq!(assign(repository, ID, &hashes).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn broken_input_is_refused_before_the_store() {
        let error = assign(MockGuardrailRepository::new(), ID, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let error = assign(MockGuardrailRepository::new(), ID, &["a".repeat(64), String::new()]).await.unwrap_err();
        assert_eq!(error.to_string(), "key_hashes[1] must not be empty");
    }

    #[tokio::test]
    async fn a_guardrail_that_is_not_there_is_not_found_whatever_its_form() {
        for id in ["nonsense", "", "01990000000070008000000000000001", &format!("{{{ID}}}")] {
            let error = assign(MockGuardrailRepository::new(), id, &["x".to_owned()]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{id}");
        }
        let mut repository = MockGuardrailRepository::new();
        repository.expect_assign_keys().return_once(|_, _, _| Ok(None));
        assert_eq!(assign(repository, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_failing_store_is_unavailable() {
        let mut repository = MockGuardrailRepository::new();
        repository.expect_assign_keys().return_once(|_, _, _| Err(StoreError::unavailable("locked")));
        assert_eq!(assign(repository, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

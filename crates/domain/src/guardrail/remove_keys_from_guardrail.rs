//! Removes a guardrail from many keys.

use std::sync::Arc;

use super::assign_keys_to_guardrail::parse_key_references;
use super::{AssignKeysError, GuardrailRepository};
use crate::api_key::ManagementKey;
use crate::audit::Actor;
use crate::ids::GuardrailId;

/// Removes a guardrail from many keys in one transaction.
pub struct RemoveKeysFromGuardrail {
    guardrails: Arc<dyn GuardrailRepository>,
}

impl RemoveKeysFromGuardrail {
    /// Wires the port.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>) -> Self {
        Self { guardrails }
    }

    /// Returns the number of distinct keys that had the guardrail until this call. Keys with another guardrail or none
    /// are skipped.
    ///
    /// # Errors
    /// Fails if there are no key names or an empty one, if the guardrail does not exist, which includes a malformed id,
    /// or if the store fails.
    pub async fn execute(
        &self,
        _authority: &ManagementKey,
        actor: &Actor,
        guardrail_id: &str,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<u64, AssignKeysError> {
        let keys = parse_key_references(names)?;
        let id: GuardrailId = guardrail_id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        self.guardrails.remove_keys(id, &keys, actor).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, StoreError};
    use crate::guardrail::{ListAssignedKeys, MockGuardrailRepository};
    use crate::testing::SequentialIds;

    const ID: &str = "01990000-0000-7000-8000-000000000001";

    async fn remove(port: MockGuardrailRepository, id: &str, hashes: &[String]) -> Result<u64, AssignKeysError> {
        let authority = ManagementKey::for_tests(SequentialIds::key(9));
        RemoveKeysFromGuardrail::new(Arc::new(port))
            .execute(&authority, &Actor::system(), id, hashes.iter().map(String::as_str))
            .await
    }

    #[tokio::test]
    async fn execute_drops_duplicates_and_malformed_names() {
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys()
            .withf(|id, names, actor| {
                id.to_string() == ID && names.len() == 2 && names.is_sorted() && *actor == Actor::system()
            })
            .return_once(|_, _, _| Ok(Some(2)));
        let hashes = ["b".repeat(64), "a".repeat(64), "b".repeat(64), "nonsense".to_owned()];
        assert_eq!(remove(port, ID, &hashes).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn execute_rejects_invalid_input_before_the_store_call() {
        let error = remove(MockGuardrailRepository::new(), ID, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let error = remove(MockGuardrailRepository::new(), "nonsense", &["x".to_owned()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let listed = ListAssignedKeys::new(Arc::new(MockGuardrailRepository::new())).execute("x", 0, 1).await;
        assert_eq!(listed.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn execute_distinguishes_missing_guardrail_from_store_failure() {
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys().return_once(|_, _, _| Ok(None));
        assert_eq!(remove(port, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::NotFound);
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys().return_once(|_, _, _| Err(StoreError::unavailable("locked")));
        assert_eq!(remove(port, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

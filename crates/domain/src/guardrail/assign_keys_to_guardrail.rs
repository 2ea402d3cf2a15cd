//! Operation 3 of the interface: assigns keys to a guardrail, and removes keys from it.

use std::sync::Arc;

use super::manage_guardrails::find_visible;
use super::{AssignKeysError, GuardrailRepository, ManageGuardrails};
use crate::api_key::KeyReference;
use crate::authority::{Authority, Right};
use crate::change::Change;
use crate::ids::GuardrailId;

/// Assigns many keys to one guardrail in one transaction.
pub struct AssignKeysToGuardrail {
    guardrails: Arc<dyn GuardrailRepository>,
}

impl AssignKeysToGuardrail {
    /// Wires the port.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>) -> Self {
        Self { guardrails }
    }

    /// Returns the number of distinct keys that have the guardrail assigned because of this call, including keys that
    /// had it before.
    ///
    /// Each element is the hash or the id of a key. Duplicates count once, also when a key is given by hash and by id.
    /// References to keys that are not live inference keys of the guardrail's workspace are skipped. Strings that are
    /// neither a hash nor an id are skipped without a look-up.
    pub async fn execute(
        &self,
        change: &Change<'_, u64>,
        guardrail_id: &str,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<u64, AssignKeysError> {
        let (id, keys) = checked(&*self.guardrails, change.by(), guardrail_id, names).await?;
        self.guardrails.assign_keys(id, &keys, change).await
    }
}

/// Checks the right, and returns the guardrail, which exists for the caller, with the keys. The id of a guardrail needs no
/// look-up for a caller who sees all.
async fn checked(
    guardrails: &dyn GuardrailRepository,
    by: &Authority,
    name: &str,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<(GuardrailId, Vec<KeyReference>), AssignKeysError> {
    by.check(Right::Write)?;
    let keys = parse_key_references(names)?;
    let id: Option<GuardrailId> = name.parse().ok().filter(|_| by.sees_all());
    match id {
        Some(id) => Ok((id, keys)),
        None => Ok((find_visible::<AssignKeysError>(guardrails, by, name).await?.id, keys)),
    }
}

/// Parses the key references in `texts`; sorts them and removes duplicates.
fn parse_key_references(
    texts: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<KeyReference>, AssignKeysError> {
    let mut names = Vec::new();
    let mut any = false;
    for (index, text) in texts.into_iter().enumerate() {
        any = true;
        let text = text.as_ref();
        if text.is_empty() {
            return Err(AssignKeysError::EmptyHash(index));
        }
        names.extend(text.parse::<KeyReference>());
    }
    if !any {
        return Err(AssignKeysError::NoHashes);
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

impl ManageGuardrails {
    /// Removes a guardrail from many keys in one transaction. Returns the number of distinct keys that had it until
    /// this call. Keys with another guardrail or none are skipped.
    ///
    /// # Errors
    /// Fails if there are no key names or an empty one, if the guardrail does not exist, which includes a malformed id,
    /// if it has a version that the caller does not accept, or if the store fails.
    pub async fn remove_keys(
        &self,
        change: &Change<'_, u64>,
        guardrail_id: &str,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<u64, AssignKeysError> {
        let (id, keys) = checked(&*self.guardrails, change.by(), guardrail_id, names).await?;
        self.guardrails.remove_keys(id, &keys, change).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, StoreError};
    use crate::guardrail::{MockGuardrailRepository, fixtures};
    use crate::naming::NameError;
    use crate::testing::MemoryStore;

    const ID: &str = "01990000-0000-7000-8000-000000000001";

    async fn assign(repository: MockGuardrailRepository, id: &str, hashes: &[String]) -> Result<u64, AssignKeysError> {
        AssignKeysToGuardrail::new(Arc::new(repository))
            .execute(&Change::plain(&Authority::system()), id, hashes.iter().map(String::as_str))
            .await
    }

    #[tokio::test]
    async fn assign_drops_duplicates_and_malformed_names() {
        let mut repository = MockGuardrailRepository::new();
        repository
            .expect_assign_keys()
            .withf(|id, names, _| id.to_string() == ID && names.len() == 3 && names.is_sorted())
            .return_once(|_, _, _| Ok(2));
        let (a, b, id) = ("a".repeat(64), "b".repeat(64), "01990000-0000-7000-8000-00000000000a");
        let others = ["A".repeat(64), "'; DROP TABLE".to_owned(), id.replace('-', "")];
        let names = [&b, &a, &b, id, &id.to_uppercase()].map(ToOwned::to_owned).into_iter().chain(others);
        assert_eq!(assign(repository, ID, &names.collect::<Vec<_>>()).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn assign_rejects_invalid_input_before_the_store_call() {
        let error = assign(MockGuardrailRepository::new(), ID, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let error = assign(MockGuardrailRepository::new(), ID, &["a".repeat(64), String::new()]).await.unwrap_err();
        assert_eq!(error.to_string(), "key_hashes[1] must not be empty");
    }

    #[tokio::test]
    async fn assign_returns_not_found_for_unknown_or_malformed_id() {
        for id in ["nonsense", "", "01990000000070008000000000000001", &format!("{{{ID}}}")] {
            let mut repository = MockGuardrailRepository::new();
            repository.expect_find_named().return_once(|_, _| Ok(Vec::new()));
            let error = assign(repository, id, &["x".to_owned()]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{id}");
        }
        let mut repository = MockGuardrailRepository::new();
        repository.expect_assign_keys().return_once(|_, _, _| Err(AssignKeysError::Name(NameError::Unknown)));
        assert_eq!(assign(repository, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn assign_returns_unavailable_when_the_store_fails() {
        let mut repository = MockGuardrailRepository::new();
        repository.expect_assign_keys().return_once(|_, _, _| Err(StoreError::unavailable("locked").into()));
        assert_eq!(assign(repository, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }

    fn manage(port: MockGuardrailRepository) -> ManageGuardrails {
        ManageGuardrails { guardrails: Arc::new(port), ..fixtures::ports(&MemoryStore::new()) }
    }

    async fn remove(port: MockGuardrailRepository, id: &str, hashes: &[String]) -> Result<u64, AssignKeysError> {
        manage(port).remove_keys(&Change::plain(&Authority::system()), id, hashes.iter().map(String::as_str)).await
    }

    #[tokio::test]
    async fn remove_drops_duplicates_and_malformed_names() {
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys()
            .withf(|id, names, change| {
                id.to_string() == ID && names.len() == 2 && names.is_sorted() && *change.by() == Authority::system()
            })
            .return_once(|_, _, _| Ok(2));
        let hashes = ["b".repeat(64), "a".repeat(64), "b".repeat(64), "nonsense".to_owned()];
        assert_eq!(remove(port, ID, &hashes).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn remove_rejects_invalid_input_before_the_store_call() {
        let error = remove(MockGuardrailRepository::new(), ID, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let unknown = || {
            let mut port = MockGuardrailRepository::new();
            port.expect_find_named().return_once(|_, _| Ok(Vec::new()));
            port
        };
        let error = remove(unknown(), "nonsense", &["x".to_owned()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let listed = manage(unknown()).list_assigned_keys(&Authority::system(), "x", 0, 1).await;
        assert_eq!(listed.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn remove_distinguishes_missing_guardrail_from_store_failure() {
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys().return_once(|_, _, _| Err(AssignKeysError::Name(NameError::Unknown)));
        assert_eq!(remove(port, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::NotFound);
        let mut port = MockGuardrailRepository::new();
        port.expect_remove_keys().return_once(|_, _, _| Err(StoreError::unavailable("locked").into()));
        assert_eq!(remove(port, ID, &["x".to_owned()]).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

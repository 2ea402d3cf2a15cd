use super::*;
use crate::api_key::{ApiKeyName, ApiKeyScope, MockApiKeyRepository, MockGrantCache};
use crate::authority::{Authority, ManagementScope};
use crate::error::{ErrorKind, StoreError};
use crate::ids::ApiKeyId;
use crate::rate::RateLimits;
use crate::secret::ApiKeySecret;
use crate::system::{MockClock, MockSecretGenerator};

fn old_secret() -> ApiKeySecret {
    ApiKeySecret::from_random([1; 32])
}

fn new_secret() -> ApiKeySecret {
    ApiKeySecret::from_random([2; 32])
}

fn key() -> ApiKey {
    ApiKey {
        id: ApiKeyId::from_uuid(uuid::Uuid::from_u128(7)),
        hash: old_secret().hash(),
        label: old_secret().label(),
        name: ApiKeyName::try_new("ci").unwrap(),
        scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
        disabled: true,
        expires_at: None,
        limit: None,
        rates: RateLimits::default(),
        guardrail_id: None,
        users: crate::api_key::KeyUsers::default(),
        previous_secret: None,
        created_at: chrono::DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

fn finding() -> MockApiKeyRepository {
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_named().once().returning(|_, _| Ok(vec![key()]));
    keys
}

fn invalidated(times: usize, answer: fn() -> Result<(), StoreError>) -> MockGrantCache {
    let mut cache = MockGrantCache::new();
    cache.expect_invalidate().withf(|hash| *hash == key().hash).times(times).returning(move |_| answer());
    cache
}

async fn rotate(
    keys: MockApiKeyRepository,
    cache: MockGrantCache,
) -> Result<(ApiKey, ApiKeySecret), ChangeApiKeyError> {
    let mut secrets = MockSecretGenerator::new();
    secrets.expect_api_key_secret().returning(|| Ok(new_secret()));
    let rotate = RotateApiKey::new(Arc::new(keys), Arc::new(cache), Arc::new(secrets), Arc::new(MockClock::new()));
    rotate.execute(&Change::plain(&Authority::system()), &(&key().id).into(), Duration::ZERO).await
}

#[tokio::test]
async fn rotate_replaces_hash_and_label_alone_and_audits_both() {
    let mut keys = finding();
    keys.expect_rotate().once().returning(|before, after, audit| {
        assert_eq!(*before, key());
        assert_eq!(*after, ApiKey { hash: new_secret().hash(), label: new_secret().label(), ..key() });
        assert_eq!((audit.action, audit.subject.as_str()), ("key.rotate", format!("key {}", key().id).as_str()));
        let details = audit.details.text();
        assert!(!details.contains("sk-tg"), "{details}");
        let side = |side: &str, hash| format!(r#""{side}":{{"name":"ci","hash":"{hash}""#);
        assert!(details.contains(&side("before", old_secret().hash())), "{details}");
        assert!(details.contains(&side("after", new_secret().hash())), "{details}");
        Ok(true)
    });
    let (after, secret) = rotate(keys, invalidated(1, || Ok(()))).await.unwrap();
    assert_eq!((after.id, after.hash), (key().id, secret.hash()));
    assert_eq!(secret, new_secret());
}

#[tokio::test]
async fn rotate_returns_the_secret_although_the_cache_fails() {
    let mut keys = finding();
    keys.expect_rotate().returning(|_, _, _| Ok(true));
    let (_, secret) = rotate(keys, invalidated(1, || Err(StoreError::unavailable("locked")))).await.unwrap();
    assert_eq!(secret, new_secret());
}

#[tokio::test]
async fn rotate_is_a_conflict_when_another_rotation_came_first() {
    let mut keys = finding();
    keys.expect_find_named().once().returning(|_, _| Ok(vec![ApiKey { hash: new_secret().hash(), ..key() }]));
    keys.expect_rotate().once().returning(|_, _, _| Ok(false));
    let error = rotate(keys, invalidated(0, || Ok(()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn rotate_starts_again_when_another_change_came_first() {
    let mut keys = finding();
    keys.expect_find_named().once().returning(|_, _| Ok(vec![ApiKey { disabled: false, ..key() }]));
    keys.expect_rotate().withf(|before, _, _| before.disabled).once().returning(|_, _, _| Ok(false));
    keys.expect_rotate().withf(|before, _, _| !before.disabled).once().returning(|_, _, _| Ok(true));
    assert!(!rotate(keys, invalidated(1, || Ok(()))).await.unwrap().0.disabled);
}

#[tokio::test]
async fn rotate_does_not_find_a_deleted_key() {
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_named().returning(|_, _| Ok(Vec::new()));
    assert_eq!(rotate(keys, invalidated(0, || Ok(()))).await.unwrap_err().kind(), ErrorKind::NotFound);
    let mut keys = finding();
    keys.expect_find_named().once().returning(|_, _| Ok(Vec::new()));
    keys.expect_rotate().returning(|_, _, _| Ok(false));
    assert_eq!(rotate(keys, invalidated(0, || Ok(()))).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn rotate_changes_nothing_when_random_source_fails() {
    let mut secrets = MockSecretGenerator::new();
    secrets.expect_api_key_secret().returning(|| Err(StoreError::unavailable("no randomness")));
    let cache = Arc::new(invalidated(0, || Ok(())));
    let rotate = RotateApiKey::new(Arc::new(finding()), cache, Arc::new(secrets), Arc::new(MockClock::new()));
    let error =
        rotate.execute(&Change::plain(&Authority::system()), &(&key().hash).into(), Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

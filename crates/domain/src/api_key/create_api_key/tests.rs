use super::*;
use crate::api_key::MockApiKeyRepository;
use crate::authority::{Authority, ManagementScope};
use crate::budget::ResetInterval;
use crate::error::ErrorKind;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::system::{MockClock, MockIdGenerator, MockSecretGenerator};

fn new(scope: ApiKeyScope) -> NewApiKey {
    NewApiKey::named("n", scope)
}

fn inference() -> ApiKeyScope {
    ApiKeyScope::Inference(WorkspaceId::from_uuid(uuid::Uuid::from_u128(1)))
}

fn id() -> ApiKeyId {
    ApiKeyId::from_uuid(uuid::Uuid::from_u128(5))
}

async fn create(keys: MockApiKeyRepository, new: NewApiKey) -> Result<ApiKey, CreateApiKeyError> {
    let (mut clock, mut secrets) = (MockClock::new(), MockSecretGenerator::new());
    clock.expect_now().returning(|| DateTime::from_timestamp(1_767_225_600, 0).unwrap());
    secrets.expect_api_key_secret().returning(|| Ok(ApiKeySecret::from_random([3; 32])));
    let mut ids = MockIdGenerator::new();
    ids.expect_api_key_id().returning(id);
    let create = CreateApiKey::new(Arc::new(keys), Arc::new(clock), Arc::new(ids), Arc::new(secrets));
    create.execute(&Change::plain(&Authority::system()), new).await.map(|(key, _)| key)
}

#[tokio::test]
async fn create_audits_key_without_secret() {
    let mut keys = MockApiKeyRepository::new();
    keys.expect_insert().times(1).returning(|_, audit| {
        let details = audit.details.text();
        assert!(details.contains(r#""limit_usd":2.5,"limit_reset":"daily","requests_per_minute":5,"#), "{details}");
        assert!(!details.contains("sk-tg"), "{details}");
        assert_eq!(audit.subject, format!("key {}", id()));
        Ok(KeyInsertion::Inserted)
    });
    let limit = SpendLimit { amount: "2.50".parse().unwrap(), reset: Some(ResetInterval::Daily) };
    let rates = RateLimits { requests_per_minute: Some(5), tokens_per_minute: None };
    let key = create(keys, NewApiKey { limit: Some(limit), rates, ..new(inference()) }).await.unwrap();
    assert_eq!((key.id, key.limit, key.rates), (id(), Some(limit), rates));
}

#[tokio::test]
async fn create_rejects_invalid_limits_before_writing() {
    let limit = |text: &str| Some(SpendLimit { amount: text.parse().unwrap(), reset: None });
    let rates = RateLimits { requests_per_minute: None, tokens_per_minute: Some(0) };
    for refused in [
        NewApiKey { limit: limit("0"), ..new(inference()) },
        NewApiKey { rates, ..new(inference()) },
        NewApiKey { limit: limit("1"), ..new(ApiKeyScope::Management(ManagementScope::UNRESTRICTED)) },
        NewApiKey {
            rates: RateLimits { tokens_per_minute: Some(1), ..rates },
            ..new(ApiKeyScope::Management(ManagementScope::UNRESTRICTED))
        },
    ] {
        let error = create(MockApiKeyRepository::new(), refused).await.unwrap_err();
        assert!(matches!(error, CreateApiKeyError::InvalidLimit(_)), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
}

use super::*;
use crate::api_key::{ApiKeyScope, InvalidKeyLimit, MockApiKeyRepository, PreviousSecret};
use crate::audit::AuditOutcome;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::secret::ApiKeyHash;
use crate::system::MockClock;
use crate::version::IfMatch;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600, 0).unwrap()
}

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn key() -> ApiKey {
    ApiKey {
        id: ApiKeyId::from_uuid(uuid::Uuid::from_u128(7)),
        hash: ApiKeyHash::from_bytes([7; 32]),
        label: "sk-tg-v1-0…0".to_owned(),
        name: ApiKeyName::try_new("old").unwrap(),
        scope: ApiKeyScope::Inference(WorkspaceId::from_uuid(uuid::Uuid::from_u128(1))),
        disabled: false,
        expires_at: None,
        limit: Some(SpendLimit { amount: usd("2.5"), reset: Some(ResetInterval::Weekly) }),
        rates: RateLimits { requests_per_minute: Some(60), tokens_per_minute: None },
        guardrail_id: None,
        users: crate::api_key::KeyUsers::default(),
        previous_secret: None,
        created_at: now(),
        updated_at: None,
    }
}

fn finding(found: ApiKey) -> MockApiKeyRepository {
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_named().returning(move |_, _| Ok(vec![found.clone()]));
    keys
}

fn over(keys: MockApiKeyRepository) -> ManageApiKeys {
    let mut clock = MockClock::new();
    clock.expect_now().returning(now);
    ManageApiKeys::new(Arc::new(keys), Arc::new(clock))
}

async fn update(keys: MockApiKeyRepository, change: ApiKeyChange) -> Result<ApiKey, ChangeApiKeyError> {
    over(keys).update(&Change::plain(&Authority::system()), &(&key().id).into(), &change).await
}

#[tokio::test]
async fn update_changes_given_fields_and_audits_both_states() {
    let mut keys = finding(key());
    keys.expect_update().times(1).returning(|before, after, _, audit| {
        assert_eq!(*before, key());
        assert_eq!(after.limit, Some(SpendLimit { amount: usd("9"), reset: Some(ResetInterval::Weekly) }));
        assert_eq!((audit.action, audit.outcome), ("key.update", AuditOutcome::Done));
        let member = |state: &str| {
            let workspace_id = WorkspaceId::from_uuid(uuid::Uuid::from_u128(1));
            format!(r#""name":"{state}","hash":"{}","workspace_id":"{workspace_id}""#, key().hash)
        };
        let details = audit.details.text();
        assert!(details.contains(&member("old")) && details.contains(&member("new")), "{details}");
        assert!(details.contains(r#""limit_usd":2.5"#) && details.contains(r#""limit_usd":9"#), "{details}");
        Ok(KeyUpdate::Updated)
    });
    let change = ApiKeyChange {
        name: Some("new".to_owned()),
        limit: Edit::Set(usd("9")),
        requests_per_minute: Edit::Clear,
        tokens_per_minute: Edit::Set(1_000),
        expires_at: Edit::Set(now() + chrono::TimeDelta::days(1)),
        ..ApiKeyChange::default()
    };
    let after = update(keys, change).await.unwrap();
    assert_eq!(after.rates, RateLimits { requests_per_minute: None, tokens_per_minute: Some(1_000) });
    assert_eq!(after.name.as_str(), "new");
}

#[tokio::test]
async fn update_clears_reset_with_limit_and_rejects_reset_without_limit() {
    let mut keys = finding(key());
    keys.expect_update().returning(|_, after, _, _| {
        assert_eq!(after.limit, None);
        Ok(KeyUpdate::Updated)
    });
    update(keys, ApiKeyChange { limit: Edit::Clear, ..ApiKeyChange::default() }).await.unwrap();
    let mut keys = finding(key());
    keys.expect_update().returning(|_, _, _, _| Ok(KeyUpdate::Updated));
    let after = update(keys, ApiKeyChange { limit_reset: Edit::Clear, ..ApiKeyChange::default() }).await.unwrap();
    assert_eq!(after.limit, Some(SpendLimit { amount: usd("2.5"), reset: None }));
    for limit in [Edit::Keep, Edit::Clear] {
        let found = ApiKey { limit: None, ..key() };
        let change = ApiKeyChange { limit, limit_reset: Edit::Set(ResetInterval::Daily), ..ApiKeyChange::default() };
        let error = update(finding(found), change).await.unwrap_err();
        assert!(matches!(error, ChangeApiKeyError::ResetWithoutLimit), "{error}");
    }
}

#[tokio::test]
async fn update_without_effect_writes_nothing() {
    let change =
        ApiKeyChange { name: Some("old".to_owned()), limit: Edit::Set(usd("2.50")), ..ApiKeyChange::default() };
    assert_eq!(update(finding(key()), change).await.unwrap(), key());
}

#[tokio::test]
async fn update_rejects_invalid_values_before_writing() {
    let management = || ApiKey {
        scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
        limit: None,
        rates: RateLimits::default(),
        ..key()
    };
    let refused = async |found, change| update(finding(found), change).await.unwrap_err();
    for amount in ["0", "-1"] {
        let change = ApiKeyChange { limit: Edit::Set(usd(amount)), ..ApiKeyChange::default() };
        assert_eq!(refused(key(), change).await.to_string(), "a limit must be more than 0 USD");
    }
    let change = ApiKeyChange { tokens_per_minute: Edit::Set(0), ..ApiKeyChange::default() };
    assert_eq!(refused(key(), change).await.to_string(), "a rate must be at least 1 per minute");
    let change = ApiKeyChange { name: Some(String::new()), ..ApiKeyChange::default() };
    assert_eq!(refused(key(), change).await.kind(), ErrorKind::InvalidRequest);
    let change = ApiKeyChange { expires_at: Edit::Set(now()), ..ApiKeyChange::default() };
    assert_eq!(refused(key(), change).await.to_string(), "the expiry is in the past");
    for change in [
        ApiKeyChange { limit: Edit::Set(usd("1")), ..ApiKeyChange::default() },
        ApiKeyChange { requests_per_minute: Edit::Set(1), ..ApiKeyChange::default() },
    ] {
        let error = refused(management(), change).await;
        assert!(matches!(error, ChangeApiKeyError::InvalidLimit(InvalidKeyLimit::OfManagementKey)), "{error}");
    }
}

#[tokio::test]
async fn update_retries_after_concurrent_change_up_to_a_maximum() {
    let mut keys = finding(key());
    let mut round = 0;
    keys.expect_update().times(2).returning(move |_, _, _, _| {
        round += 1;
        Ok(if round == 2 { KeyUpdate::Updated } else { KeyUpdate::Conflict })
    });
    update(keys, ApiKeyChange { limit: Edit::Clear, ..ApiKeyChange::default() }).await.unwrap();
    let mut keys = finding(key());
    keys.expect_update().returning(|_, _, _, _| Ok(KeyUpdate::Conflict));
    let error = update(keys, ApiKeyChange { limit: Edit::Clear, ..ApiKeyChange::default() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn changes_distinguish_unknown_key_from_store_failure() {
    let unknown = || {
        let mut keys = MockApiKeyRepository::new();
        keys.expect_find_named().returning(|_, _| Ok(Vec::new()));
        keys
    };
    let unavailable = || {
        let mut keys = MockApiKeyRepository::new();
        keys.expect_find_named().returning(|_, _| Err(StoreError::unavailable("locked")));
        keys
    };
    let (by, hash) = (Authority::system(), ResourceName::from(&key().hash));
    for (make, kind) in [(&unknown as &dyn Fn() -> _, ErrorKind::NotFound), (&unavailable, ErrorKind::Unavailable)] {
        assert_eq!(update(make(), ApiKeyChange::default()).await.unwrap_err().kind(), kind);
        assert_eq!(over(make()).delete(&Change::plain(&by), &hash).await.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn update_disables_and_ends_the_previous_secret() {
    let previous = PreviousSecret { hash: ApiKeyHash::from_bytes([6; 32]), expires_at: now() };
    let mut keys = finding(ApiKey { previous_secret: Some(previous), ..key() });
    keys.expect_update().times(1).returning(|_, after, _, audit| {
        assert!(after.disabled && after.previous_secret.is_none());
        assert!(audit.details.text().contains(r#""disabled":true"#), "{:?}", audit.details.text());
        Ok(KeyUpdate::Updated)
    });
    let after = update(keys, ApiKeyChange { disabled: Some(true), ..ApiKeyChange::default() }).await.unwrap();
    assert_eq!((after.disabled, after.updated_at), (true, Some(now())));
}

#[tokio::test]
async fn delete_audits_previous_state() {
    let mut keys = finding(key());
    keys.expect_delete().times(1).returning(|_, _, audit| {
        assert!(audit.details.text().starts_with(r#"{"before":{"name":"old","#), "{:?}", audit.details.text());
        assert_eq!(audit.subject, format!("key {}", key().id));
        Ok(true)
    });
    over(keys).delete(&Change::plain(&Authority::system()), &(&key().hash).into()).await.unwrap();
}

#[tokio::test]
async fn delete_reads_a_key_that_differs_again_and_checks_its_version() {
    let changed = ApiKey { disabled: true, ..key() };
    let mut states = vec![Vec::new(), vec![changed.clone()], vec![key()]];
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_named().returning(move |_, _| Ok(states.pop().unwrap_or_default()));
    keys.expect_delete().returning(|_, _, _| Ok(false));
    let keys = over(keys);
    let (by, name) = (Authority::system(), ResourceName::from(&key().hash));
    let version = IfMatch::Versions(vec![key().version()]);
    let of_version = keys.delete(&Change::conditional(&by, Some(version)), &name).await;
    assert_eq!(of_version.unwrap_err().kind(), ErrorKind::PreconditionFailed);
    let of_any = keys.delete(&Change::plain(&by), &name).await;
    assert_eq!(of_any.unwrap_err().kind(), ErrorKind::NotFound, "deleted meanwhile");
}

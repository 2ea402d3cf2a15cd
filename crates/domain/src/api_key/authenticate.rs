//! Authentication of a bearer token.

use std::sync::Arc;

use super::{AuthenticateError, GrantScope, InferenceKey, KeyGrants, ManagementKey, Principal};
use crate::secret::ApiKeySecret;
use crate::system::Clock;

/// Authenticates callers.
pub struct Authenticate {
    grants: Arc<dyn KeyGrants>,
    clock: Arc<dyn Clock>,
}

impl Authenticate {
    /// Wires the ports.
    pub fn new(grants: Arc<dyn KeyGrants>, clock: Arc<dyn Clock>) -> Self {
        Self { grants, clock }
    }

    /// Authenticates a caller. `token` is the `Authorization` header without `Bearer `, unchanged.
    pub async fn execute(&self, token: &str) -> Result<Principal, AuthenticateError> {
        let secret: ApiKeySecret = token.parse().map_err(|_| AuthenticateError::Invalid)?;
        let grant = self.grants.find(&secret.hash()).await?.ok_or(AuthenticateError::Invalid)?;
        if grant.disabled || grant.expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(AuthenticateError::Invalid);
        }
        match &grant.scope {
            GrantScope::Management(scope) => {
                let (id, hash, scope) = (grant.id, grant.hash, scope.clone());
                Ok(Principal::Management(ManagementKey { id, hash, scope }))
            }
            GrantScope::Inference { workspace_suspended: true, workspace_id, owner_id, .. } => {
                Err(AuthenticateError::WorkspaceSuspended {
                    api_key: grant.id,
                    workspace_id: *workspace_id,
                    owner_id: owner_id.clone(),
                })
            }
            GrantScope::Inference {
                workspace_id,
                owner_id,
                guardrail_id,
                workspace_guardrail_id,
                limited,
                rates,
                workspace_rates,
                ..
            } => Ok(Principal::Inference(InferenceKey {
                id: grant.id,
                hash: grant.hash,
                workspace_id: *workspace_id,
                owner_id: owner_id.clone(),
                guardrail_id: *guardrail_id,
                workspace_guardrail_id: *workspace_guardrail_id,
                limited: *limited,
                rates: *rates,
                workspace_rates: *workspace_rates,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_key::{KeyGrant, MockKeyGrants};
    use crate::audit::Actor;
    use crate::authority::{ManagementAccess, ManagementScope};
    use crate::error::{ErrorKind, StoreError};
    use crate::ids::{ApiKeyId, WorkspaceId};
    use crate::secret::ApiKeyHash;
    use crate::system::MockClock;
    use chrono::{DateTime, TimeDelta, Utc};
    use uuid::Uuid;

    fn noon() -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000, 0).unwrap()
    }

    fn secret() -> ApiKeySecret {
        ApiKeySecret::from_random([7; 32])
    }

    fn grant(change: impl FnOnce(&mut KeyGrant)) -> KeyGrant {
        let mut grant = KeyGrant {
            id: ApiKeyId::from_uuid(Uuid::from_u128(7)),
            hash: secret().hash(),
            disabled: false,
            expires_at: None,
            scope: GrantScope::Inference {
                workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(1)),
                workspace_suspended: false,
                owner_id: Some("acme".into()),
                guardrail_id: None,
                workspace_guardrail_id: None,
                limited: false,
                rates: crate::rate::RateLimits::default(),
                workspace_rates: crate::rate::RateLimits::default(),
            },
        };
        change(&mut grant);
        grant
    }

    async fn authenticate(answer: Result<Option<KeyGrant>, StoreError>) -> Result<Principal, AuthenticateError> {
        let mut grants = MockKeyGrants::new();
        let wanted = secret().hash();
        grants
            .expect_find()
            .withf(move |hash: &ApiKeyHash| *hash == wanted)
            .return_once(move |_| answer.map(|grant| grant.map(Arc::new)));
        let mut clock = MockClock::new();
        clock.expect_now().returning(noon);
        Authenticate::new(Arc::new(grants), Arc::new(clock)).execute(secret().expose()).await
    }

    #[tokio::test]
    async fn execute_accepts_live_key_with_its_workspace() {
        let principal = authenticate(Ok(Some(grant(|_| {})))).await.unwrap();
        let key = principal.inference().unwrap();
        assert_eq!((key.owner_id(), key.id(), key.hash()), (Some("acme"), grant(|_| {}).id, secret().hash()));
        let denied = principal.authority(|_| Actor::system()).unwrap_err();
        assert_eq!(denied.to_string(), "Only management keys can perform this operation");
    }

    #[tokio::test]
    async fn management_key_is_no_inference_key() {
        let narrowed =
            ManagementScope::try_new(ManagementAccess::Keys, Some(vec![WorkspaceId::from_uuid(Uuid::nil())]));
        let scope = narrowed.unwrap();
        let granted = grant(|g| g.scope = GrantScope::Management(scope.clone()));
        let principal = authenticate(Ok(Some(granted))).await.unwrap();
        assert_eq!(principal.authority(|_| Actor::system()).unwrap().scope(), &scope);
        assert_eq!(principal.inference().unwrap_err().to_string(), "Management keys cannot perform this operation");
    }

    #[tokio::test]
    async fn execute_rejects_unknown_disabled_and_expired_keys_alike() {
        let answers = [
            Ok(None),
            Ok(Some(grant(|g| g.disabled = true))),
            Ok(Some(grant(|g| g.expires_at = Some(noon())))),
            Ok(Some(grant(|g| g.expires_at = Some(noon() - TimeDelta::days(1))))),
        ];
        for answer in answers {
            assert!(matches!(authenticate(answer).await, Err(AuthenticateError::Invalid)));
        }
        let soon = grant(|g| g.expires_at = Some(noon() + TimeDelta::seconds(1)));
        assert!(authenticate(Ok(Some(soon))).await.is_ok());
    }

    #[tokio::test]
    async fn failing_store_is_unavailable_and_never_unauthenticated() {
        for failure in [StoreError::unavailable("gone"), StoreError::Corrupt("no such table".to_owned())] {
            let error = authenticate(Err(failure)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
    }

    #[tokio::test]
    async fn suspended_workspace_is_forbidden() {
        let suspended = grant(|g| {
            if let GrantScope::Inference { workspace_suspended, .. } = &mut g.scope {
                *workspace_suspended = true;
            }
        });
        assert_eq!(authenticate(Ok(Some(suspended))).await.unwrap_err().kind(), ErrorKind::Forbidden);
    }

    #[tokio::test]
    async fn malformed_secret_is_not_looked_up() {
        let mut clock = MockClock::new();
        clock.expect_now().returning(noon);
        let authenticate = Authenticate::new(Arc::new(MockKeyGrants::new()), Arc::new(clock));
        for token in ["", "x", "' OR 1=1 --", &"a".repeat(10_000)] {
            assert!(matches!(authenticate.execute(token).await, Err(AuthenticateError::Invalid)));
        }
    }
}

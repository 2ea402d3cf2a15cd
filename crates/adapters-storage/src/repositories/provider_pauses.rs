//! The paused providers.

use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::routing::{ProviderPauses, ProviderSlug};
use sea_orm::{ActiveValue, EntityTrait};

use super::rows::commit_unmanaged_change;
use crate::convert::millis;
use crate::entities::provider_pauses::{ActiveModel, Entity};
use crate::errors::{corrupt, store_error};

repository! {
    /// Stores a row for each paused provider.
    SeaOrmProviderPauses
}

#[async_trait]
impl ProviderPauses for SeaOrmProviderPauses {
    async fn list(&self) -> Result<Vec<ProviderSlug>, StoreError> {
        let rows = Entity::find().all(self.database.readers()?).await;
        let slug = |provider: String| provider.parse().map_err(|_| corrupt("provider_pauses.provider", provider));
        let mut providers: Vec<ProviderSlug> =
            rows.map_err(store_error)?.into_iter().map(|row| slug(row.provider)).collect::<Result<_, _>>()?;
        // The collation of a database may order hyphens in another way.
        providers.sort_unstable();
        Ok(providers)
    }

    async fn set(&self, provider: &ProviderSlug, paused: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let (row, now) = (Entity::find_by_id(provider.as_str()), self.database.now());
        if row.one(&transaction).await.map_err(store_error)?.is_some() == paused {
            return Ok(false);
        }
        if paused {
            let row = ActiveModel {
                provider: ActiveValue::Set(provider.to_string()),
                paused_at: ActiveValue::Set(millis(now)),
            };
            Entity::insert(row).exec_without_returning(&transaction).await.map_err(store_error)?;
        } else {
            Entity::delete_by_id(provider.as_str()).exec(&transaction).await.map_err(store_error)?;
        }
        commit_unmanaged_change(transaction, now, &[ChangeSubject::Providers], audit).await?;
        Ok(true)
    }
}

//! Records that retention removes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::{ResetInterval, prunable_before};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::counters::{CounterKey, Postings, Span, Sums, out_of_range};
use super::held;
use super::script::{Run, Script};
use super::statements::Texts;
use crate::chunks::chunks;
use crate::convert::{millis, moment};
use crate::database::Database;
use crate::entities::{reservations, spend_counters, usage_records};
use crate::errors::store_error;

/// What retention needs to know of a record: id, workspace, key, guardrails, cost, moment of its charge.
type Old = (String, String, Vec<u8>, String, i64, i64);

/// See the port. What a record came to moves from the counters of its periods, which are over, to what is archived, so
/// that every counter is the sum of the records that are there and of what is archived, at any moment.
pub(super) async fn prune(database: &Database, older_than: Duration, limit: u64) -> Result<u64, StoreError> {
    let transaction = database.begin().await?;
    let mut texts = Texts::new(transaction.get_database_backend());
    let before = prunable_before(database.now(), older_than, oldest_reservation(&transaction).await?);
    let old = oldest(&transaction, before, limit).await?;
    let mut postings = Postings::default();
    for (id, workspace_id, api_key, guardrails, cost, charged_at) in &old {
        let payer = held::payer(workspace_id, api_key, guardrails, id)?;
        let at = moment(*charged_at, "usage_records.charged_at", id)?;
        let cost = Sums::spent(Usd::from_pico(*cost));
        let keys = |span: Span| payer.accounts().map(move |account| CounterKey::new(account, span, at));
        postings.add_all(keys(Span::Archived), cost)?;
        let periods = ResetInterval::ALL.into_iter().flat_map(|interval| keys(Span::Period(interval)));
        postings.add_all(periods, cost.negated().ok_or_else(out_of_range)?)?;
    }
    let ids: Vec<&str> = old.iter().map(|(id, ..)| id.as_str()).collect();
    for piece in chunks(&ids) {
        usage_records::Entity::delete_many()
            .filter(usage_records::Column::Id.is_in(piece.iter().copied()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
    }
    let mut script = Script::default();
    postings.write(&mut script)?;
    (&transaction).run(&mut texts, script).await?;
    let empty = spend_counters::Entity::delete_many().filter(empty_and_over(before));
    empty.exec(&transaction).await.map_err(store_error)?;
    transaction.commit().await.map_err(store_error)?;
    Ok(old.len() as u64)
}

async fn oldest_reservation(connection: &impl ConnectionTrait) -> Result<Option<DateTime<Utc>>, StoreError> {
    use reservations::Column;
    let oldest: Option<Option<i64>> = reservations::Entity::find()
        .select_only()
        .column_as(Column::ReservedAt.min(), "oldest")
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    oldest.flatten().map(|at| moment(at, "reservations.reserved_at", "the oldest")).transpose()
}

async fn oldest(connection: &impl ConnectionTrait, before: DateTime<Utc>, limit: u64) -> Result<Vec<Old>, StoreError> {
    use usage_records::Column;
    usage_records::Entity::find()
        .select_only()
        .columns([
            Column::Id,
            Column::WorkspaceId,
            Column::ApiKey,
            Column::Guardrails,
            Column::CostPico,
            Column::ChargedAt,
        ])
        .filter(Column::ChargedAt.lt(millis(before)))
        .order_by_asc(Column::ChargedAt)
        .limit(limit.min(u64::from(u32::MAX)))
        .into_tuple()
        .all(connection)
        .await
        .map_err(store_error)
}

/// Counters at nothing, of periods that had ended before.
fn empty_and_over(before: DateTime<Utc>) -> Condition {
    use spend_counters::Column;
    let mut over = Condition::any();
    for interval in ResetInterval::ALL {
        let ended = Column::PeriodStart.lt(millis(interval.start_of(before)));
        over = over.add(Condition::all().add(Column::Interval.eq(interval.as_str())).add(ended));
    }
    Condition::all().add(Column::SpentPico.eq(0)).add(Column::ReservedPico.eq(0)).add(over)
}

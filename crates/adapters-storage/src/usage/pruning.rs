//! Records that retention removes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::{Payer, PruneReport, ResetInterval, prunable_before};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QueryResult, QuerySelect, QueryTrait,
};

use super::counters::{CounterKey, Postings, Span, Sums, out_of_range};
use super::held;
use super::script::{Run, Script};
use super::statements::Texts;
use crate::chunks::chunks;
use crate::convert::{millis, moment};
use crate::database::Database;
use crate::entities::{reservations, spend_counters, usage_records};
use crate::errors::store_error;

/// Most rows that one statement is asked for.
const MOST_AT_ONCE: u64 = u32::MAX as u64;

/// What retention needs to know of a record.
struct Old {
    id: String,
    payer: Payer,
    at: DateTime<Utc>,
    cost: Usd,
}

/// See the port. What a record came to moves from the counters of its periods, which are over, to what is archived, so
/// that every counter is the sum of the records that are there and of what is archived, at any moment.
pub(super) async fn prune(database: &Database, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
    let transaction = database.begin().await?;
    let mut texts = Texts::new(transaction.get_database_backend());
    let before = prunable_before(database.now(), older_than, oldest_reservation(&transaction).await?);
    let mut postings = Postings::default();
    let mut report = PruneReport::default();
    let mut gone: Vec<String> = Vec::new();
    // What cannot be read stays, and what is behind it does not wait for that.
    let mut seen = 0;
    loop {
        let wanted = limit.saturating_sub(gone.len() as u64);
        let rows = oldest(&transaction, before, seen, wanted).await?;
        for row in &rows {
            match Old::read(row).and_then(|old| old.archive(&mut postings).map(|()| old.id)) {
                Ok(id) => gone.push(id),
                Err(_) => report.cannot_read(id_of(row)),
            }
        }
        let count = rows.len() as u64;
        seen += count;
        if count < wanted.min(MOST_AT_ONCE) || gone.len() as u64 >= limit {
            break;
        }
    }
    let ids: Vec<&str> = gone.iter().map(String::as_str).collect();
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
    report.removed = gone.len() as u64;
    Ok(report)
}

impl Old {
    /// The columns are those of [`oldest`].
    fn read(row: &QueryResult) -> Result<Self, StoreError> {
        let text = |column: usize| row.try_get_by_index::<String>(column).map_err(store_error);
        let number = |column: usize| row.try_get_by_index::<i64>(column).map_err(store_error);
        let key: Vec<u8> = row.try_get_by_index(2).map_err(store_error)?;
        let id = text(0)?;
        let payer = held::payer(&text(1)?, &key, &text(3)?, &id)?;
        let at = moment(number(5)?, "usage_records.charged_at", &id)?;
        Ok(Self { payer, at, cost: Usd::from_pico(number(4)?), id })
    }

    /// All or nothing.
    fn archive(&self, postings: &mut Postings) -> Result<(), StoreError> {
        let Self { payer, at, .. } = self;
        let keys = |span: Span| payer.accounts().map(move |account| CounterKey::new(account, span, *at));
        let cost = Sums::spent(self.cost);
        let taken = cost.negated().ok_or_else(out_of_range)?;
        postings.add_all(keys(Span::Archived), cost)?;
        let periods = ResetInterval::ALL.into_iter().flat_map(|interval| keys(Span::Period(interval)));
        postings.add_all(periods, taken).or_else(|error| postings.add_all(keys(Span::Archived), taken).and(Err(error)))
    }
}

/// The id of a row that cannot be read.
fn id_of(row: &QueryResult) -> String {
    row.try_get_by_index(0).unwrap_or_else(|_| "a record whose id cannot be read".to_owned())
}

/// Moments that can be told; a reservation of another one cannot be extended, so that nothing is asked for beside it.
async fn oldest_reservation(connection: &impl ConnectionTrait) -> Result<Option<DateTime<Utc>>, StoreError> {
    use reservations::Column;
    let oldest: Option<Option<i64>> = reservations::Entity::find()
        .select_only()
        .column_as(Column::ReservedAt.min(), "oldest")
        .filter(Column::ReservedAt.between(millis(DateTime::<Utc>::MIN_UTC), millis(DateTime::<Utc>::MAX_UTC)))
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    oldest.flatten().map(|at| moment(at, "reservations.reserved_at", "the oldest")).transpose()
}

/// The oldest records after so many, by their columns as they are: each is read by itself.
async fn oldest(
    connection: &impl ConnectionTrait,
    before: DateTime<Utc>,
    after: u64,
    limit: u64,
) -> Result<Vec<QueryResult>, StoreError> {
    use usage_records::Column;
    let query = usage_records::Entity::find()
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
        .order_by_asc(Column::Id)
        .offset(after)
        .limit(limit.min(MOST_AT_ONCE));
    connection.query_all_raw(query.build(connection.get_database_backend())).await.map_err(store_error)
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

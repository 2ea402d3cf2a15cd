//! Reservations that outlived their processes.

use chrono::{DateTime, Utc};
use domain::budget::{ExpiryReport, Settlement, abandoned_record};
use domain::decision::UnknownUsage;
use domain::error::StoreError;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::charges::{Charges, Endings};
use super::counters::Postings;
use super::held::to_claim;
use super::job::Charge;
use super::script::{Run, Script};
use super::statements::Texts;
use crate::convert::millis;
use crate::database::Database;
use crate::entities::reservations::{Column, Entity, Model};
use crate::errors::store_error;

fn over(now: DateTime<Utc>, limit: u64) -> Select<Entity> {
    Entity::find()
        .filter(Column::ExpiresAt.lte(millis(now)))
        .order_by_asc(Column::ExpiresAt)
        .limit(limit.min(u64::from(u32::MAX)))
}

/// See the port.
pub(super) async fn expire(database: &Database, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError> {
    // Where there is nothing to do, as nearly always, nobody has to wait for the lock.
    if over(database.now(), 1).one(database.readers()?).await.map_err(store_error)?.is_none() {
        return Ok(ExpiryReport::default());
    }
    let transaction = database.begin().await?;
    let mut texts = Texts::new(transaction.get_database_backend());
    let now = database.now();
    let rows = over(now, limit).all(&transaction).await.map_err(store_error)?;
    let (mut abandoned, mut ended) = (Vec::new(), Vec::new());
    for row in rows {
        let id = row.id.clone();
        match to_charge(row, unknown) {
            Ok(charge) => {
                abandoned.extend(charge);
                ended.push(id);
            }
            // It stays for somebody to look at; the others do not wait for that.
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "a reservation cannot be read"),
        }
    }
    let mut postings = Postings::default();
    let mut charges = Charges::of(abandoned.iter());
    let mut endings = Endings::of(ended.iter().map(String::as_str));
    let mut script = Script::default();
    charges.add_fresh(&mut script);
    endings.end(&mut script);
    let mut run = &transaction;
    let mut found = run.run(&mut texts, script).await?;
    charges.keep_counted(&mut run, &mut texts, &mut found, &mut postings).await?;
    endings.post(&mut found, &mut postings)?;
    let mut script = Script::default();
    charges.post(&mut script, now, &mut postings)?;
    postings.write(&mut script)?;
    run.run(&mut texts, script).await?;
    transaction.commit().await.map_err(store_error)?;
    let (all, kept) = (ended.len() as u64, charges.count() as u64);
    Ok(ExpiryReport { released: all.saturating_sub(kept), charged: kept })
}

/// What a reservation whose process died is charged, where it is.
fn to_charge(row: Model, unknown: UnknownUsage) -> Result<Option<Charge>, StoreError> {
    let (claim, reservation) = to_claim(row)?;
    let record = abandoned_record(&claim, &reservation).filter(|_| unknown == UnknownUsage::Bound);
    record.map(|record| Charge::of(Settlement { record, messages: Vec::new() })).transpose()
}

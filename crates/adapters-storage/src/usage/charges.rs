//! Records that are charged, and reservations that end.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::money::Usd;
use domain::usage::UsageOutcome;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveValue, ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, QueryResult, QuerySelect,
    Value,
};

use super::counters::{Postings, Sums, out_of_range};
use super::held;
use super::job::Charge;
use super::row;
use super::statements::{Kind, Texts};
use crate::convert::{millis, moment};
use crate::entities::usage_records::{self, Column, Entity};
use crate::entities::{outbox, reservations};
use crate::errors::store_error;

/// Most records of one statement: 25 parameters each, far below what SQLite and PostgreSQL take.
pub(super) const RECORDS: usize = 64;

/// Adds records with their messages, but for those that are there, and posts what they cost. Returns the ids of those
/// that count.
pub(super) async fn charge(
    transaction: &DatabaseTransaction,
    texts: &mut Texts,
    charges: &[&Charge],
    now: DateTime<Utc>,
    postings: &mut Postings,
) -> Result<HashSet<String>, StoreError> {
    let charges = once_each(charges);
    let mut counted = insert(transaction, texts, &charges).await?;
    if counted.len() < charges.len() {
        let known = charges.iter().filter(|charge| !counted.contains(&charge.row.id) && !charge.is_abandoned());
        let known: Vec<&Charge> = known.copied().collect();
        let replaced = remove_abandoned(transaction, &known, postings).await?;
        let again: Vec<&Charge> = known.into_iter().filter(|charge| replaced.contains(&charge.row.id)).collect();
        counted.extend(insert(transaction, texts, &again).await?);
    }
    let mut messages = Vec::new();
    for charge in charges.iter().filter(|charge| counted.contains(&charge.row.id)) {
        postings.post(&charge.payer, charge.at, Sums::spent(charge.cost))?;
        messages.extend(&charge.messages);
    }
    let rows: Vec<outbox::ActiveModel> = messages
        .into_iter()
        .map(|message| outbox::ActiveModel {
            id: ActiveValue::Set(message.id.to_string()),
            destination_id: ActiveValue::Set(message.destination_id.to_string()),
            payload: ActiveValue::Set(message.payload.text().to_owned()),
            state: ActiveValue::Set("pending".to_owned()),
            attempts: ActiveValue::Set(0),
            next_at: ActiveValue::Set(millis(now)),
            last_error: ActiveValue::Set(None),
            created_at: ActiveValue::Set(millis(now)),
        })
        .collect();
    for piece in rows.chunks(RECORDS) {
        let done = OnConflict::column(outbox::Column::Id).do_nothing().to_owned();
        let insert = outbox::Entity::insert_many(piece.to_vec()).on_conflict(done);
        insert.exec_without_returning(transaction).await.map_err(store_error)?;
    }
    Ok(counted)
}

/// Of several with one id the first counts, unless it was charged for want of anybody who knew better.
fn once_each<'a>(charges: &[&'a Charge]) -> Vec<&'a Charge> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(charges.len());
    let mut kept: Vec<&Charge> = Vec::with_capacity(charges.len());
    for charge in charges {
        match places.get(charge.row.id.as_str()) {
            Some(place) if kept[*place].is_abandoned() && !charge.is_abandoned() => kept[*place] = charge,
            Some(_) => {}
            None => {
                places.insert(&charge.row.id, kept.len());
                kept.push(charge);
            }
        }
    }
    kept
}

async fn insert(
    transaction: &DatabaseTransaction,
    texts: &mut Texts,
    charges: &[&Charge],
) -> Result<HashSet<String>, StoreError> {
    let mut fresh = HashSet::with_capacity(charges.len());
    for piece in charges.chunks(RECORDS) {
        let values = piece.iter().flat_map(|charge| row::values(charge.row.clone()));
        let statement = texts.statement(Kind::InsertUsage, piece.len(), values);
        for row in transaction.query_all_raw(statement).await.map_err(store_error)? {
            fresh.insert(row.try_get_by_index(0).map_err(store_error)?);
        }
    }
    Ok(fresh)
}

/// Takes back records that were charged for want of anybody who knew better, where somebody does now.
async fn remove_abandoned(
    transaction: &DatabaseTransaction,
    known: &[&Charge],
    postings: &mut Postings,
) -> Result<HashSet<String>, StoreError> {
    let mut removed = HashSet::new();
    if known.is_empty() {
        return Ok(removed);
    }
    let rows: Vec<usage_records::Model> = Entity::find()
        .filter(Column::Id.is_in(known.iter().map(|charge| charge.row.id.as_str())))
        .filter(Column::Outcome.eq(UsageOutcome::Abandoned.as_str()))
        .all(transaction)
        .await
        .map_err(store_error)?;
    for row in &rows {
        let payer = held::payer(&row.workspace_id, &row.api_key, &row.guardrails, &row.id)?;
        let at = moment(row.charged_at, "usage_records.charged_at", &row.id)?;
        let cost = Sums::spent(Usd::from_pico(row.cost_pico)).negated().ok_or_else(out_of_range)?;
        postings.post(&payer, at, cost)?;
        removed.insert(row.id.clone());
    }
    if !removed.is_empty() {
        let delete = Entity::delete_many().filter(Column::Id.is_in(&removed));
        delete.exec(transaction).await.map_err(store_error)?;
    }
    Ok(removed)
}

/// Ends reservations; those that are not there are none.
pub(super) async fn end(
    transaction: &DatabaseTransaction,
    texts: &mut Texts,
    ids: &[&str],
    postings: &mut Postings,
) -> Result<(), StoreError> {
    for piece in ids.chunks(RECORDS) {
        let values = piece.iter().map(|id| Value::from(*id));
        let statement = texts.statement(Kind::EndReservations, piece.len(), values);
        for row in transaction.query_all_raw(statement).await.map_err(store_error)? {
            ended(&row, postings)?;
        }
    }
    Ok(())
}

/// The columns are those of [`super::statements::ENDED`].
fn ended(row: &QueryResult, postings: &mut Postings) -> Result<(), StoreError> {
    let text = |column: usize| row.try_get_by_index::<String>(column).map_err(store_error);
    let number = |column: usize| row.try_get_by_index::<i64>(column).map_err(store_error);
    let key: Vec<u8> = row.try_get_by_index(1).map_err(store_error)?;
    let payer = held::payer(&text(0)?, &key, &text(2)?, "a reservation that ended")?;
    let at = moment(number(4)?, "reservations.reserved_at", "a reservation that ended")?;
    let amount = Sums::reserved(Usd::from_pico(number(3)?)).negated().ok_or_else(out_of_range)?;
    postings.post(&payer, at, amount)
}

/// Rows of reservations by id.
pub(super) async fn find_reservations(
    transaction: &DatabaseTransaction,
    ids: &[&str],
) -> Result<Vec<reservations::Model>, StoreError> {
    let query = reservations::Entity::find().filter(reservations::Column::Id.is_in(ids.iter().copied()));
    query.limit(ids.len() as u64).all(transaction).await.map_err(store_error)
}

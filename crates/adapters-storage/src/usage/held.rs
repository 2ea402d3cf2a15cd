//! Between a reservation and its row.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::budget::{Claim, Payer, Reservation};
use domain::error::StoreError;
use domain::ids::DecisionId;
use domain::money::Usd;
use sea_orm::{QueryResult, Value};

use super::row::{read_guardrails, read_whole_attempts, write_attempts, write_guardrails};
use super::script::FIRST_COLUMN;
use crate::convert::{hash, hash_column, millis, moment, parse};
use crate::entities::reservations::Model;
use crate::errors::{corrupt, store_error};

/// The row of a claim, but for its times.
pub(super) fn to_row(claim: &Claim) -> Result<Model, StoreError> {
    let attempts = write_attempts(&claim.attempts).map_err(|_| corrupt("reservations.attempts", &claim.id))?;
    Ok(Model {
        id: claim.id.as_str().to_owned(),
        workspace_id: claim.payer.workspace_id.to_string(),
        api_key: hash_column(&claim.payer.api_key),
        guardrails: write_guardrails(&claim.payer.guardrails),
        request_id: claim.request_id.as_str().to_owned(),
        requested_model: claim.requested_model.clone(),
        attempts,
        amount_pico: claim.amount.pico(),
        reserved_at: 0,
        expires_at: 0,
    })
}

/// Unix milliseconds at which a lease is over; one without end is over at the end of time.
pub(super) fn end_of_lease(at: DateTime<Utc>, lease: Duration) -> i64 {
    let end = TimeDelta::from_std(lease).ok().and_then(|lease| at.checked_add_signed(lease));
    millis(end.unwrap_or(DateTime::<Utc>::MAX_UTC))
}

/// The columns of a reservation that say who pays.
pub(super) fn payer(workspace_id: &str, api_key: &[u8], guardrails: &str, row: &str) -> Result<Payer, StoreError> {
    Ok(Payer {
        workspace_id: parse(workspace_id, "reservations.workspace_id", row)?,
        api_key: hash(api_key, "reservations.api_key", row)?,
        guardrails: read_guardrails(guardrails).ok_or_else(|| corrupt("reservations.guardrails", row))?,
    })
}

pub(super) fn to_reservation(row: &Model) -> Result<Reservation, StoreError> {
    Ok(Reservation {
        id: parse::<DecisionId>(&row.id, "reservations.id", &row.id)?,
        at: moment(row.reserved_at, "reservations.reserved_at", &row.id)?,
        payer: payer(&row.workspace_id, &row.api_key, &row.guardrails, &row.id)?,
        amount: Usd::from_pico(row.amount_pico),
    })
}

/// What was claimed, for a record of it.
pub(super) fn to_claim(row: Model) -> Result<(Claim, Reservation), StoreError> {
    let reservation = to_reservation(&row)?;
    let attempts = read_whole_attempts(&row.attempts).ok_or_else(|| corrupt("reservations.attempts", &row.id))?;
    let claim = Claim {
        id: reservation.id.clone(),
        payer: reservation.payer.clone(),
        amount: reservation.amount,
        lease: Duration::ZERO,
        request_id: parse(&row.request_id, "reservations.request_id", &row.id)?,
        requested_model: row.requested_model,
        attempts: attempts.into(),
    };
    Ok((claim, reservation))
}

/// The columns of a reservation that say who pays, as they are written.
pub(super) fn payer_columns(payer: &Payer) -> [Value; 3] {
    [
        payer.workspace_id.to_string().into(),
        hash_column(&payer.api_key).into(),
        write_guardrails(&payer.guardrails).into(),
    ]
}

/// In the order of the columns.
pub(super) fn values(row: &Model) -> [Value; 10] {
    [
        row.id.as_str().into(),
        row.workspace_id.as_str().into(),
        row.api_key.as_slice().into(),
        row.guardrails.as_str().into(),
        row.request_id.as_str().into(),
        row.requested_model.as_str().into(),
        row.attempts.as_str().into(),
        row.amount_pico.into(),
        row.reserved_at.into(),
        row.expires_at.into(),
    ]
}

/// Reads a row in the order of the columns.
pub(super) fn from_columns(row: &QueryResult) -> Result<Model, StoreError> {
    let text = |column: usize| row.try_get_by_index::<String>(FIRST_COLUMN + column).map_err(store_error);
    let number = |column: usize| row.try_get_by_index::<i64>(FIRST_COLUMN + column).map_err(store_error);
    Ok(Model {
        id: text(0)?,
        workspace_id: text(1)?,
        api_key: row.try_get_by_index(FIRST_COLUMN + 2).map_err(store_error)?,
        guardrails: text(3)?,
        request_id: text(4)?,
        requested_model: text(5)?,
        attempts: text(6)?,
        amount_pico: number(7)?,
        reserved_at: number(8)?,
        expires_at: number(9)?,
    })
}

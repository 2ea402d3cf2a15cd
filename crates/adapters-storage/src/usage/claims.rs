//! Reservations that are made and extended.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{Overspent, Payer, Reservation, StandingLimit, admit};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel};

use super::charges::find_reservations;
use super::counters::{self, CounterKey, Postings, Sums, out_of_range};
use super::held;
use super::job::{Ask, Extension, Outcome, Work};
use super::limits::{CountedLimit, Limits};
use super::row::{read_whole_attempts, write_attempts};
use super::statements::{Kind, Texts};
use crate::convert::{millis, moment};
use crate::entities::reservations::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// The reservations and extensions of a batch, each with its place there.
pub(super) struct Claims<'a> {
    asks: Vec<(usize, Wanted<'a>)>,
    now: DateTime<Utc>,
    /// What is reserved by an id: in the database, or by an earlier claim of the batch.
    held: HashMap<&'a str, Held>,
}

#[derive(Clone, Copy)]
enum Wanted<'a> {
    Reserve(&'a Ask),
    Extend(&'a Extension),
}

struct Held {
    row: Model,
    reservation: Reservation,
    state: State,
}

/// How the database stands to a reservation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Stored,
    Missing,
    Changed,
}

/// What became of each claim, by its place in the batch.
pub(super) type Decided = Vec<(usize, Result<Outcome, StoreError>)>;

impl<'a> Claims<'a> {
    /// What of a batch asks for money. By the clock a reservation is at a whole millisecond, as its row will say.
    pub(super) fn of(works: &'a [Work], now: DateTime<Utc>) -> Result<Self, StoreError> {
        let wanted = |work: &'a Work| match work {
            Work::Reserve(ask) => Some(Wanted::Reserve(ask)),
            Work::Extend(extension) => Some(Wanted::Extend(extension)),
            Work::Settle(_) | Work::Release(_) => None,
        };
        let asks = works.iter().enumerate().filter_map(|(place, work)| Some((place, wanted(work)?))).collect();
        Ok(Self { asks, now: moment(millis(now), "the clock", "now")?, held: HashMap::new() })
    }

    /// Decides one after the other and writes what was decided. `None` where an id was taken that was not looked for:
    /// then the transaction has to be undone, and tried again with `look`.
    pub(super) async fn decide(
        mut self,
        transaction: &DatabaseTransaction,
        texts: &mut Texts,
        look: bool,
        postings: &mut Postings,
    ) -> Result<Option<Decided>, StoreError> {
        if self.asks.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let look = look || self.asks.iter().any(|(_, wanted)| matches!(wanted, Wanted::Extend(_)));
        if look {
            self.find(transaction).await?;
        }
        let payers: Vec<Option<(Payer, DateTime<Utc>)>> =
            self.asks.iter().map(|(_, wanted)| self.payer(wanted)).collect();
        let limits = Limits::read(transaction, texts, payers.iter().flatten().map(|(payer, _)| payer)).await?;
        let limits: Vec<Option<Result<Vec<CountedLimit>, StoreError>>> =
            payers.iter().map(|found| found.as_ref().map(|(payer, at)| limits.of(payer, *at))).collect();
        let wanted: BTreeSet<CounterKey> =
            limits.iter().flatten().flatten().flatten().map(|limit| limit.counter).collect();
        let wanted: Vec<CounterKey> = wanted.into_iter().collect();
        let stored = counters::read(transaction, texts, &wanted).await?;
        let mut decided = Vec::with_capacity(self.asks.len());
        let mut refused = Vec::new();
        for ((place, wanted), limits) in std::mem::take(&mut self.asks).into_iter().zip(limits) {
            let outcome = self.decide_one(wanted, limits, &stored, postings);
            if !matches!(outcome, Ok(Outcome::Reserved(_))) {
                refused.push(wanted.id());
            }
            decided.push((place, outcome));
        }
        // Who has a reservation is not refused another one.
        if !look && !refused.is_empty() && !find_reservations(transaction, &refused).await?.is_empty() {
            return Ok(None);
        }
        Ok(self.write(transaction, texts, look).await?.then_some(decided))
    }

    async fn find(&mut self, transaction: &DatabaseTransaction) -> Result<(), StoreError> {
        let ids: Vec<&'a str> = self.asks.iter().map(|(_, wanted)| wanted.id()).collect();
        let rows = find_reservations(transaction, &ids).await?;
        let mut rows: HashMap<String, Model> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        for id in ids {
            if let Some(row) = rows.remove(id) {
                let reservation = held::to_reservation(&row)?;
                self.held.insert(id, Held { row, reservation, state: State::Stored });
            }
        }
        Ok(())
    }

    /// Who pays for a claim, and the moment whose periods it counts in.
    fn payer(&self, wanted: &Wanted<'a>) -> Option<(Payer, DateTime<Utc>)> {
        if let Wanted::Reserve(ask) = wanted {
            return Some((ask.payer.clone(), self.now));
        }
        if let Some(held) = self.held.get(wanted.id()) {
            return Some((held.reservation.payer.clone(), held.reservation.at));
        }
        self.asks.iter().find_map(|(_, other)| match other {
            Wanted::Reserve(ask) if other.id() == wanted.id() => Some((ask.payer.clone(), self.now)),
            _ => None,
        })
    }

    fn decide_one(
        &mut self,
        wanted: Wanted<'a>,
        limits: Option<Result<Vec<CountedLimit>, StoreError>>,
        stored: &HashMap<CounterKey, Sums>,
        postings: &mut Postings,
    ) -> Result<Outcome, StoreError> {
        let held = self.held.get(wanted.id());
        let (payer, at) = match (wanted, held) {
            (Wanted::Reserve(_), Some(held)) => return Ok(Outcome::Reserved(held.reservation.clone())),
            (Wanted::Reserve(ask), None) => (&ask.payer, self.now),
            (Wanted::Extend(_), Some(held)) => (&held.reservation.payer, held.reservation.at),
            (Wanted::Extend(extension), None) => return Err(corrupt("reservations", &extension.id)),
        };
        let limits = limits.unwrap_or_else(|| Err(corrupt("reservations", wanted.id())))?;
        if let Err(overspent) = admitted(&limits, wanted.amount(), stored, postings)? {
            return Ok(Outcome::Refused(overspent));
        }
        match wanted {
            Wanted::Reserve(ask) => {
                postings.post(payer, at, Sums::reserved(ask.amount))?;
                let row =
                    Model { reserved_at: millis(at), expires_at: held::end_of_lease(at, ask.lease), ..ask.row.clone() };
                let reservation = Reservation { id: ask.id.clone(), at, payer: payer.clone(), amount: ask.amount };
                let outcome = Outcome::Reserved(reservation.clone());
                self.held.insert(ask.id.as_str(), Held { row, reservation, state: State::Missing });
                Ok(outcome)
            }
            Wanted::Extend(extension) => {
                let payer = payer.clone();
                let Some(held) = self.held.get_mut(wanted.id()) else {
                    return Err(corrupt("reservations", &extension.id));
                };
                let amount = held.reservation.amount.checked_add(extension.more).ok_or_else(out_of_range)?;
                let attempts = with_more_attempts(&held.row, extension)?;
                postings.post(&payer, at, Sums::reserved(extension.more))?;
                held.reservation.amount = amount;
                held.row.amount_pico = amount.pico();
                held.row.attempts = attempts;
                if held.state == State::Stored {
                    held.state = State::Changed;
                }
                Ok(Outcome::Done)
            }
        }
    }

    /// False where an id was taken that was not looked for.
    async fn write(
        self,
        transaction: &DatabaseTransaction,
        texts: &mut Texts,
        looked: bool,
    ) -> Result<bool, StoreError> {
        let rows =
            |state: State| self.held.values().filter(move |held| held.state == state).map(|held| held.row.clone());
        let missing: Vec<Model> = rows(State::Missing).collect();
        if !missing.is_empty() {
            let count = missing.len();
            let values = missing.into_iter().flat_map(held::values);
            let statement = texts.statement(Kind::InsertReservations, count, values);
            let done = transaction.execute_raw(statement).await.map_err(store_error)?;
            if done.rows_affected() != count as u64 {
                return if looked { Err(corrupt("reservations.id", "a batch")) } else { Ok(false) };
            }
        }
        let changed: Vec<_> = rows(State::Changed).map(Model::into_active_model).collect();
        if !changed.is_empty() {
            let replace =
                OnConflict::column(Column::Id).update_columns([Column::AmountPico, Column::Attempts]).to_owned();
            let replacing = Entity::insert_many(changed).on_conflict(replace);
            replacing.exec_without_returning(transaction).await.map_err(store_error)?;
        }
        Ok(true)
    }
}

impl<'a> Wanted<'a> {
    fn id(self) -> &'a str {
        match self {
            Self::Reserve(ask) => ask.id.as_str(),
            Self::Extend(extension) => extension.id.as_str(),
        }
    }

    fn amount(self) -> Usd {
        match self {
            Self::Reserve(ask) => ask.amount,
            Self::Extend(extension) => extension.more,
        }
    }
}

/// Decides on counters as they will stand after what the batch did before.
fn admitted(
    limits: &[CountedLimit],
    amount: Usd,
    stored: &HashMap<CounterKey, Sums>,
    postings: &Postings,
) -> Result<Result<(), Overspent>, StoreError> {
    let stands = |limit: &CountedLimit| -> Result<StandingLimit, StoreError> {
        let stored = stored.get(&limit.counter).copied().unwrap_or_default();
        limit.standing(stored.plus(postings.of(&limit.counter)).ok_or_else(out_of_range)?)
    };
    let standing: Vec<StandingLimit> = limits.iter().map(stands).collect::<Result<_, _>>()?;
    Ok(admit(&standing, amount))
}

fn with_more_attempts(row: &Model, extension: &Extension) -> Result<String, StoreError> {
    let unreadable = || corrupt("reservations.attempts", &extension.id);
    let mut attempts = read_whole_attempts(&row.attempts).ok_or_else(unreadable)?;
    attempts.extend(extension.attempts.iter().cloned());
    write_attempts(&attempts).map_err(|_| unreadable())
}

//! Reservations that are made and extended.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::budget::{Overspent, Payer, Reservation, StandingLimit, admit};
use domain::error::StoreError;
use domain::money::Usd;

use super::books::Books;
use super::charges::RECORDS;
use super::counters::{Postings, Sums, out_of_range};
use super::held;
use super::job::{Ask, Extension, Outcome, Work};
use super::known::Known;
use super::limits::CountedLimit;
use super::row::{read_whole_attempts, write_attempts};
use super::script::{Rows, Run, Script};
use super::statements::{Kind, Texts};
use crate::convert::{millis, moment};
use crate::entities::reservations::Model;
use crate::errors::corrupt;

/// The reservations and extensions of a batch, each with its place there.
pub(super) struct Claims<'a> {
    asks: Vec<(usize, Wanted<'a>)>,
    now: DateTime<Utc>,
    books: Books,
    found: Vec<usize>,
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
    /// What of a batch asks for money.
    pub(super) fn of(works: &'a [Work]) -> Self {
        let wanted = |work: &'a Work| match work {
            Work::Reserve(ask) => Some(Wanted::Reserve(ask)),
            Work::Extend(extension) => Some(Wanted::Extend(extension)),
            Work::Settle(_) | Work::Release(_) => None,
        };
        let asks = works.iter().enumerate().filter_map(|(place, work)| Some((place, wanted(work)?))).collect();
        Self { asks, now: DateTime::UNIX_EPOCH, books: Books::default(), held: HashMap::new(), found: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Adds to a script what has to be read, as far as it is known before anything was read.
    pub(super) fn ask(&mut self, script: &mut Script, now: DateTime<Utc>) {
        for piece in self.asks.chunks(RECORDS) {
            self.found.push(script.add(
                Kind::FindReservations,
                piece.iter().map(|(_, wanted)| [wanted.id().into()]),
                [],
            ));
        }
        let payers = self.asks.iter().filter_map(|(_, wanted)| match wanted {
            Wanted::Reserve(ask) => Some((&ask.payer, now)),
            Wanted::Extend(_) => None,
        });
        self.books.ask(script, payers);
    }

    /// Decides one after the other, on what was read under the write lock that is held since before `now`. By the clock
    /// a reservation is at a whole millisecond, as its row will say.
    pub(super) async fn decide(
        &mut self,
        run: &mut impl Run,
        texts: &mut Texts,
        rows: &mut Rows,
        now: DateTime<Utc>,
        postings: &mut Postings,
    ) -> Result<Decided, StoreError> {
        self.now = moment(millis(now), "the clock", "now")?;
        self.take_found(rows)?;
        self.books.take(rows)?;
        let payers: Vec<Option<(Payer, DateTime<Utc>)>> =
            self.asks.iter().map(|(_, wanted)| self.payer(wanted)).collect();
        // What only a reservation that was found could tell, or where a day ended meanwhile.
        let mut more = Script::default();
        self.books.ask(&mut more, payers.iter().flatten().map(|(payer, at)| (payer, *at)));
        if !more.is_empty() {
            self.books.take(&mut run.run(texts, more).await?)?;
        }
        let mut decided = Vec::with_capacity(self.asks.len());
        for ((place, wanted), payer) in std::mem::take(&mut self.asks).into_iter().zip(payers) {
            let limits = payer.map(|(payer, at)| self.books.limits(&payer, at));
            decided.push((place, self.decide_one(wanted, limits, postings)));
        }
        Ok(decided)
    }

    fn take_found(&mut self, rows: &mut Rows) -> Result<(), StoreError> {
        let found = std::mem::take(&mut self.found);
        for row in found.into_iter().flat_map(|part| rows.take(part)) {
            let row = held::from_columns(&row)?;
            if let Some((_, wanted)) = self.asks.iter().find(|(_, wanted)| wanted.id() == row.id) {
                let reservation = held::to_reservation(&row)?;
                self.held.insert(wanted.id(), Held { row, reservation, state: State::Stored });
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
        if let Err(overspent) = admitted(&limits, wanted.amount(), &self.books, postings)? {
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

    /// Adds to a script what writes down what was decided.
    pub(super) fn write(&self, script: &mut Script) {
        for (state, kind) in [(State::Missing, Kind::AddReservations), (State::Changed, Kind::ReplaceReservations)] {
            let rows: Vec<&Model> = self.in_state(state).map(|held| &held.row).collect();
            for piece in rows.chunks(RECORDS) {
                script.add(kind, piece.iter().map(|row| held::values(row)), []);
            }
        }
    }

    /// Remembers what was written down.
    pub(super) fn remember(self, known: &mut Known) {
        let written = self.held.into_values().filter(|held| held.state != State::Stored);
        written.for_each(|held| known.keep(held.reservation));
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = &Held> {
        self.held.values().filter(move |held| held.state == state)
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
    books: &Books,
    postings: &Postings,
) -> Result<Result<(), Overspent>, StoreError> {
    let stands = |limit: &CountedLimit| -> Result<StandingLimit, StoreError> {
        let added = postings.of(&limit.counter)?;
        limit.standing(books.counter(&limit.counter).plus(added).ok_or_else(out_of_range)?)
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

//! Records that are charged, and reservations that end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use domain::budget::{Reservation, ResetInterval};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use sea_orm::{QueryResult, Value};

use super::counters::{Postings, Sums, out_of_range};
use super::held;
use super::job::Charge;
use super::known::Known;
use super::row;
use super::script::{FIRST_COLUMN, Rows, Run, Script};
use super::statements::{Kind, Texts};
use crate::convert::{millis, moment};
use crate::errors::store_error;

/// Most records of one statement: 25 parameters each, far below what SQLite and PostgreSQL take.
pub(super) const RECORDS: usize = 64;

/// Records to be added with their messages, and posted for what they cost.
pub(super) struct Charges<'a> {
    charges: Vec<&'a Charge>,
    added: Vec<usize>,
}

impl<'a> Charges<'a> {
    pub(super) fn of(charges: impl Iterator<Item = &'a Charge>) -> Self {
        Self { charges: once_each(charges), added: Vec::new() }
    }

    /// Adds the records to a script, none of which may be there.
    pub(super) fn add(&self, script: &mut Script) {
        for piece in self.charges.chunks(RECORDS) {
            script.add(Kind::AddUsage, piece.iter().map(|charge| row::values(&charge.row)), []);
        }
    }

    /// Adds the records to a script, but for those that are there.
    pub(super) fn add_fresh(&mut self, script: &mut Script) {
        for piece in self.charges.chunks(RECORDS) {
            let rows = piece.iter().map(|charge| row::values(&charge.row));
            self.added.push(script.add(Kind::AddFreshUsage, rows, []));
        }
    }

    /// Leaves those that count, after [`Charges::add_fresh`]. A record that was charged for want of anybody who knew
    /// better is replaced where somebody does now.
    pub(super) async fn keep_counted(
        &mut self,
        run: &mut impl Run,
        texts: &mut Texts,
        rows: &mut Rows,
        postings: &mut Postings,
    ) -> Result<(), StoreError> {
        let mut counted = HashSet::with_capacity(self.charges.len());
        for part in std::mem::take(&mut self.added) {
            counted.extend(ids(&rows.take(part))?);
        }
        if counted.len() < self.charges.len() {
            let known = self.charges.iter().filter(|charge| !counted.contains(&charge.row.id));
            let known: Vec<&Charge> = known.copied().filter(|charge| !charge.is_abandoned()).collect();
            for id in replace_abandoned(run, texts, &known, postings).await? {
                counted.insert(id);
            }
        }
        self.charges.retain(|charge| counted.contains(&charge.row.id));
        Ok(())
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.charges.len()
    }

    /// Posts what they cost, and adds their bytes and their messages to a script.
    pub(super) fn post(
        &self,
        script: &mut Script,
        now: DateTime<Utc>,
        postings: &mut Postings,
    ) -> Result<(), StoreError> {
        self.add_bytes(script, now);
        let mut messages = Vec::new();
        for charge in &self.charges {
            postings.post(&charge.payer, charge.at, Sums::spent(charge.cost))?;
            messages.extend(&charge.messages);
        }
        for piece in messages.chunks(RECORDS) {
            let rows = piece.iter().map(|message| -> [Value; 8] {
                [
                    message.id.to_string().into(),
                    message.destination_id.to_string().into(),
                    message.payload.text().into(),
                    "pending".into(),
                    0_i64.into(),
                    millis(now).into(),
                    Value::String(None),
                    millis(now).into(),
                ]
            });
            script.add(Kind::AddMessages, rows, []);
        }
        Ok(())
    }
}

impl Charges<'_> {
    /// Adds the bytes of the records to the day of their workspaces.
    fn add_bytes(&self, script: &mut Script, now: DateTime<Utc>) {
        let mut bytes: BTreeMap<WorkspaceId, u64> = BTreeMap::new();
        for charge in &self.charges {
            let sum = bytes.entry(charge.payer.workspace_id).or_default();
            *sum = sum.saturating_add(charge.bytes);
        }
        let day = millis(ResetInterval::Daily.start_of(now));
        let rows: Vec<[Value; 3]> = bytes
            .into_iter()
            .map(|(id, bytes)| [id.to_string().into(), day.into(), i64::try_from(bytes).unwrap_or(i64::MAX).into()])
            .collect();
        for piece in rows.chunks(RECORDS) {
            script.add(Kind::AddRecordBytes, piece.iter().cloned(), []);
        }
    }
}

/// Of several with one id the first counts, unless it was charged for want of anybody who knew better.
fn once_each<'a>(charges: impl Iterator<Item = &'a Charge>) -> Vec<&'a Charge> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut kept: Vec<&Charge> = Vec::new();
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

/// The first of what each row has.
fn ids(rows: &[QueryResult]) -> Result<Vec<String>, StoreError> {
    rows.iter().map(|row| row.try_get_by_index(FIRST_COLUMN).map_err(store_error)).collect()
}

/// Takes back what was charged for want of anybody who knew better, and adds the records that are known now. Returns
/// their ids.
async fn replace_abandoned(
    run: &mut impl Run,
    texts: &mut Texts,
    known: &[&Charge],
    postings: &mut Postings,
) -> Result<HashSet<String>, StoreError> {
    let mut found = HashSet::new();
    for piece in known.chunks(RECORDS) {
        let mut script = Script::default();
        let part = script.add(Kind::FindAbandoned, piece.iter().map(|charge| [charge.row.id.as_str().into()]), []);
        for row in run.run(texts, script).await?.take(part) {
            found.insert(take_back(&row, postings)?);
        }
    }
    let again: Vec<&Charge> = known.iter().copied().filter(|charge| found.contains(&charge.row.id)).collect();
    for piece in again.chunks(RECORDS) {
        let mut script = Script::default();
        script.add(Kind::RemoveUsage, piece.iter().map(|charge| [charge.row.id.as_str().into()]), []);
        script.add(Kind::AddUsage, piece.iter().map(|charge| row::values(&charge.row)), []);
        run.run(texts, script).await?;
    }
    Ok(found)
}

/// Posts the opposite of what was charged; the columns are those of [`Kind::FindAbandoned`]. Returns the id.
fn take_back(row: &QueryResult, postings: &mut Postings) -> Result<String, StoreError> {
    let text = |column: usize| row.try_get_by_index::<String>(FIRST_COLUMN + column).map_err(store_error);
    let number = |column: usize| row.try_get_by_index::<i64>(FIRST_COLUMN + column).map_err(store_error);
    let key: Vec<u8> = row.try_get_by_index(FIRST_COLUMN + 2).map_err(store_error)?;
    let id = text(0)?;
    let payer = held::payer(&text(1)?, &key, &text(3)?, &id)?;
    let at = moment(number(5)?, "usage_records.charged_at", &id)?;
    let cost = Sums::spent(Usd::from_pico(number(4)?)).negated().ok_or_else(out_of_range)?;
    postings.post(&payer, at, cost)?;
    Ok(id)
}

/// Reservations to be ended; those that are not there are none.
pub(super) struct Endings<'a> {
    ids: BTreeSet<&'a str>,
    ended: Vec<usize>,
}

impl<'a> Endings<'a> {
    pub(super) fn of(ids: impl Iterator<Item = &'a str>) -> Self {
        Self { ids: ids.collect(), ended: Vec::new() }
    }

    /// Adds to a script what ends them.
    pub(super) fn end(&mut self, script: &mut Script) {
        for piece in self.pieces() {
            self.ended.push(script.add(Kind::EndReservations, piece.iter().map(|id| [(*id).into()]), []));
        }
    }

    /// Posts what was ended.
    pub(super) fn post(&self, rows: &mut Rows, postings: &mut Postings) -> Result<(), StoreError> {
        self.ended.iter().flat_map(|part| rows.take(*part)).try_for_each(|row| ended(&row, postings))
    }

    /// Adds to a script what ends them where they stand as this process knows them, and fails where they do not; posts
    /// what is ended so.
    pub(super) fn end_known(
        &self,
        script: &mut Script,
        known: &Known,
        postings: &mut Postings,
    ) -> Result<(), StoreError> {
        for piece in self.pieces() {
            script.add(Kind::CheckReservations, piece.iter().map(|id| taken_to_be(id, known.get(id))), []);
            let there: Vec<&Reservation> = piece.iter().filter_map(|id| known.get(id)).collect();
            if !there.is_empty() {
                let rows = there.iter().map(|reservation| [reservation.id.as_str().into()]);
                script.add(Kind::DropReservations, rows, []);
            }
            for reservation in there {
                let amount = Sums::reserved(reservation.amount).negated().ok_or_else(out_of_range)?;
                postings.post(&reservation.payer, reservation.at, amount)?;
            }
        }
        Ok(())
    }

    /// They are over, whoever ended them.
    pub(super) fn forget(&self, known: &mut Known) {
        self.ids.iter().for_each(|id| known.forget(id));
    }

    fn pieces(&self) -> Vec<Vec<&'a str>> {
        let ids: Vec<&str> = self.ids.iter().copied().collect();
        ids.chunks(RECORDS).map(<[&str]>::to_vec).collect()
    }
}

/// The columns are those of [`Kind::EndReservations`].
fn ended(row: &QueryResult, postings: &mut Postings) -> Result<(), StoreError> {
    let text = |column: usize| row.try_get_by_index::<String>(FIRST_COLUMN + column).map_err(store_error);
    let number = |column: usize| row.try_get_by_index::<i64>(FIRST_COLUMN + column).map_err(store_error);
    let key: Vec<u8> = row.try_get_by_index(FIRST_COLUMN + 1).map_err(store_error)?;
    let payer = held::payer(&text(0)?, &key, &text(2)?, "a reservation that ended")?;
    let at = moment(number(4)?, "reservations.reserved_at", "a reservation that ended")?;
    let amount = Sums::reserved(Usd::from_pico(number(3)?)).negated().ok_or_else(out_of_range)?;
    postings.post(&payer, at, amount)
}

fn taken_to_be(id: &str, known: Option<&Reservation>) -> [Value; 6] {
    let [workspace, key, guardrails, amount, at] = known.map_or_else(
        || [const { Value::BigInt(None) }; 5],
        |Reservation { at, payer, amount, .. }| {
            let [workspace, key, guardrails] = held::payer_columns(payer);
            [workspace, key, guardrails, amount.pico().into(), millis(*at).into()]
        },
    );
    [id.into(), workspace, key, guardrails, amount, at]
}

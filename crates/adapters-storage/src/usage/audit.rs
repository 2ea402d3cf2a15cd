//! Whether everything adds up.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use domain::api_key::ApiKeyHash;
use domain::budget::{BudgetScope, Discrepancy, LedgerAudit, Payer, Reservation, cost_of_record};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, FromQueryResult, QueryFilter,
    QueryOrder, QueryResult, QuerySelect, QueryTrait,
};

use super::counters::{Postings, Span, Sums, out_of_range, subject};
use super::held::{self, to_reservation};
use super::row::to_record;
use crate::convert::{hash, hash_column, moment};
use crate::entities::{reservations, spend_counters, usage_records};
use crate::errors::{corrupt, store_error};

/// Records and accounts that are read at a time.
const PAGE: u64 = 500;

/// An account as its columns name it.
type AccountName = (&'static str, String);
/// What an account's counters have to be, by interval and beginning of the period.
type Expected = BTreeMap<(Span, i64), Sums>;

/// Reads one state of the database, key by key, in pages.
pub(super) struct Audit<'a> {
    snapshot: &'a DatabaseTransaction,
    report: LedgerAudit,
    /// What the records of the keys that were read come to, by workspace.
    workspaces: HashMap<AccountName, Expected>,
    compared: HashSet<AccountName>,
}

impl<'a> Audit<'a> {
    pub(super) fn new(snapshot: &'a DatabaseTransaction) -> Self {
        let report = LedgerAudit::default();
        Self { snapshot, report, workspaces: HashMap::new(), compared: HashSet::new() }
    }

    pub(super) async fn run(mut self) -> Result<LedgerAudit, StoreError> {
        let mut open = self.open_reservations().await?;
        let mut last = None;
        while let Some(key) = self.next_key(last.as_deref()).await? {
            // What is no key has no reservations, and its records will be found unreadable.
            let hash = hash(&key, "usage_records.api_key", "a record").ok();
            let reserved = hash.and_then(|hash| open.remove(&hash)).unwrap_or_default();
            let sums = self.sums_of(&key, &reserved).await?;
            self.compare_all(sums).await?;
            last = Some(key);
        }
        for (hash, reserved) in open {
            let sums = self.sums_of(&hash_column(&hash), &reserved).await?;
            self.compare_all(sums).await?;
        }
        for (account, expected) in std::mem::take(&mut self.workspaces) {
            self.compare(account, expected).await?;
        }
        for scope in [BudgetScope::Workspace, BudgetScope::Key, BudgetScope::Guardrail] {
            self.compare_rest(scope.as_str()).await?;
        }
        Ok(self.report)
    }

    /// Requests in flight are few enough to be held at once.
    async fn open_reservations(&mut self) -> Result<HashMap<ApiKeyHash, Vec<Reservation>>, StoreError> {
        let mut open: HashMap<ApiKeyHash, Vec<Reservation>> = HashMap::new();
        for row in reservations::Entity::find().all(self.snapshot).await.map_err(store_error)? {
            self.report.reservations += 1;
            match to_reservation(&row) {
                Ok(reservation) => open.entry(reservation.payer.api_key).or_default().push(reservation),
                Err(_) => self.unreadable(&format!("reservation {}", row.id), Usd::from_pico(row.amount_pico)),
            }
        }
        Ok(open)
    }

    /// The next key that has records.
    async fn next_key(&self, last: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
        use usage_records::Column;
        let mut query = usage_records::Entity::find().select_only().column(Column::ApiKey);
        if let Some(last) = last {
            query = query.filter(Column::ApiKey.gt(last.to_vec()));
        }
        query.order_by_asc(Column::ApiKey).into_tuple().one(self.snapshot).await.map_err(store_error)
    }

    /// What the records and reservations of a key come to, in every account.
    async fn sums_of(&mut self, key: &[u8], reserved: &[Reservation]) -> Result<Postings, StoreError> {
        let mut sums = Postings::default();
        for Reservation { payer, at, amount, .. } in reserved {
            sums.post(payer, *at, Sums::reserved(*amount))?;
        }
        let mut last: Option<(i64, String)> = None;
        loop {
            let page = self.page_of(key, last.as_ref()).await?;
            let is_last = (page.len() as u64) < PAGE;
            let end = page.last().map(|end| Ok::<_, DbErr>((end.try_get("", "created_at")?, end.try_get("", "id")?)));
            for row in page {
                let Ok(row) = usage_records::Model::from_query_result(&row, "") else {
                    self.report.records += 1;
                    let id: String = row.try_get("", "id").unwrap_or_default();
                    self.unreadable(&format!("record {id}"), Usd::ZERO);
                    continue;
                };
                // Where nobody can tell whom it was charged to, the counters will be found to say more than the ledger.
                if let Ok((payer, at)) = charged_to(&row) {
                    sums.post(&payer, at, Sums::spent(Usd::from_pico(row.cost_pico)))?;
                }
                self.check(row);
            }
            if is_last {
                return Ok(sums);
            }
            last = end.transpose().map_err(store_error)?;
        }
    }

    /// Rows as they are: each is read by itself.
    async fn page_of(&self, key: &[u8], last: Option<&(i64, String)>) -> Result<Vec<QueryResult>, StoreError> {
        use usage_records::Column;
        let mut query = usage_records::Entity::find().filter(Column::ApiKey.eq(key.to_vec()));
        if let Some((at, id)) = last {
            let later = Condition::any().add(Column::CreatedAt.gt(*at)).add(Column::Id.gt(id.as_str()));
            query = query.filter(Column::CreatedAt.gte(*at)).filter(later);
        }
        let query = query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id).limit(PAGE);
        let query = query.build(self.snapshot.get_database_backend());
        self.snapshot.query_all_raw(query).await.map_err(store_error)
    }

    /// Computes the cost of a record again.
    fn check(&mut self, row: usage_records::Model) {
        self.report.records += 1;
        let (id, found) = (row.id.clone(), Usd::from_pico(row.cost_pico));
        let Ok(record) = to_record(row) else {
            self.unreadable(&format!("record {id}"), found);
            return;
        };
        match cost_of_record(&record) {
            Some(expected) => self.tell(format!("record {id}"), expected, found),
            None => self.wrong(format!("record {id}, whose cost leaves the range of money"), Usd::ZERO, found),
        }
    }

    fn unreadable(&mut self, what: &str, found: Usd) {
        self.wrong(format!("{what}, which cannot be read"), Usd::ZERO, found);
    }

    /// Something is wrong whatever the amounts are.
    fn wrong(&mut self, what: String, expected: Usd, found: Usd) {
        self.report.discrepancies.push(Discrepancy { what, expected, found });
    }

    fn tell(&mut self, what: String, expected: Usd, found: Usd) {
        if expected != found {
            self.wrong(what, expected, found);
        }
    }

    /// Compares what a key's records come to, but for the workspace, whose other keys are still to come.
    async fn compare_all(&mut self, sums: Postings) -> Result<(), StoreError> {
        let mut accounts: BTreeMap<AccountName, Expected> = BTreeMap::new();
        for (key, sums) in sums.into_counters()? {
            let name = (key.account.scope().as_str(), subject(&key.account));
            if key.account.scope() == BudgetScope::Workspace {
                let of = self.workspaces.entry(name).or_default().entry((key.span, key.start)).or_default();
                *of = of.plus(sums).ok_or_else(out_of_range)?;
            } else {
                accounts.entry(name).or_default().insert((key.span, key.start), sums);
            }
        }
        for (name, expected) in accounts {
            self.compare(name, expected).await?;
        }
        Ok(())
    }

    /// Compares the counters of an account with what they have to be.
    async fn compare(&mut self, name: AccountName, mut expected: Expected) -> Result<(), StoreError> {
        use spend_counters::Column;
        let rows = spend_counters::Entity::find()
            .filter(Column::Scope.eq(name.0))
            .filter(Column::Subject.eq(name.1.as_str()))
            .all(self.snapshot)
            .await
            .map_err(store_error)?;
        let mut found = Expected::new();
        for row in rows {
            let span = Span::from_name(&row.interval).ok_or_else(|| corrupt("spend_counters.interval", &name.1))?;
            let spent = Usd::from_pico(row.spent_pico);
            if span == Span::Archived {
                let total = expected.entry((Span::Total, 0)).or_default();
                *total = total.plus(Sums::spent(spent)).ok_or_else(out_of_range)?;
            } else {
                self.report.counters += 1;
                found.insert((span, row.period_start), Sums { spent, reserved: Usd::from_pico(row.reserved_pico) });
            }
        }
        let both: std::collections::BTreeSet<(Span, i64)> = expected.keys().chain(found.keys()).copied().collect();
        for place in both {
            let of = |sums: &Expected| sums.get(&place).copied().unwrap_or_default();
            let (expected, found) = (of(&expected), of(&found));
            let counter = title(&name, place);
            self.tell(format!("{counter}: spent"), expected.spent, found.spent);
            self.tell(format!("{counter}: reserved"), expected.reserved, found.reserved);
        }
        self.compared.insert(name);
        Ok(())
    }

    /// Accounts of which there is nothing but counters.
    async fn compare_rest(&mut self, scope: &'static str) -> Result<(), StoreError> {
        use spend_counters::Column;
        let mut last = String::new();
        loop {
            let page: Vec<String> = spend_counters::Entity::find()
                .select_only()
                .column(Column::Subject)
                .distinct()
                .filter(Column::Scope.eq(scope))
                .filter(Column::Subject.gt(last.as_str()))
                .order_by_asc(Column::Subject)
                .limit(PAGE)
                .into_tuple()
                .all(self.snapshot)
                .await
                .map_err(store_error)?;
            let Some(end) = page.last() else { return Ok(()) };
            last.clone_from(end);
            for subject in page {
                if !self.compared.contains(&(scope, subject.clone())) {
                    self.compare((scope, subject), Expected::new()).await?;
                }
            }
        }
    }
}

/// Who was charged for a record, and when.
fn charged_to(row: &usage_records::Model) -> Result<(Payer, DateTime<Utc>), StoreError> {
    let payer = held::payer(&row.workspace_id, &row.api_key, &row.guardrails, &row.id)?;
    Ok((payer, moment(row.charged_at, "usage_records.charged_at", &row.id)?))
}

/// Such as `workspace 0199… daily 2026-11-21`.
fn title((scope, subject): &AccountName, (span, start): (Span, i64)) -> String {
    let name = format!("{scope} {subject} {}", span.as_str());
    match (span, DateTime::from_timestamp_millis(start)) {
        (Span::Period(_), Some(start)) => format!("{name} {}", start.date_naive()),
        _ => name,
    }
}

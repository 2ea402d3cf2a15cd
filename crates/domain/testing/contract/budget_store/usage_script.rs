//! Random folds, late charges, deletions of keys and retention, compared with a list of the charges.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::super::Stores;
use super::super::ledger::fixtures::{id, insert_fixtures, payer, record};
use super::super::samples::{add_key, audit, inference_key, key_id, workspace_id};
use super::setup::{Holder, adds_up, entry};
use crate::api_key::{ApiKey, LastKeyRule};
use crate::budget::Payer;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::system::Clock;
use crate::testing::{SeededDraws, delete_key};
use crate::usage::{UsageFilter, UsageGroup, UsageOutcome, UsageRecord, UsageSum, UsageSumQuery, UsageTotals};

/// More than any list or sum of a script has.
const MANY: u64 = 10_000;
const KEYS: u64 = 4;
const DAY: Duration = Duration::from_hours(24);

pub(super) async fn sums_and_pages_equal_records_after_any_steps(stores: &Stores) {
    usage_script(stores, 7, 100).await;
}

/// Runs random steps on empty stores. After each one, the records, their pages and the sums are those of the charges.
///
/// # Panics
/// They differ.
pub async fn usage_script(stores: &Stores, seed: u64, steps: usize) {
    insert_fixtures(stores).await;
    for number in 3..=KEYS {
        add_key(stores, &ApiKey { limit: None, ..inference_key(number, 1) }).await;
    }
    let process = Holder::register(stores, 1).await;
    let mut script = Script { stores, process, draws: SeededDraws::new(seed), charges: Vec::new(), next: 1 };
    for number in 0..steps {
        script.step().await;
        let case = format!("step {number} of seed {seed}");
        script.compare_list(&case).await;
        script.compare_sums(&case).await;
    }
    adds_up(stores, &format!("seed {seed}")).await;
}

struct Charge {
    record: UsageRecord,
    /// False once retention has removed the record.
    is_stored: bool,
    /// False once retention has removed the sum of the day.
    is_summed: bool,
}

struct Script<'a> {
    stores: &'a Stores,
    process: Holder,
    draws: SeededDraws,
    charges: Vec<Charge>,
    next: u64,
}

impl Script<'_> {
    async fn step(&mut self) {
        match self.draws.below(16) {
            0..=6 => self.fold_new().await,
            7..=10 => self.fold_late().await,
            11 => {
                let key = key_id(1 + self.draws.below(KEYS));
                delete_key(&*self.stores.api_keys, key, LastKeyRule::Waived, &audit()).await.unwrap();
            }
            12 => self.prune().await,
            13 => self.prune_sums().await,
            14 => self.stores.clock.advance(Duration::from_hours(self.draws.below(72))),
            _ => self.walk().await,
        }
    }

    /// Returns a record of the last weeks. Several are charged at one time.
    fn draw_record(&mut self, number: u64, payer: Payer) -> UsageRecord {
        const MILLIS: [i64; 3] = [0, 1, 86_399_999];
        let midnight = self.stores.clock.now().date_naive().and_time(NaiveTime::MIN).and_utc();
        let millis = MILLIS[usize::try_from(self.draws.below(3)).unwrap()];
        let days = i64::try_from(1 + self.draws.below(40)).unwrap();
        let charged_at = midnight - TimeDelta::days(days) + TimeDelta::milliseconds(millis);
        let pico = i64::try_from(self.draws.below(1_000)).unwrap();
        let outcome = match self.draws.below(5) {
            0 | 1 => UsageOutcome::Abandoned,
            2 => UsageOutcome::Failed,
            _ => UsageOutcome::Completed,
        };
        let user = self.draws.below(3);
        UsageRecord {
            model: format!("acme/m-{}", self.draws.below(3)).parse().unwrap(),
            provider: format!("p-{}", self.draws.below(2)),
            output_tokens: self.draws.below(9),
            user: (user > 0).then(|| format!("u-{user}")),
            outcome,
            ..record(number, payer, pico, charged_at)
        }
    }

    fn draw_payer(&mut self) -> Payer {
        let key = 1 + self.draws.below(KEYS);
        // Keys 3 and 4 belong to workspace 1.
        Payer { api_key: key_id(key), ..payer(if key == 2 { 2 } else { 1 }) }
    }

    async fn fold_new(&mut self) {
        let mut records = Vec::new();
        for _ in 0..=self.draws.below(5) {
            let payer = self.draw_payer();
            records.push(self.draw_record(self.next, payer));
            self.next += 1;
        }
        let charge = |record: &UsageRecord| Charge { record: record.clone(), is_stored: true, is_summed: true };
        self.charges.extend(records.iter().map(charge));
        if self.draws.below(4) == 0 {
            records.extend(records.clone());
        }
        let entries: Vec<_> = records.into_iter().map(|record| entry(record, &[])).collect();
        let request = self.process.fold_request(entries.clone());
        self.process.fold(self.stores, entries).await;
        if self.draws.below(3) == 0 {
            self.stores.budget.fold(&request).await.expect("a repetition changes nothing");
        }
    }

    /// Charges a known request again. The real charge replaces that of the upper bound.
    async fn fold_late(&mut self) {
        let stored: Vec<usize> = (0..self.charges.len()).filter(|place| self.charges[*place].is_stored).collect();
        if stored.is_empty() {
            return;
        }
        let place = stored[usize::try_from(self.draws.below(stored.len() as u64)).unwrap()];
        let before = self.charges[place].record.clone();
        let number = (1..self.next).find(|number| id(*number) == before.id).unwrap();
        let of = Payer { workspace_id: before.workspace_id, api_key: before.api_key, guardrails: Vec::new() };
        let late = self.draw_record(number, of);
        self.process.fold(self.stores, vec![entry(late.clone(), &[])]).await;
        if before.outcome == UsageOutcome::Abandoned && late.outcome != UsageOutcome::Abandoned {
            self.charges[place].record = late;
        }
    }

    async fn prune(&mut self) {
        let older_than = DAY * u32::try_from(self.draws.below(60)).unwrap();
        let limit = 1 + self.draws.below(20);
        let removed = self.stores.maintenance.prune(older_than, limit).await.unwrap().removed;
        let left = self.stores.usage.list(&UsageFilter::default(), MANY).await.unwrap();
        let oldest = self.stores.clock.now() - older_than;
        let mut gone = 0;
        for charge in self.charges.iter_mut().filter(|charge| charge.is_stored) {
            charge.is_stored = left.iter().any(|record| record.id == charge.record.id);
            gone += u64::from(!charge.is_stored);
            assert!(charge.is_stored || charge.record.charged_at < oldest, "{:?} is too new", charge.record);
        }
        assert!(gone == removed && gone <= limit, "{gone} of {removed} records are gone");
    }

    /// Sums are kept longer than records.
    async fn prune_sums(&mut self) {
        let stored = self.charges.iter().filter(|charge| charge.is_stored);
        let oldest = stored.map(|charge| charge.record.charged_at.date_naive()).min();
        let oldest = oldest.unwrap_or_else(|| self.stores.clock.now().date_naive());
        let days = i64::try_from(self.draws.below(10)).unwrap();
        let before = oldest.and_time(NaiveTime::MIN).and_utc() - TimeDelta::days(days);
        self.stores.maintenance.prune_sums(before, MANY).await.unwrap();
        for charge in &mut self.charges {
            charge.is_summed &= charge.record.charged_at >= before;
        }
    }

    /// Reads a list page by page while others write.
    async fn walk(&mut self) {
        let (mut filter, limit) = (self.draw_filter(), 1 + self.draws.below(6));
        // New records belong to later pages, too: with writes beside every page, a walk of short pages need not end.
        let mut writes = 20;
        let whole = self.stores.usage.list(&filter, MANY).await.unwrap();
        let mut walked: Vec<UsageRecord> = Vec::new();
        loop {
            let page = self.stores.usage.list(&filter, limit).await.unwrap();
            assert!(page.len() as u64 <= limit);
            let Some(last) = page.last() else { break };
            filter.after = Some((last.charged_at, last.id.clone()));
            walked.extend(page);
            if writes > 0 {
                writes -= 1;
                self.fold_new().await;
            }
        }
        let mut ids: Vec<_> = walked.iter().map(|record| record.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), walked.len(), "a record is repeated");
        walked.retain(|record| whole.contains(record));
        assert_eq!(walked, whole, "pages of {limit}");
    }

    fn draw_workspaces(&mut self) -> Option<Vec<WorkspaceId>> {
        match self.draws.below(8) {
            0 => Some(Vec::new()),
            1 => Some(vec![workspace_id(2)]),
            2 => Some(vec![workspace_id(9), workspace_id(1)]),
            _ => None,
        }
    }

    fn draw_key(&mut self) -> Option<ApiKeyId> {
        let key = self.draws.below(2 * KEYS);
        (key < KEYS).then(|| key_id(key + 1))
    }

    fn draw_text(&mut self, name: &str) -> Option<String> {
        (self.draws.below(4) == 0).then(|| format!("{name}-{}", self.draws.below(3)))
    }

    fn draw_day(&mut self) -> NaiveDate {
        let days = i64::try_from(self.draws.below(60)).unwrap();
        (self.stores.clock.now() - TimeDelta::days(days)).date_naive()
    }

    fn draw_filter(&mut self) -> UsageFilter {
        let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        let mut time = || (self.draws.below(3) == 0).then(|| start(self.draw_day()));
        let (since, until): (Option<DateTime<Utc>>, _) = (time(), time());
        UsageFilter {
            workspaces: self.draw_workspaces(),
            api_key: self.draw_key(),
            model: self.draw_text("acme/m"),
            provider: self.draw_text("p"),
            user: self.draw_text("u"),
            outcome: (self.draws.below(4) == 0).then_some(UsageOutcome::Abandoned),
            since,
            until,
            ..UsageFilter::default()
        }
    }

    /// Compares the records of a filter, and the number that is read for it.
    async fn compare_list(&mut self, case: &str) {
        let filter = self.draw_filter();
        let is = |wanted: &Option<String>, value: Option<&str>| wanted.is_none() || wanted.as_deref() == value;
        let mut expected: Vec<UsageRecord> =
            self.charges.iter().filter(|charge| charge.is_stored).map(|charge| charge.record.clone()).collect();
        expected.sort_by(|a, b| (b.charged_at, &b.id).cmp(&(a.charged_at, &a.id)));
        expected.retain(|record| {
            filter.workspaces.as_ref().is_none_or(|ids| ids.contains(&record.workspace_id))
                && filter.api_key.is_none_or(|key| key == record.api_key)
                && filter.since.is_none_or(|since| record.charged_at >= since)
                && filter.until.is_none_or(|until| record.charged_at < until)
        });
        let read = self.stores.usage.count_read(&filter, MANY).await.unwrap();
        assert_eq!(read, expected.len() as u64, "{filter:?} after {case}");
        expected.retain(|record| {
            is(&filter.model, Some(record.model.as_str()))
                && is(&filter.provider, Some(&record.provider))
                && is(&filter.user, record.user.as_deref())
                && filter.outcome.is_none_or(|outcome| outcome == record.outcome)
        });
        let listed = self.stores.usage.list(&filter, MANY).await.unwrap();
        assert_eq!(listed, expected, "{filter:?} after {case}");
    }

    /// Compares the sums of a query, and their total.
    async fn compare_sums(&mut self, case: &str) {
        let place = |draw: u64| usize::try_from(draw).unwrap();
        let mut groups: Vec<UsageGroup> =
            (0..self.draws.below(3)).map(|_| UsageGroup::ALL[place(self.draws.below(6))]).collect();
        groups.dedup();
        let query = UsageSumQuery {
            groups,
            workspaces: self.draw_workspaces(),
            api_key: self.draw_key(),
            model: self.draw_text("acme/m"),
            provider: self.draw_text("p"),
            user: (self.draws.below(4) == 0).then(|| "u-1".to_owned()),
            since: self.draw_day(),
            until: self.draw_day() + TimeDelta::days(20),
            ..UsageSumQuery::default()
        };
        let mut expected: BTreeMap<Vec<Option<String>>, UsageTotals> = BTreeMap::new();
        for charge in &self.charges {
            let exists = if query.needs_records() { charge.is_stored } else { charge.is_summed };
            if exists && is_queried(&charge.record, &query) {
                let row = row_of(&charge.record);
                let sum = expected.entry(names(&row, &query.groups)).or_default();
                *sum = sum.checked_add(row.totals).unwrap();
            }
        }
        let rows = self.stores.usage.sum(&query, MANY).await.unwrap();
        let found: BTreeMap<_, _> = rows.iter().map(|row| (names(row, &query.groups), row.totals)).collect();
        assert_eq!((found.len(), &found), (rows.len(), &expected), "{query:?} after {case}");
        for row in &rows {
            let key = row.api_key.map(|key| (1..=KEYS).find(|number| key_id(*number) == key).unwrap());
            assert_eq!(row.key_name, key.map(|number| format!("key {number} ✓")), "deleted keys keep their names");
        }
        // A query of users needs records, and its total is that of the records.
        let whole = UsageSumQuery { groups: Vec::new(), ..query.clone() };
        if whole.needs_records() == query.needs_records() {
            let total = rows.iter().try_fold(UsageTotals::default(), |total, row| total.checked_add(row.totals));
            let found = self.stores.usage.sum(&whole, MANY).await.unwrap();
            let found = found.first().map_or_else(UsageTotals::default, |row| row.totals);
            assert_eq!(found, total.unwrap(), "{query:?} after {case}");
        }
    }
}

fn is_queried(record: &UsageRecord, query: &UsageSumQuery) -> bool {
    let is = |wanted: &Option<String>, value: Option<&str>| wanted.is_none() || wanted.as_deref() == value;
    (query.since..query.until).contains(&record.charged_at.date_naive())
        && query.workspaces.as_ref().is_none_or(|ids| ids.contains(&record.workspace_id))
        && query.api_key.is_none_or(|key| key == record.api_key)
        && is(&query.model, Some(record.model.as_str()))
        && is(&query.provider, Some(&record.provider))
        && is(&query.user, record.user.as_deref())
}

/// Returns the row of a single record, with the members of every group.
fn row_of(record: &UsageRecord) -> UsageSum {
    UsageSum {
        day: Some(record.charged_at.date_naive()),
        workspace_id: Some(record.workspace_id),
        api_key: Some(record.api_key),
        model: Some(record.model.to_string()),
        provider: Some(record.provider.clone()),
        user: record.user.clone(),
        totals: UsageTotals {
            requests: 1,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            cost: record.cost,
        },
        ..UsageSum::default()
    }
}

/// Returns the members of the groups.
fn names(row: &UsageSum, groups: &[UsageGroup]) -> Vec<Option<String>> {
    let name = |group: &UsageGroup| match group {
        UsageGroup::Day => row.day.map(|day| day.to_string()),
        UsageGroup::Workspace => row.workspace_id.map(|id| id.to_string()),
        UsageGroup::Key => row.api_key.map(|key| key.to_string()),
        UsageGroup::Model => row.model.clone(),
        UsageGroup::Provider => row.provider.clone(),
        UsageGroup::User => row.user.clone(),
    };
    groups.iter().map(name).collect()
}

//! `tollgate usage sum`

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use domain::ids::ApiKeyId;
use domain::money::Usd;
use domain::usage::{RecordTime, UsageFilter, UsageRecord};

use super::Context;
use crate::output::table;
use crate::view::{UsageSumView, UsageSumsView, UsageTotalsView, UsdNumber};
use crate::wiring::Stores;

/// Records per page.
const PAGE: u64 = 1000;

/// A property that usage records are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordGroup {
    /// The key.
    Key,
    /// The model.
    Model,
    /// The UTC day of the charge.
    Day,
}

/// A sum of usage records. Sums of 64-bit amounts do not overflow it.
#[derive(Debug, Clone, Copy, Default)]
struct UsageTotals {
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_pico: i128,
}

impl UsageTotals {
    fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_pico += other.cost_pico;
    }

    fn view(self) -> anyhow::Result<UsageTotalsView> {
        let pico = i64::try_from(self.cost_pico).context("the sum of the costs exceeds the range of amounts")?;
        Ok(UsageTotalsView {
            requests: self.requests,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost: UsdNumber(Usd::from_pico(pico)),
        })
    }
}

impl From<&UsageRecord> for UsageTotals {
    fn from(record: &UsageRecord) -> Self {
        Self {
            requests: 1,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            cost_pico: record.cost.pico().into(),
        }
    }
}

/// Prints the sums of the records that match the filter, the highest cost or the earliest day first. The filter selects
/// by the time of the charge, so that every day is complete and the groups of a period have one total.
pub async fn sum(
    context: &Context,
    stores: &Stores,
    mut filter: UsageFilter,
    by: RecordGroup,
) -> anyhow::Result<ExitCode> {
    filter.time = RecordTime::Charged;
    let mut groups: BTreeMap<String, UsageTotals> = BTreeMap::new();
    loop {
        let page = stores.usage.list(&filter, PAGE).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some((filter.time.of(last), last.id.clone()));
        for record in &page {
            groups.entry(group_of(record, by)).or_default().add(record.into());
        }
    }
    let mut total = UsageTotals::default();
    for sum in groups.values() {
        total.add(*sum);
    }
    let mut data = Vec::with_capacity(groups.len());
    for (group, sum) in ordered(groups, by) {
        let name = if by == RecordGroup::Key { key_name(stores, &group).await? } else { None };
        data.push(UsageSumView { group, name, sum: sum.view()? });
    }
    let view = UsageSumsView { by: word(by), data, total: total.view()? };
    context.output.show(&view, || describe(&view, by))?;
    Ok(ExitCode::SUCCESS)
}

fn group_of(record: &UsageRecord, by: RecordGroup) -> String {
    match by {
        RecordGroup::Key => record.api_key.to_string(),
        RecordGroup::Model => record.model.to_string(),
        RecordGroup::Day => record.charged_at.date_naive().to_string(),
    }
}

fn ordered(groups: BTreeMap<String, UsageTotals>, by: RecordGroup) -> Vec<(String, UsageTotals)> {
    let mut groups: Vec<(String, UsageTotals)> = groups.into_iter().collect();
    if by != RecordGroup::Day {
        groups.sort_by_key(|(_, sum)| Reverse(sum.cost_pico));
    }
    groups
}

async fn key_name(stores: &Stores, id: &str) -> anyhow::Result<Option<String>> {
    let Ok(id) = id.parse::<ApiKeyId>() else { return Ok(None) };
    Ok(stores.keys.find(&id.into()).await?.map(|key| key.name.as_str().to_owned()))
}

fn word(by: RecordGroup) -> &'static str {
    match by {
        RecordGroup::Key => "key",
        RecordGroup::Model => "model",
        RecordGroup::Day => "day",
    }
}

fn describe(view: &UsageSumsView, by: RecordGroup) -> String {
    let row = |group: &str, name: &str, sum: &UsageTotalsView| {
        let [requests, input, output, cost] = sum.cells();
        [group.to_owned(), requests, input, output, cost, name.to_owned()]
    };
    let mut rows: Vec<[String; 6]> =
        view.data.iter().map(|one| row(&one.group, one.name.as_deref().unwrap_or_default(), &one.sum)).collect();
    rows.push(row("total", "", &view.total));
    let (group, name) = match by {
        RecordGroup::Key => ("KEY", "NAME"),
        RecordGroup::Model => ("MODEL", ""),
        RecordGroup::Day => ("DAY", ""),
    };
    table([group, "REQUESTS", "IN", "OUT", "COST USD", name], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(cost_pico: i128) -> UsageTotals {
        UsageTotals { requests: 1, input_tokens: 2, output_tokens: 3, cost_pico }
    }

    #[test]
    fn sum_is_exact_and_bounded() {
        let mut sum = totals(1);
        sum.add(totals(9_007_199_254_740_993));
        assert_eq!(sum.view().unwrap().cells(), ["2", "4", "6", "9007.199254740994"]);
        sum.add(totals(i64::MAX.into()));
        assert!(sum.view().unwrap_err().to_string().contains("exceeds"));
    }

    #[test]
    fn groups_are_ordered_by_cost_and_days_by_date() {
        let groups = || BTreeMap::from([("2027-01-01".to_owned(), totals(1)), ("2027-01-02".to_owned(), totals(2))]);
        let names = |by| ordered(groups(), by).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(RecordGroup::Day), ["2027-01-01", "2027-01-02"]);
        assert_eq!(names(RecordGroup::Model), ["2027-01-02", "2027-01-01"]);
    }
}

//! Sums of usage a day, or of records.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, NaiveTime};
use domain::error::StoreError;
use domain::money::Usd;
use domain::usage::{UsageGroup, UsageSum, UsageSumQuery, UsageTotals};
use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::ids;
use crate::convert::{key_column, key_id, millis};
use crate::errors::corrupt;
use crate::statements::{column, list, pieces, read};

/// The divisor that splits picodollars into two parts, so that no sum overflows.
const MILLION: i128 = 1_000_000;

/// Implements the port.
pub(super) async fn read_sums(
    connection: &impl ConnectionTrait,
    query: &UsageSumQuery,
    limit: u64,
) -> Result<Vec<UsageSum>, StoreError> {
    let (text, values) = statement(query, limit);
    let found = read(connection, &text, values).await?;
    let mut rows = found.iter().map(|row| to_sum(row, &query.groups)).collect::<Result<Vec<_>, _>>()?;
    add_names(connection, &mut rows).await?;
    Ok(rows)
}

fn statement(query: &UsageSumQuery, limit: u64) -> (String, Vec<Value>) {
    let needs_records = query.needs_records();
    let day = if needs_records { "charged_at - charged_at % 86400000" } else { "day" };
    let group = |group: &UsageGroup| match group {
        UsageGroup::Day => day,
        UsageGroup::Workspace => "workspace_id",
        UsageGroup::Key => "api_key",
        UsageGroup::Model => "model",
        UsageGroup::Provider => "provider",
        UsageGroup::User => "\"user\"",
    };
    let groups: Vec<&str> = query.groups.iter().map(group).collect();
    let (table, time, requests) = if needs_records {
        ("usage_records", "charged_at", "COUNT(*)")
    } else {
        ("usage_sums", "day", "SUM(requests)")
    };
    let sums = format!(
        "CAST({requests} AS bigint), CAST(SUM(input_tokens) AS bigint), CAST(SUM(output_tokens) AS bigint), \
         CAST(SUM(cost_pico / {MILLION}) AS bigint), CAST(SUM(cost_pico % {MILLION}) AS bigint)"
    );
    let mut conditions = vec![format!("{time} >= ? AND {time} < ?")];
    // Rows after one of a later day need no earlier ones.
    let after_day = query.after.as_ref().filter(|_| query.groups.first() == Some(&UsageGroup::Day));
    let since = after_day.and_then(|row| row.day).unwrap_or(query.since);
    let mut values = vec![start_of(since), start_of(query.until)];
    if let Some(workspaces) = &query.workspaces {
        // An empty list would be a syntax error; null is in no list.
        let ids = if workspaces.is_empty() { "NULL".to_owned() } else { list(workspaces.len()) };
        conditions.push(format!("workspace_id IN ({ids})"));
        values.extend(workspaces.iter().map(|id| Value::from(ids::workspace_column(*id))));
    }
    let texts = [("model", &query.model), ("provider", &query.provider), ("\"user\"", &query.user)];
    if let Some(key) = query.api_key {
        conditions.push("api_key = ?".to_owned());
        values.push(key_column(key).into());
    } else if !needs_records {
        let needs_keys = query.groups.contains(&UsageGroup::Key);
        conditions.push(format!("api_key {} ?", if needs_keys { "<>" } else { "=" }));
        values.push(ids::ALL_KEYS.into());
    }
    for (name, text) in texts {
        if let Some(text) = text {
            conditions.push(format!("{name} = ?"));
            values.push(text.as_str().into());
        }
    }
    if let Some(row) = &query.after {
        let (condition, of_row) = after(row, &query.groups, &groups);
        conditions.push(condition);
        values.extend(of_row);
    }
    let names = groups.join(", ");
    // Stores differ in the place of nulls, which are end users only.
    let ordered = names.replace("\"user\"", "(\"user\" IS NOT NULL), \"user\"");
    let (columns, by, order) = if groups.is_empty() {
        Default::default()
    } else {
        (format!("{names}, "), format!(" GROUP BY {names}"), format!(" ORDER BY {ordered}"))
    };
    let conditions = conditions.join(" AND ");
    let text =
        format!("SELECT {columns}{sums} FROM {table} WHERE {conditions}{by} HAVING {requests} <> 0{order} LIMIT ?");
    values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    (text, values)
}

fn start_of(day: NaiveDate) -> Value {
    millis(day.and_time(NaiveTime::MIN).and_utc()).into()
}

/// Returns the condition of the rows after this one, with its values. `names` are the columns of the groups, in which
/// nulls come first.
fn after(row: &UsageSum, groups: &[UsageGroup], names: &[&str]) -> (String, Vec<Value>) {
    let value = |group: &UsageGroup| match group {
        UsageGroup::Day => row.day.map(start_of),
        UsageGroup::Workspace => row.workspace_id.map(|id| ids::workspace_column(id).into()),
        UsageGroup::Key => row.api_key.map(|id| key_column(id).into()),
        UsageGroup::Model => row.model.as_deref().map(Value::from),
        UsageGroup::Provider => row.provider.as_deref().map(Value::from),
        UsageGroup::User => row.user.as_deref().map(Value::from),
    };
    let (mut equal, mut values_before): (String, Vec<Value>) = (String::new(), Vec::new());
    let (mut alternatives, mut values) = (vec!["1 = 0".to_owned()], Vec::new());
    for (group, name) in groups.iter().zip(names) {
        let value = value(group);
        let (greater, same) = if value.is_some() { ("> ?", "= ?") } else { ("IS NOT NULL", "IS NULL") };
        alternatives.push(format!("{equal}{name} {greater}"));
        equal = format!("{equal}{name} {same} AND ");
        values.extend(values_before.iter().cloned().chain(value.clone()));
        values_before.extend(value);
    }
    (format!("({})", alternatives.join(" OR ")), values)
}

fn to_sum(row: &QueryResult, groups: &[UsageGroup]) -> Result<UsageSum, StoreError> {
    const TABLE: &str = "usage_sums";
    let mut sum = UsageSum::default();
    for (place, group) in groups.iter().enumerate() {
        match group {
            UsageGroup::Day => {
                let day = DateTime::from_timestamp_millis(column(row, place)?);
                sum.day = Some(day.ok_or_else(|| corrupt("usage_sums.day", TABLE))?.date_naive());
            }
            UsageGroup::Workspace => {
                let id = ids::workspace_id(&column::<Vec<u8>>(row, place)?);
                sum.workspace_id = Some(id.ok_or_else(|| corrupt("usage_sums.workspace_id", TABLE))?);
            }
            UsageGroup::Key => {
                sum.api_key = Some(key_id(&column::<Vec<u8>>(row, place)?, "usage_sums.api_key", TABLE)?);
            }
            UsageGroup::Model => sum.model = Some(column(row, place)?),
            UsageGroup::Provider => sum.provider = Some(column(row, place)?),
            UsageGroup::User => sum.user = column(row, place)?,
        }
    }
    let first = groups.len();
    let count = |place: usize| {
        column::<i64>(row, place).and_then(|count| u64::try_from(count).map_err(|_| corrupt("usage_sums", TABLE)))
    };
    let pico = i128::from(column::<i64>(row, first + 3)?) * MILLION + i128::from(column::<i64>(row, first + 4)?);
    let cost = i64::try_from(pico)
        .map_err(|_| StoreError::Corrupt("a sum of usage exceeds the range of amounts".to_owned()))?;
    sum.totals = UsageTotals {
        requests: count(first)?,
        input_tokens: count(first + 1)?,
        output_tokens: count(first + 2)?,
        cost: Usd::from_pico(cost),
    };
    Ok(sum)
}

/// Adds the names of keys, deleted or not, and of workspaces.
async fn add_names(connection: &impl ConnectionTrait, rows: &mut [UsageSum]) -> Result<(), StoreError> {
    let mut keys: Vec<_> = rows.iter().filter_map(|row| row.api_key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut key_names = HashMap::new();
    for piece in pieces(&keys) {
        let text = format!("SELECT id, name FROM api_keys WHERE id IN ({})", list(piece.len()));
        let values = piece.iter().map(|id| key_column(*id).into()).collect();
        for row in read(connection, &text, values).await? {
            key_names
                .insert(key_id(&column::<Vec<u8>>(&row, 0)?, "api_keys.id", "api_keys")?, column::<String>(&row, 1)?);
        }
    }
    let mut workspaces: Vec<_> = rows.iter().filter_map(|row| row.workspace_id).collect();
    workspaces.sort_unstable();
    workspaces.dedup();
    let mut workspace_names = HashMap::new();
    for piece in pieces(&workspaces) {
        let text = format!("SELECT id, name FROM workspaces WHERE id IN ({})", list(piece.len()));
        let values = piece.iter().map(|id| id.to_string().into()).collect();
        for row in read(connection, &text, values).await? {
            workspace_names.insert(column::<String>(&row, 0)?, column::<String>(&row, 1)?);
        }
    }
    for row in rows {
        row.key_name = row.api_key.and_then(|id| key_names.get(&id).cloned());
        row.workspace_name = row.workspace_id.and_then(|id| workspace_names.get(&id.to_string()).cloned());
    }
    Ok(())
}

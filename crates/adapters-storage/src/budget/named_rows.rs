//! Rows that are named by a counter, many at a time.
//!
//! The driver of SQLite hands over each bound value and each returned row by itself, which costs more than to look them up.
//! So on SQLite a list of rows is one JSON text, in both directions. PostgreSQL takes and returns plain rows.

use std::fmt::Write as _;

use domain::budget::allowances::CounterId;
use domain::error::StoreError;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use super::counters::{span_of, subject};
use super::statements::{column, pieces, places, read, run};
use crate::errors::corrupt;

/// Most rows of a JSON text.
const JSON_ROWS: usize = 1024;

/// The name of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowName {
    pub(super) scope: &'static str,
    /// UUIDs and a colon: nothing that JSON escapes.
    pub(super) subject: String,
    pub(super) interval: &'static str,
    pub(super) period_start: i64,
}

impl RowName {
    pub(super) fn of(counter: &CounterId) -> Self {
        let (interval, period_start) = span_of(counter);
        let account = &counter.account;
        Self { scope: account.scope().as_str(), subject: subject(account), interval, period_start }
    }

    fn values(&self) -> [Value; 4] {
        [self.scope.into(), self.subject.as_str().into(), self.interval.into(), self.period_start.into()]
    }
}

/// A table whose rows are named by a counter, and by a process if it has one for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedTable<'a> {
    pub(super) name: &'a str,
    pub(super) process: Option<&'a str>,
}

/// The columns of rows, each at the index of its name; `None` for a row that does not exist.
type Found<const N: usize> = Vec<Option<[Option<i64>; N]>>;

/// The columns of a name.
const NAME: &str = "scope, subject, \"interval\", period_start";

impl NamedTable<'_> {
    /// Reads columns of the rows with these names, each at the index of its name. `None` for a row that does not exist.
    pub(super) async fn read<const N: usize>(
        self,
        connection: &impl ConnectionTrait,
        columns: [&str; N],
        names: &[RowName],
    ) -> Result<Found<N>, StoreError> {
        let mut found = Vec::with_capacity(names.len());
        if connection.get_database_backend() == DbBackend::Sqlite {
            for piece in names.chunks(JSON_ROWS) {
                found.extend(self.read_json(connection, columns, piece).await?);
            }
        } else {
            for piece in pieces(names) {
                found.extend(self.read_rows(connection, columns, piece).await?);
            }
        }
        Ok(found)
    }

    async fn read_json<const N: usize>(
        self,
        connection: &impl ConnectionTrait,
        columns: [&str; N],
        names: &[RowName],
    ) -> Result<Found<N>, StoreError> {
        let text = self.json_query(columns);
        let values = [json(names, &[[]; 0]).into()].into_iter().chain(self.process_value()).collect();
        let rows = read(connection, &text, values).await?;
        let list: String = rows.first().map_or(Ok(String::new()), |row| column(row, 0))?;
        let unreadable = || corrupt(self.name, "a row that is no number");
        let list: Vec<Vec<Option<i64>>> = serde_json::from_str(&list).map_err(|_| unreadable())?;
        let mut found = vec![None; names.len()];
        for row in list {
            let (place, amounts) = row.split_first().ok_or_else(unreadable)?;
            let place = place.and_then(|place| usize::try_from(place).ok()).ok_or_else(unreadable)?;
            *found.get_mut(place).ok_or_else(unreadable)? = Some(amounts.try_into().map_err(|_| unreadable())?);
        }
        Ok(found)
    }

    /// Returns the query of a JSON text of names.
    fn json_query<const N: usize>(self, columns: [&str; N]) -> String {
        // `CROSS JOIN` makes SQLite look up each row instead of scanning the table.
        format!(
            "SELECT json_group_array(json_array(a.key, {})) FROM json_each(?) AS a CROSS JOIN {} AS c \
             WHERE c.scope = a.value ->> 0 AND c.subject = a.value ->> 1 AND c.\"interval\" = a.value ->> 2 \
             AND c.period_start = a.value ->> 3{}",
            of_c(columns),
            self.name,
            self.of_process()
        )
    }

    async fn read_rows<const N: usize>(
        self,
        connection: &impl ConnectionTrait,
        columns: [&str; N],
        names: &[RowName],
    ) -> Result<Found<N>, StoreError> {
        // A found row returns the index of its name, which is smaller than the name.
        let text = format!(
            "SELECT a.column5, {} FROM (VALUES {}) AS a CROSS JOIN {} AS c WHERE c.scope = a.column1 \
             AND c.subject = a.column2 AND c.\"interval\" = a.column3 AND c.period_start = a.column4{}",
            of_c(columns),
            places(names.len(), 5),
            self.name,
            self.of_process()
        );
        let numbered =
            names.iter().zip(0_i64..).flat_map(|(name, place)| name.values().into_iter().chain([place.into()]));
        let mut found = vec![None; names.len()];
        for row in read(connection, &text, numbered.chain(self.process_value()).collect()).await? {
            let place: i64 = column(&row, 0)?;
            let place = usize::try_from(place).ok().and_then(|place| found.get_mut(place));
            *place.ok_or_else(|| corrupt(self.name, "an index"))? = Some(numbers(&row)?);
        }
        Ok(found)
    }

    /// Inserts rows with these columns, or updates the columns of those that exist.
    pub(super) async fn write<const N: usize>(
        self,
        connection: &impl ConnectionTrait,
        columns: [&str; N],
        names: &[RowName],
        amounts: &[[i64; N]],
    ) -> Result<(), StoreError> {
        let process = self.process.map_or("", |_| "process_id, ");
        let set: Vec<String> = columns.iter().map(|column| format!("{column} = excluded.{column}")).collect();
        let (list, set) = (columns.join(", "), set.join(", "));
        let insert = format!("INSERT INTO {} ({process}{NAME}, {list})", self.name);
        let update = format!("ON CONFLICT ({process}{NAME}) DO UPDATE SET {set}");
        if connection.get_database_backend() == DbBackend::Sqlite {
            let process = self.process.map_or("", |_| "?, ");
            let members: Vec<String> = (0..4 + N).map(|place| format!("value ->> {place}")).collect();
            // Without `WHERE`, SQLite takes `ON` for a part of the join.
            let text = format!("{insert} SELECT {process}{} FROM json_each(?) WHERE true {update}", members.join(", "));
            for (names, amounts) in names.chunks(JSON_ROWS).zip(amounts.chunks(JSON_ROWS)) {
                let values = self.process_value().into_iter().chain([json(names, amounts).into()]).collect();
                run(connection, &text, values).await?;
            }
            return Ok(());
        }
        for (names, amounts) in pieces(names).zip(pieces(amounts)) {
            let width = 4 + N + usize::from(self.process.is_some());
            let text = format!("{insert} VALUES {} {update}", places(names.len(), width));
            let rows = names.iter().zip(amounts).flat_map(|(name, amounts)| {
                self.process_value()
                    .into_iter()
                    .chain(name.values())
                    .chain(amounts.iter().map(|amount| (*amount).into()))
            });
            run(connection, &text, rows.collect()).await?;
        }
        Ok(())
    }

    /// Returns the condition of the process.
    fn of_process(self) -> &'static str {
        self.process.map_or("", |_| " AND c.process_id = ?")
    }

    fn process_value(self) -> Option<Value> {
        self.process.map(Value::from)
    }
}

/// Returns columns of the table `c`.
fn of_c<const N: usize>(columns: [&str; N]) -> String {
    columns.map(|column| format!("c.{column}")).join(", ")
}

/// Reads the numbers after the first column.
fn numbers<const N: usize>(row: &QueryResult) -> Result<[Option<i64>; N], StoreError> {
    let mut numbers = [None; N];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = column(row, place + 1)?;
    }
    Ok(numbers)
}

/// Returns the names as a JSON array of arrays, each followed by its amounts.
fn json<const N: usize>(names: &[RowName], amounts: &[[i64; N]]) -> String {
    let mut text = String::with_capacity(names.len() * 96);
    for (place, RowName { scope, subject, interval, period_start }) in names.iter().enumerate() {
        text.push(if place == 0 { '[' } else { ',' });
        // Writing to a string does not fail.
        let _ = write!(text, "[\"{scope}\",\"{subject}\",\"{interval}\",{period_start}");
        for amount in amounts.get(place).into_iter().flatten() {
            let _ = write!(text, ",{amount}");
        }
        text.push(']');
    }
    text.push_str(if names.is_empty() { "[]" } else { "]" });
    text
}

#[cfg(test)]
mod tests {
    use migrations::{Migrator, MigratorTrait};
    use sea_orm::{Database, DatabaseConnection};

    use super::*;

    const COUNTERS: NamedTable<'static> = NamedTable { name: "spend_counters", process: None };
    const AMOUNTS: [&str; 2] = ["spent_pico", "allotted_pico"];

    async fn sqlite() -> DatabaseConnection {
        let database = Database::connect("sqlite::memory:").await.unwrap();
        Migrator::up(&database, None).await.unwrap();
        database
    }

    fn name(number: usize) -> RowName {
        RowName { scope: "key", subject: format!("{number}:x"), interval: "daily", period_start: -86_400_000 }
    }

    #[tokio::test]
    async fn rows_are_read_as_they_were_written_at_the_index_of_their_name() {
        let database = sqlite().await;
        let ends = [[i64::MAX, 0], [i64::MIN, -1], [0, 9_007_199_254_740_993]];
        let (names, amounts): (Vec<_>, Vec<_>) =
            (0..3_000).map(|number| (name(number), [i64::try_from(number).unwrap(), 7])).unzip();
        COUNTERS.write(&database, AMOUNTS, &names, &amounts).await.unwrap();
        COUNTERS.write(&database, AMOUNTS, &names[..3], &ends).await.unwrap();
        let asked: Vec<RowName> = [2_999, 5_000, 0, 1, 2].map(name).to_vec();
        let found = COUNTERS.read(&database, AMOUNTS, &asked).await.unwrap();
        let [first, second, third] = ends.map(|row| Some(row.map(Some)));
        assert_eq!(found, [Some([Some(2_999), Some(7)]), None, first, second, third]);
        assert_eq!(COUNTERS.read(&database, ["recalled_at"], &asked[..2]).await.unwrap(), [Some([None]), None]);
        assert_eq!(COUNTERS.read(&database, AMOUNTS, &[]).await.unwrap(), []);
    }

    #[tokio::test]
    async fn rows_of_other_processes_are_left_alone() {
        let database = sqlite().await;
        let of = |process| NamedTable { name: "allowances", process: Some(process) };
        of("a").write(&database, ["amount_pico"], &[name(1), name(2)], &[[5], [6]]).await.unwrap();
        of("b").write(&database, ["amount_pico"], &[name(1)], &[[7]]).await.unwrap();
        let names = [name(1), name(2)];
        assert_eq!(of("a").read(&database, ["amount_pico"], &names).await.unwrap(), [Some([Some(5)]), Some([Some(6)])]);
        assert_eq!(of("b").read(&database, ["amount_pico"], &names).await.unwrap(), [Some([Some(7)]), None]);
    }

    #[tokio::test]
    async fn each_row_is_looked_up_by_its_whole_key() {
        let database = sqlite().await;
        let whole = "scope=? AND subject=? AND interval=? AND period_start=?";
        for (table, values) in [
            (COUNTERS, vec!["[]".into()]),
            (NamedTable { name: "allowances", process: Some("a") }, vec!["[]".into(), "a".into()]),
        ] {
            let plan = format!("EXPLAIN QUERY PLAN {}", table.json_query(["period_start"]));
            let rows = read(&database, &plan, values).await.unwrap();
            let steps: Vec<String> = rows.iter().map(|row| column(row, 3).unwrap()).collect();
            assert!(steps.iter().any(|step| step.starts_with("SEARCH c") && step.contains(whole)), "{steps:?}");
        }
    }

    #[tokio::test]
    async fn damaged_amount_is_corrupt() {
        let database = sqlite().await;
        COUNTERS.write(&database, AMOUNTS, &[name(1)], &[[1, 2]]).await.unwrap();
        run(&database, "UPDATE spend_counters SET spent_pico = 'much'", Vec::new()).await.unwrap();
        let found = COUNTERS.read(&database, AMOUNTS, &[name(1)]).await;
        assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
    }
}

//! The tables of a store, in an order in which rows follow the rows that they refer to.

use sea_orm::sea_query::{Expr, ExprTrait, Order, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ColumnType, ConnectionTrait, EntityTrait, IdenStatic, Iterable, PrimaryKeyToColumn, QueryResult, Value,
};

use super::row::{Column, Kind, Row, UnreadableRow};
use crate::entities::{
    api_keys, audit_log, audit_state, budget_processes, change_feed, changes, destination_pauses, destinations,
    documents, guardrail_versions, guardrails, idempotency_claims, idempotent_requests, models, outbox,
    preset_versions, presets, provider_pauses, record_bytes, rejections, spend_counters, store_identity, usage_records,
    workspaces,
};
use crate::errors::store_error;

/// Most rows of a batch.
const BATCH_ROWS: usize = 1000;
/// Most rows of a batch of large rows.
const LARGE_BATCH_ROWS: usize = 16;
/// Most values of a statement: SQLite permits 32,766.
const MAX_VALUES: usize = 32_000;

/// A table. The columns of the primary key come first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    key_length: usize,
    /// Most rows of a batch.
    pub(super) batch_rows: usize,
}

/// Tables that migrations and imports of the catalogue fill: a store with rows only in these holds no instance.
pub(super) const REPLACEABLE: [&str; 6] =
    ["store_identity", "change_feed", "changes", "audit_log", "audit_state", "models"];

/// Returns all tables with data of an instance. Rows refer only to rows of earlier tables.
pub(super) fn tables() -> Vec<Table> {
    vec![
        of_entity::<store_identity::Entity>(),
        of_entity::<workspaces::Entity>(),
        of_entity::<guardrails::Entity>(),
        of_entity::<guardrail_versions::Entity>(),
        of_entity::<api_keys::Entity>(),
        of_entity::<documents::Entity>(),
        of_entity::<idempotency_claims::Entity>(),
        of_entity::<idempotent_requests::Entity>(),
        of_entity::<models::Entity>(),
        of_entity::<provider_pauses::Entity>(),
        of_entity::<presets::Entity>(),
        Table { batch_rows: LARGE_BATCH_ROWS, ..of_entity::<preset_versions::Entity>() },
        of_entity::<destinations::Entity>(),
        of_entity::<destination_pauses::Entity>(),
        // A message may have 2 MiB.
        Table { batch_rows: LARGE_BATCH_ROWS, ..of_entity::<outbox::Entity>() },
        of_entity::<rejections::Entity>(),
        of_entity::<record_bytes::Entity>(),
        of_entity::<budget_processes::Entity>(),
        amounts("allowances"),
        amounts("adjustments"),
        budget_alerts(),
        usage_sums(),
        of_entity::<spend_counters::Entity>(),
        of_entity::<usage_records::Entity>(),
        evidence_groups(),
        evidence(),
        evidence_labels(),
        of_entity::<audit_log::Entity>(),
        of_entity::<audit_state::Entity>(),
        of_entity::<changes::Entity>(),
        of_entity::<change_feed::Entity>(),
    ]
}

/// Returns the table of an entity.
fn of_entity<E: EntityTrait>() -> Table {
    let key: Vec<E::Column> = E::PrimaryKey::iter().map(PrimaryKeyToColumn::into_column).collect();
    let is_key = |column: &E::Column| key.iter().any(|key| key.as_str() == column.as_str());
    let others = E::Column::iter().filter(|column| !is_key(column));
    let columns = key
        .iter()
        .copied()
        .chain(others)
        .map(|column| Column { name: column.as_str(), kind: kind(column.def().get_column_type()) });
    Table::new(E::default().table_name(), columns.collect(), key.len())
}

fn kind(column: &ColumnType) -> Kind {
    match column {
        ColumnType::BigInteger => Kind::BigInteger,
        ColumnType::Integer => Kind::Integer,
        ColumnType::Boolean => Kind::Boolean,
        ColumnType::Binary(_) | ColumnType::VarBinary(_) | ColumnType::Blob => Kind::Bytes,
        _ => Kind::Text,
    }
}

/// Returns a table of amounts of processes.
fn amounts(name: &'static str) -> Table {
    let text = ["process_id", "scope", "subject", "interval"].map(text);
    let numbers = ["period_start", "amount_pico"].map(number);
    Table::new(name, text.into_iter().chain(numbers).collect(), 5)
}

fn budget_alerts() -> Table {
    let key = ["scope", "subject", "interval"].map(text);
    let numbers = ["period_start", "is_credit", "base_pico", "limit_pico", "threshold"].map(number);
    let others = [text("workspace_id"), number("spent_pico"), number("created_at"), number("published_at")];
    Table::new("budget_alerts", key.into_iter().chain(numbers).chain(others).collect(), 8)
}

fn usage_sums() -> Table {
    let numbers = ["requests", "input_tokens", "output_tokens", "cost_pico"].map(number);
    let key = [number("day")]
        .into_iter()
        .chain(["workspace_id", "api_key"].map(bytes))
        .chain(["model", "provider"].map(text));
    Table::new("usage_sums", key.chain(numbers).collect(), 5)
}

fn evidence_groups() -> Table {
    let ids = ["id", "workspace_id", "preset_id"].map(bytes).into_iter().chain([number("preset_version")]);
    let texts = ["question", "model", "provider", "wire", "method"].map(text);
    Table::new("evidence_groups", ids.chain(texts).collect(), 1)
}

fn evidence() -> Table {
    let key = [bytes("record_id"), number("position")].into_iter();
    let texts = ["decision", "probabilities"].map(text);
    let numbers = ["created_at", "label_version"].map(number);
    let columns = key.chain(["preset_id", "group_id"].map(bytes)).chain(texts).chain(numbers);
    Table::new("evidence", columns.collect(), 2)
}

fn evidence_labels() -> Table {
    let key = [bytes("record_id"), number("position"), number("version")];
    let others = ["value", "source", "created_by"].map(text).into_iter().chain([number("created_at")]);
    Table::new("evidence_labels", key.into_iter().chain(others).collect(), 3)
}

fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

fn number(name: &'static str) -> Column {
    Column { name, kind: Kind::BigInteger }
}

impl Table {
    fn new(name: &'static str, columns: Vec<Column>, key_length: usize) -> Self {
        let batch_rows = BATCH_ROWS.min(MAX_VALUES / columns.len());
        Self { name, columns, key_length, batch_rows }
    }

    fn row(&self, row: &QueryResult) -> Result<Row, UnreadableRow> {
        Row::read(self.name, &self.columns, self.key_length, row)
    }

    /// Returns the columns of the primary key.
    pub(super) fn key(&self) -> &[Column] {
        &self.columns[..self.key_length]
    }

    /// Reads rows in the order of their keys, after a key if one is given.
    pub(super) async fn read_after(
        &self,
        connection: &impl ConnectionTrait,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<Row>, UnreadableRow> {
        let mut select = self.select();
        if let Some(after) = after {
            let key = Expr::tuple(self.key().iter().map(|column| Expr::col(column.name)));
            select.and_where(key.gt(Expr::tuple(after.iter().cloned().map(Expr::value))));
        }
        for column in self.key() {
            select.order_by(column.name, Order::Asc);
        }
        select.limit(u64::try_from(limit).unwrap_or(u64::MAX));
        let found = connection.query_all(&select).await.map_err(store_error)?;
        found.iter().map(|row| self.row(row)).collect()
    }

    /// Reads the row with a key.
    pub(super) async fn read_one(
        &self,
        connection: &impl ConnectionTrait,
        key: &[Value],
    ) -> Result<Option<Row>, UnreadableRow> {
        let mut select = self.select();
        for (column, value) in self.key().iter().zip(key) {
            select.and_where(Expr::col(column.name).eq(value.clone()));
        }
        let found = connection.query_one(&select).await.map_err(store_error)?;
        found.map(|row| self.row(&row)).transpose()
    }

    /// Inserts rows with one statement.
    pub(super) async fn insert(&self, connection: &impl ConnectionTrait, rows: &[Row]) -> Result<(), sea_orm::DbErr> {
        let mut insert = Query::insert();
        insert.into_table(self.name).columns(self.columns.iter().map(|column| column.name));
        for row in rows {
            insert.values_panic(row.values().iter().cloned().map(Expr::value));
        }
        connection.execute(&insert).await.map(drop)
    }

    /// Removes all rows.
    pub(super) async fn clear(&self, connection: &impl ConnectionTrait) -> Result<(), sea_orm::DbErr> {
        connection.execute(Query::delete().from_table(self.name)).await.map(drop)
    }

    /// Counts the rows.
    pub(super) async fn count(&self, connection: &impl ConnectionTrait) -> Result<u64, sea_orm::DbErr> {
        let mut count = Query::select();
        count.expr_as(Expr::cust("count(*)"), "n").from(self.name);
        let row = connection.query_one(&count).await?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get("", "n"))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    fn select(&self) -> SelectStatement {
        Query::select().columns(self.columns.iter().map(|column| column.name)).from(self.name).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use domain::testing::FixedClock;
    use sea_orm::{DbBackend, Statement};

    use super::*;
    use crate::{Database, StorageSettings};

    /// Tables that describe the schema or the copy itself, and the entries of processes that have not ended: a source has
    /// none.
    const NOT_COPIED: [&str; 4] = ["seaql_migrations", "incompatible_migrations", "store_copies", "journal_entries"];

    fn expected(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::BigInteger => &["bigint", "integer"],
            Kind::Integer => &["integer"],
            Kind::Boolean => &["boolean"],
            Kind::Text => &["text"],
            Kind::Bytes => &["blob", "varbinary"],
        }
    }

    async fn schema() -> BTreeMap<String, BTreeMap<String, (String, i64)>> {
        let folder = tempfile::TempDir::new().unwrap();
        let settings = StorageSettings::new(format!("sqlite://{}/a.db", folder.path().display()));
        let database = Database::open(&settings, Arc::new(FixedClock::default())).await.unwrap();
        database.migrate().await.unwrap();
        let text = "SELECT m.name AS t, c.name AS c, lower(c.type) AS k, c.pk AS pk FROM sqlite_master m, \
                    pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
        let query = Statement::from_string(DbBackend::Sqlite, text);
        let mut schema: BTreeMap<String, BTreeMap<String, (String, i64)>> = BTreeMap::new();
        for row in database.readers().unwrap().query_all_raw(query).await.unwrap() {
            let text = |name: &str| row.try_get::<String>("", name).unwrap();
            schema.entry(text("t")).or_default().insert(text("c"), (text("k"), row.try_get("", "pk").unwrap()));
        }
        schema
    }

    #[tokio::test]
    async fn tables_have_every_table_and_column_of_the_schema() {
        let mut schema = schema().await;
        schema.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
        let tables = tables();
        let names: BTreeSet<&str> = tables.iter().map(|table| table.name).collect();
        assert_eq!(names, schema.keys().map(String::as_str).collect::<BTreeSet<_>>());
        assert!(REPLACEABLE.iter().all(|name| names.contains(name)));
        for table in tables {
            let columns = &schema[table.name];
            let found: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(found, columns.keys().map(String::as_str).collect::<BTreeSet<_>>(), "{}", table.name);
            for (place, column) in table.columns.iter().enumerate() {
                let (kind, key) = &columns[column.name];
                let label = format!("{}.{}: {kind}", table.name, column.name);
                assert!(expected(column.kind).iter().any(|name| kind.starts_with(name)), "{label}");
                assert_eq!(place < table.key().len(), *key > 0, "{label}");
            }
        }
    }
}

//! The texts of the statements that every batch runs.

use std::collections::HashMap;

use sea_orm::sea_query::{
    Condition, Expr, ExprTrait, InsertStatement, IntoTableRef, OnConflict, Query, SelectStatement,
};
use sea_orm::{ColumnTrait, DbBackend, Statement, Value};

use crate::entities::{api_keys, reservations, spend_counters, usage_records, workspaces};

/// A statement over a number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Adds usage records, but for those that are there; returns the ids of the added ones.
    InsertUsage,
    /// Adds to counters, and makes those that are missing. A counter that would leave the range is not touched.
    AddToCounters,
    /// Reads counters: the place of each in the list, what is spent, what is reserved.
    ReadCounters,
    /// Ends reservations and returns what they were.
    EndReservations,
    /// Adds reservations, but for those that are there.
    InsertReservations,
    /// Reads the limits of keys and of their workspaces.
    ReadPayers,
}

/// The texts of statements, by number of rows. A connection keeps prepared statements by their text, so each is built
/// and prepared once.
pub(super) struct Texts {
    backend: DbBackend,
    known: HashMap<(Kind, usize), String>,
}

/// What [`Kind::EndReservations`] returns of each.
pub(super) const ENDED: [reservations::Column; 5] = [
    reservations::Column::WorkspaceId,
    reservations::Column::ApiKey,
    reservations::Column::Guardrails,
    reservations::Column::AmountPico,
    reservations::Column::ReservedAt,
];

const PAYER: [api_keys::Column; 4] =
    [api_keys::Column::Hash, api_keys::Column::WorkspaceId, api_keys::Column::LimitPico, api_keys::Column::LimitReset];

const PAYER_WORKSPACE: [workspaces::Column; 6] = [
    workspaces::Column::CreditPico,
    workspaces::Column::CreditBasePico,
    workspaces::Column::BudgetDailyPico,
    workspaces::Column::BudgetWeeklyPico,
    workspaces::Column::BudgetMonthlyPico,
    workspaces::Column::BudgetLifetimePico,
];

impl Texts {
    pub(super) fn new(backend: DbBackend) -> Self {
        Self { backend, known: HashMap::new() }
    }

    /// A statement over `rows` rows with their values, one row after the other.
    pub(super) fn statement(&mut self, kind: Kind, rows: usize, values: impl IntoIterator<Item = Value>) -> Statement {
        let backend = self.backend;
        let text = self.known.entry((kind, rows)).or_insert_with(|| text(backend, kind, rows));
        Statement::from_sql_and_values(backend, text.as_str(), values)
    }
}

/// The values are only places here.
fn text(backend: DbBackend, kind: Kind, rows: usize) -> String {
    let statement = match kind {
        Kind::InsertUsage => {
            let id = usage_records::Column::Id;
            let mut insert = insert::<usage_records::Column>(usage_records::Entity, rows);
            insert.on_conflict(OnConflict::column(id).do_nothing().to_owned()).returning_col(id);
            backend.build(&insert)
        }
        Kind::AddToCounters => {
            let mut insert = insert::<spend_counters::Column>(spend_counters::Entity, rows);
            backend.build(insert.on_conflict(adding()))
        }
        Kind::ReadCounters => backend.build(&read_counters(rows)),
        Kind::EndReservations => {
            let mut delete = Query::delete();
            delete.from_table(reservations::Entity).and_where(reservations::Column::Id.is_in(places(rows)));
            backend.build(delete.returning(Query::returning().columns(ENDED)))
        }
        Kind::InsertReservations => {
            let mut insert = insert::<reservations::Column>(reservations::Entity, rows);
            insert.on_conflict(OnConflict::column(reservations::Column::Id).do_nothing().to_owned());
            backend.build(&insert)
        }
        Kind::ReadPayers => backend.build(&read_payers(rows)),
    };
    statement.sql
}

fn places(count: usize) -> impl Iterator<Item = i32> {
    std::iter::repeat_n(0, count)
}

fn insert<C: ColumnTrait>(table: impl IntoTableRef, rows: usize) -> InsertStatement {
    let mut insert = Query::insert();
    insert.into_table(table).columns(C::iter());
    for _ in 0..rows {
        insert.values_panic(C::iter().map(|_| Expr::val(0)));
    }
    insert
}

/// SQLite would turn a sum beyond 64 bits into a float, so such a row is left alone, which shows in the number of rows
/// that were affected. Other databases refuse it by themselves.
fn adding() -> OnConflict {
    use spend_counters::Column;
    let sum = |column: &str| format!("spend_counters.{column} + excluded.{column}");
    let fits = |column: &str| format!("{} <= {}", sum(column), i64::MAX);
    OnConflict::columns([Column::Scope, Column::Subject, Column::Interval, Column::PeriodStart])
        .values([
            (Column::SpentPico, Expr::cust(sum("spent_pico"))),
            (Column::ReservedPico, Expr::cust(sum("reserved_pico"))),
        ])
        .action_and_where(Expr::cust(fits("spent_pico")).and(Expr::cust(fits("reserved_pico"))))
        .to_owned()
}

/// A list of keys joined with the table: the database looks each up by the primary key.
fn read_counters(rows: usize) -> SelectStatement {
    use spend_counters::{Column, Entity};
    let wanted = |column: &'static str| Expr::col(("wanted", column));
    let mut same = Condition::all();
    for (column, name) in [
        (Column::Scope, "column2"),
        (Column::Subject, "column3"),
        (Column::Interval, "column4"),
        (Column::PeriodStart, "column5"),
    ] {
        same = same.add(Expr::col((Entity, column)).eq(wanted(name)));
    }
    let mut select = Query::select();
    select
        .column(("wanted", "column1"))
        .columns([(Entity, Column::SpentPico), (Entity, Column::ReservedPico)])
        .from_values(std::iter::repeat_n((0, 0, 0, 0, 0), rows), "wanted")
        .inner_join(Entity, same);
    select
}

fn read_payers(rows: usize) -> SelectStatement {
    let keys = |column| Expr::col((api_keys::Entity, column));
    let mut select = Query::select();
    select
        .columns(PAYER.map(|column| (api_keys::Entity, column)))
        .columns(PAYER_WORKSPACE.map(|column| (workspaces::Entity, column)))
        .from(api_keys::Entity)
        .inner_join(
            workspaces::Entity,
            Expr::col((workspaces::Entity, workspaces::Column::Id)).eq(keys(api_keys::Column::WorkspaceId)),
        )
        .and_where(keys(api_keys::Column::Hash).is_in(places(rows)));
    select
}

//! The texts of the statements that every batch runs.

use std::collections::HashMap;
use std::sync::Arc;

use sea_orm::{DbBackend, IdenStatic, Iterable};

use crate::bell::RING;
use crate::entities::{outbox, record_bytes, reservations, spend_counters, usage_records};
use crate::session::FAIL;

/// A statement over a number of rows. A row of nulls changes and returns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Begins a transaction that holds the write lock from its first moment.
    Begin,
    /// Commits it.
    Commit,
    /// Tells whoever waits that everything before has been done. The last one of a text.
    Ring,
    /// Adds usage records. One that is there is an error.
    AddUsage,
    /// Adds usage records, but for those that are there; returns the ids of the added ones.
    AddFreshUsage,
    /// Reads what was charged for records of these ids that are of the outcome `abandoned`.
    FindAbandoned,
    /// Removes usage records.
    RemoveUsage,
    /// Compares reservations with what they are taken to be, where nulls behind an id say that there is none. Another
    /// one is an error.
    CheckReservations,
    /// Ends reservations.
    DropReservations,
    /// Ends reservations and returns what they were.
    EndReservations,
    /// Reads reservations.
    FindReservations,
    /// Adds reservations. One that is there is an error.
    AddReservations,
    /// Writes what reservations come to anew.
    ReplaceReservations,
    /// Reads the limits of keys and of their workspaces.
    ReadPayers,
    /// Reads the budgets of guardrails that have one.
    ReadBudgets,
    /// Reads the counters of accounts, in total and for the day, the week and the month whose beginnings stand behind the
    /// rows: the place of the account, that of the span, what is spent, what is reserved.
    ReadAccounts,
    /// Adds to the same counters of accounts, and makes those that are missing. A sum that leaves the range is an error.
    AddToAccounts,
    /// Adds to single counters, likewise.
    AddToCounters,
    /// Adds messages to the outbox, but for those that are there.
    AddMessages,
    /// Adds bytes of records to their workspaces' days. A later day begins at zero; an earlier one counts in the later.
    AddRecordBytes,
}

impl Kind {
    /// Values of a row, and behind all rows.
    fn width(self) -> (usize, usize) {
        match self {
            Self::Begin | Self::Commit | Self::Ring => (0, 0),
            Self::AddUsage | Self::AddFreshUsage => (25, 0),
            Self::FindAbandoned
            | Self::RemoveUsage
            | Self::DropReservations
            | Self::EndReservations
            | Self::FindReservations
            | Self::ReadPayers
            | Self::ReadBudgets => (1, 0),
            Self::AddReservations | Self::ReplaceReservations => (10, 0),
            Self::ReadAccounts => (3, 3),
            Self::AddToAccounts => (4, 3),
            Self::CheckReservations | Self::AddToCounters => (6, 0),
            Self::AddMessages => (8, 0),
            Self::AddRecordBytes => (3, 0),
        }
    }

    /// Values of so many rows.
    pub(super) fn values(self, rows: usize) -> usize {
        let (row, last) = self.width();
        row * rows + last
    }
}

/// What [`Kind::EndReservations`] returns of each, and [`Kind::CheckReservations`] compares.
const WHAT_ENDS: [reservations::Column; 5] = [
    reservations::Column::WorkspaceId,
    reservations::Column::ApiKey,
    reservations::Column::Guardrails,
    reservations::Column::AmountPico,
    reservations::Column::ReservedAt,
];

/// The texts of scripts, by their statements and numbers of rows. A connection keeps prepared statements by their text,
/// so each is built and prepared once.
pub(super) struct Texts {
    backend: DbBackend,
    known: HashMap<Box<[(Kind, usize)]>, Arc<str>>,
}

/// Most texts that are kept; when there are more, all are built anew.
const KEPT: usize = 256;

impl Texts {
    pub(super) fn new(backend: DbBackend) -> Self {
        Self { backend, known: HashMap::new() }
    }

    /// The text of several statements.
    pub(super) fn whole(&mut self, parts: &[(Kind, usize)]) -> Arc<str> {
        if let Some(text) = self.known.get(parts) {
            return Arc::clone(text);
        }
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let each = parts.iter().enumerate().map(|(place, (kind, rows))| text(self.backend, *kind, *rows, place));
        let whole: Arc<str> = each.collect::<Vec<_>>().join(";").into();
        self.known.insert(parts.into(), Arc::clone(&whole));
        whole
    }

    /// The text of one statement at that place of a script.
    pub(super) fn single(&self, place: usize, (kind, rows): (Kind, usize)) -> Arc<str> {
        text(self.backend, kind, rows, place).into()
    }
}

/// What a statement returns begins with its place.
fn text(backend: DbBackend, kind: Kind, rows: usize, place: usize) -> String {
    let ids = || list(rows, "?");
    let values = || list(rows, &format!("({})", list(kind.width().0, "?")));
    let text = match kind {
        Kind::Begin if backend == DbBackend::Sqlite => "BEGIN IMMEDIATE".to_owned(),
        Kind::Begin => "BEGIN".to_owned(),
        Kind::Commit => "COMMIT".to_owned(),
        Kind::Ring => RING.to_owned(),
        Kind::AddUsage => insert::<usage_records::Column>("usage_records", rows, &values()),
        Kind::AddFreshUsage => {
            let insert = insert::<usage_records::Column>("usage_records", rows, &values());
            format!("{insert} ON CONFLICT (id) DO NOTHING RETURNING {place}, id")
        }
        Kind::FindAbandoned => format!(
            "SELECT {place}, id, workspace_id, api_key, guardrails, cost_pico, charged_at FROM usage_records \
             WHERE id IN ({}) AND outcome = 'abandoned'",
            ids()
        ),
        Kind::RemoveUsage => format!("DELETE FROM usage_records WHERE id IN ({})", ids()),
        Kind::CheckReservations => check_reservations(&values()),
        Kind::DropReservations => format!("DELETE FROM reservations WHERE id IN ({})", ids()),
        Kind::EndReservations => {
            let columns = names(WHAT_ENDS, "");
            format!("DELETE FROM reservations WHERE id IN ({}) RETURNING {place}, {columns}", ids())
        }
        Kind::FindReservations => {
            let columns = names(reservations::Column::iter(), "");
            format!("SELECT {place}, {columns} FROM reservations WHERE id IN ({})", ids())
        }
        Kind::AddReservations => insert::<reservations::Column>("reservations", rows, &values()),
        Kind::ReplaceReservations => format!(
            "{} ON CONFLICT (id) DO UPDATE SET amount_pico = excluded.amount_pico, attempts = excluded.attempts",
            insert::<reservations::Column>("reservations", rows, &values())
        ),
        Kind::ReadPayers => format!(
            "SELECT {place}, k.hash, k.workspace_id, k.limit_pico, k.limit_reset, w.credit_pico, w.credit_base_pico, \
             w.budget_daily_pico, w.budget_weekly_pico, w.budget_monthly_pico, w.budget_lifetime_pico \
             FROM api_keys AS k JOIN workspaces AS w ON w.id = k.workspace_id WHERE k.hash IN ({})",
            ids()
        ),
        Kind::ReadBudgets => format!(
            "SELECT {place}, id, limit_pico, limit_reset FROM guardrails \
             WHERE id IN ({}) AND limit_pico IS NOT NULL",
            ids()
        ),
        Kind::ReadAccounts => format!(
            "SELECT {place}, a.column1, s.column1, c.spent_pico, c.reserved_pico FROM (VALUES {}) AS a \
             CROSS JOIN (VALUES (0, 'daily', ?), (1, 'weekly', ?), (2, 'monthly', ?), (3, 'total', 0)) AS s \
             CROSS JOIN spend_counters AS c WHERE c.scope = a.column2 AND c.subject = a.column3 \
             AND c.\"interval\" = s.column2 AND c.period_start = s.column3",
            values()
        ),
        Kind::AddToAccounts => format!(
            "INSERT INTO spend_counters ({}) \
             SELECT a.column1, a.column2, s.column1, s.column2, a.column3, a.column4 FROM (VALUES {}) AS a \
             CROSS JOIN (VALUES ('daily', ?), ('weekly', ?), ('monthly', ?), ('total', 0)) AS s \
             WHERE a.column1 IS NOT NULL {}",
            names(spend_counters::Column::iter(), ""),
            values(),
            adding(backend)
        ),
        Kind::AddToCounters => {
            let insert = insert::<spend_counters::Column>("spend_counters", rows, &values());
            format!("{insert} {}", adding(backend))
        }
        Kind::AddMessages => {
            let insert = insert::<outbox::Column>("outbox", rows, &values());
            format!("{insert} ON CONFLICT (id) DO NOTHING")
        }
        Kind::AddRecordBytes => {
            let insert = insert::<record_bytes::Column>("record_bytes", rows, &values());
            format!(
                "{insert} ON CONFLICT (workspace_id) DO UPDATE SET bytes = CASE WHEN record_bytes.day < excluded.day \
                 THEN excluded.bytes ELSE record_bytes.bytes + excluded.bytes END, day = CASE \
                 WHEN record_bytes.day < excluded.day THEN excluded.day ELSE record_bytes.day END"
            )
        }
    };
    if backend == DbBackend::Postgres { numbered(&text) } else { text }
}

/// PostgreSQL's places of values have numbers.
fn numbered(text: &str) -> String {
    let mut pieces = text.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(1_usize..).fold(first, |text, (piece, number)| format!("{text}${number}{piece}"))
}

fn list(count: usize, item: &str) -> String {
    vec![item; count].join(",")
}

fn names<C: IdenStatic>(columns: impl IntoIterator<Item = C>, prefix: &str) -> String {
    let quoted: Vec<String> = columns.into_iter().map(|column| format!("{prefix}\"{}\"", column.as_str())).collect();
    quoted.join(", ")
}

/// Where there may be rows of nulls they are left out.
fn insert<C: IdenStatic + Iterable>(table: &str, rows: usize, values: &str) -> String {
    let columns = names(C::iter(), "");
    if rows > 4 {
        format!("INSERT INTO {table} ({columns}) SELECT * FROM (VALUES {values}) AS a WHERE a.column1 IS NOT NULL")
    } else {
        format!("INSERT INTO {table} ({columns}) VALUES {values}")
    }
}

fn check_reservations(values: &str) -> String {
    let taken = (2..=6).map(|column| format!("a.column{column}")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT 0 FROM (VALUES {values}) AS a LEFT JOIN reservations AS r ON r.id = a.column1 \
         WHERE CASE WHEN ({}) IS NOT ({taken}) THEN {FAIL} END",
        names(WHAT_ENDS, "r.")
    )
}

/// SQLite would turn a sum beyond 64 bits into a float. Other databases refuse it by themselves.
fn adding(backend: DbBackend) -> String {
    let sum = |column: &str| {
        let sum = format!("spend_counters.{column} + excluded.{column}");
        match backend {
            DbBackend::Sqlite => format!("CASE typeof({sum}) WHEN 'integer' THEN {sum} ELSE {FAIL} END"),
            _ => sum,
        }
    };
    format!(
        "ON CONFLICT (scope, subject, \"interval\", period_start) DO UPDATE SET spent_pico = {}, reserved_pico = {}",
        sum("spent_pico"),
        sum("reserved_pico")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_texts_is_kept_and_each_is_the_same_again() {
        let mut texts = Texts::new(DbBackend::Sqlite);
        for rows in 1..2_000 {
            let parts = [(Kind::Begin, 0), (Kind::FindReservations, rows), (Kind::Commit, 0)];
            let text = texts.whole(&parts);
            assert!(Arc::ptr_eq(&text, &texts.whole(&parts)));
            assert!(texts.known.len() <= KEPT);
        }
    }

    #[test]
    fn every_statement_has_a_place_for_each_of_its_values() {
        for kind in [
            Kind::AddUsage,
            Kind::AddFreshUsage,
            Kind::FindAbandoned,
            Kind::RemoveUsage,
            Kind::CheckReservations,
            Kind::DropReservations,
            Kind::EndReservations,
            Kind::FindReservations,
            Kind::AddReservations,
            Kind::ReplaceReservations,
            Kind::ReadPayers,
            Kind::ReadBudgets,
            Kind::ReadAccounts,
            Kind::AddToAccounts,
            Kind::AddToCounters,
            Kind::AddMessages,
            Kind::AddRecordBytes,
        ] {
            for rows in [1, 4, 6, 64] {
                let places = |backend, mark| text(backend, kind, rows, 3).matches(mark).count();
                assert_eq!(places(DbBackend::Sqlite, '?'), kind.values(rows), "{kind:?}");
                assert_eq!(places(DbBackend::Postgres, '$'), kind.values(rows), "{kind:?}");
            }
        }
        assert_eq!(numbered("a ? b ?, c"), "a $1 b $2, c");
    }
}

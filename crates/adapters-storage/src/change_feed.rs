//! The change feed.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::change_feed::{
    CHANGE_RETENTION, Change, ChangeFeed, ChangePosition, ChangeSubject, Changes, MAX_CHANGES, MAX_NAMED_KEYS,
};
use domain::error::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ActiveValue, ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::change_notifications::notify_change;
use crate::convert::{millis, moment, signed, unsigned};
use crate::database::Database;
use crate::entities::change_feed::{self, Column as Counter};
use crate::entities::changes::{ActiveModel, Column, Entity, Model};
use crate::errors::store_error;
use crate::sqlite::DataVersion;
use crate::statements::chunks_of;

/// Reads the feed from the database.
#[derive(Clone)]
pub struct SeaOrmChangeFeed {
    database: Database,
    /// The newest change and the version of the SQLite database at which it was read. While the version is unchanged,
    /// there is no newer change.
    newest: Arc<Mutex<Option<(DataVersion, ChangePosition)>>>,
}

impl SeaOrmChangeFeed {
    /// Creates the feed over an open database.
    pub fn new(database: Database) -> Self {
        Self { database, newest: Arc::default() }
    }
}

/// The id of the row of counters.
pub(crate) const ROW_ID: i32 = 1;
/// Rows per statement; a power of two.
const ROWS: usize = 64;
/// The oldest rows that each change examines: more than a change writes, so that pruning keeps up.
const PRUNED: u64 = 4 * MAX_NAMED_KEYS as u64;

#[async_trait]
impl ChangeFeed for SeaOrmChangeFeed {
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
        self.database.check_file()?;
        // Read before the rows: a commit in between is read again.
        let Some(sqlite) = self.database.sqlite() else {
            return read(self.database.readers()?, last).await;
        };
        let version = sqlite.data_version.read().await?;
        let is_newest = |last| *self.newest.lock().unwrap_or_else(PoisonError::into_inner) == Some((version, last));
        if last.is_some_and(is_newest) {
            return Ok(Changes::Continued(Vec::new()));
        }
        let changes = read(self.database.readers()?, last).await?;
        let newest = match (&changes, last) {
            (Changes::StartOver(newest), _) => Some(*newest),
            (Changes::Continued(changes), last) => changes.last().map(|change| change.position).or(last),
        };
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = newest.map(|newest| (version, newest));
        Ok(changes)
    }
}

async fn read(connection: &impl ConnectionTrait, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
    // A number outside the column's range was never assigned.
    if let Some((last, number)) = last.and_then(|last| i64::try_from(last.number).ok().map(|number| (last, number))) {
        let rows = Entity::find()
            .filter(Column::Number.gte(number))
            .order_by_asc(Column::Number)
            .limit(MAX_CHANGES as u64 + 2)
            .all(connection)
            .await
            .map_err(store_error)?;
        let changes = rows.iter().map(to_change).collect::<Result<_, _>>()?;
        if let Some(continued) = Changes::from_feed(last, changes) {
            return Ok(continued);
        }
    }
    newest(connection).await.map(Changes::StartOver)
}

/// Returns the position of the newest change.
pub(crate) async fn newest(connection: &impl ConnectionTrait) -> Result<ChangePosition, StoreError> {
    let newest = Entity::find().order_by_desc(Column::Number).one(connection).await.map_err(store_error)?;
    let newest = newest.ok_or_else(|| StoreError::Corrupt("the rows of the change feed are missing".to_owned()))?;
    Ok(to_change(&newest)?.position)
}

/// The numbers of the newest changes.
pub(crate) struct Counters {
    /// The newest change of limits.
    pub(crate) limits: u64,
    /// The newest change of the catalogue.
    pub(crate) catalogue: u64,
    /// The time of the last declaration of an older store.
    pub(crate) declared_older_at: Option<DateTime<Utc>>,
}

pub(crate) async fn counters(connection: &impl ConnectionTrait) -> Result<Counters, StoreError> {
    let row = counter_row(connection).await?;
    Counters::from_columns(row.limits, row.catalogue, row.declared_older_at)
}

impl Counters {
    pub(crate) fn from_columns(
        limits: i64,
        catalogue: i64,
        declared_older_at: Option<i64>,
    ) -> Result<Self, StoreError> {
        let moment = |at| moment(at, "change_feed.declared_older_at", ROW_ID);
        Ok(Self {
            limits: unsigned(limits, "change_feed.limits", ROW_ID)?,
            catalogue: unsigned(catalogue, "change_feed.catalogue", ROW_ID)?,
            declared_older_at: declared_older_at.map(moment).transpose()?,
        })
    }
}

/// Records the time at which a process found that the store is older than itself.
pub(crate) async fn set_declared_older_at(
    transaction: &impl ConnectionTrait,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let update = change_feed::Entity::update_many()
        .filter(Counter::Id.eq(ROW_ID))
        .col_expr(Counter::DeclaredOlderAt, Expr::value(millis(at)));
    update.exec(transaction).await.map(drop).map_err(store_error)
}

async fn counter_row(connection: &impl ConnectionTrait) -> Result<change_feed::Model, StoreError> {
    let row = change_feed::Entity::find_by_id(ROW_ID).one(connection).await.map_err(store_error)?;
    row.ok_or_else(missing)
}

/// Whether spending limits changed with the subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitChange {
    None,
    Changed,
}

impl LimitChange {
    pub(crate) fn of(is_changed: bool) -> Self {
        if is_changed { Self::Changed } else { Self::None }
    }
}

/// Writes changes to the feed, in the transaction that makes them, and notifies other processes when it commits. Removes
/// expired changes.
pub(crate) async fn record_changes(
    transaction: &impl ConnectionTrait,
    at: DateTime<Utc>,
    subjects: &[ChangeSubject],
    limits: LimitChange,
) -> Result<(), StoreError> {
    if subjects.is_empty() {
        return Ok(());
    }
    let count = signed(subjects.len() as u64, "change_feed.number", ROW_ID)?;
    let number = || Expr::col(Counter::Number).add(count);
    let mut raise =
        change_feed::Entity::update_many().filter(Counter::Id.eq(ROW_ID)).col_expr(Counter::Number, number());
    if limits == LimitChange::Changed {
        raise = raise.col_expr(Counter::Limits, number());
    }
    if subjects.contains(&ChangeSubject::Catalogue) {
        raise = raise.col_expr(Counter::Catalogue, number());
    }
    if raise.exec(transaction).await.map_err(store_error)?.rows_affected != 1 {
        return Err(missing());
    }
    let newest = counter_row(transaction).await?.number;
    let mut rows = Vec::with_capacity(subjects.len());
    for (number, subject) in (newest - count + 1..).zip(subjects) {
        let (area, subject) = columns(subject);
        rows.push(ActiveModel {
            number: ActiveValue::Set(number),
            // The column's default: a random number.
            mark: ActiveValue::NotSet,
            area: ActiveValue::Set(area.to_owned()),
            subject: ActiveValue::Set(subject),
            created_at: ActiveValue::Set(millis(at)),
        });
    }
    for piece in chunks_of(&rows, ROWS) {
        Entity::insert_many(piece.iter().cloned()).exec_without_returning(transaction).await.map_err(store_error)?;
    }
    notify_change(transaction).await?;
    prune(transaction, at).await
}

/// Removes changes that were followed by another one more than [`CHANGE_RETENTION`] ago. This keeps the newest change of
/// any age, which readers may hold as their position.
async fn prune(transaction: &impl ConnectionTrait, at: DateTime<Utc>) -> Result<(), StoreError> {
    let oldest: Vec<(i64, i64)> = Entity::find()
        .select_only()
        .columns([Column::Number, Column::CreatedAt])
        .order_by_asc(Column::Number)
        .limit(PRUNED)
        .into_tuple()
        .all(transaction)
        .await
        .map_err(store_error)?;
    let kept_since = millis(at - CHANGE_RETENTION);
    let old = oldest.iter().rev().find(|(_, created_at)| *created_at < kept_since);
    let Some((newest_old, _)) = old else { return Ok(()) };
    let followed = Entity::delete_many().filter(Column::Number.lt(*newest_old));
    followed.exec(transaction).await.map_err(store_error).map(drop)
}

fn columns(subject: &ChangeSubject) -> (&'static str, Option<String>) {
    match subject {
        ChangeSubject::Key(hash) => ("key", Some(hash.to_string())),
        ChangeSubject::Workspace(id) => ("workspace", Some(id.to_string())),
        ChangeSubject::Guardrail(id) => ("guardrail", Some(id.to_string())),
        ChangeSubject::Preset(id) => ("preset", Some(id.to_string())),
        ChangeSubject::Catalogue => ("catalogue", None),
        ChangeSubject::Destinations => ("destinations", None),
        ChangeSubject::Providers => ("providers", None),
        ChangeSubject::Everything => ("everything", None),
    }
}

fn to_change(row: &Model) -> Result<Change, StoreError> {
    let subject = row.subject.as_deref().unwrap_or_default();
    let subject = match row.area.as_str() {
        "key" => subject.parse().ok().map(ChangeSubject::Key),
        "workspace" => subject.parse().ok().map(ChangeSubject::Workspace),
        "guardrail" => subject.parse().ok().map(ChangeSubject::Guardrail),
        "preset" => subject.parse().ok().map(ChangeSubject::Preset),
        "catalogue" => Some(ChangeSubject::Catalogue),
        "destinations" => Some(ChangeSubject::Destinations),
        "providers" => Some(ChangeSubject::Providers),
        _ => None,
    };
    // An unreadable subject may be anything.
    let subject = subject.unwrap_or(ChangeSubject::Everything);
    let number = unsigned(row.number, "changes.number", row.number)?;
    Ok(Change { position: ChangePosition { number, mark: row.mark }, subject })
}

pub(crate) fn missing() -> StoreError {
    StoreError::Corrupt("the row of change_feed is missing".to_owned())
}

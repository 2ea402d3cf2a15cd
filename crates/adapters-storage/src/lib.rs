//! The domain's repositories over sea-orm, for SQLite and PostgreSQL.
//!
//! Every repository method is one transaction. Writes of a process are serialised on one connection, those of several
//! processes by the lock of the SQLite file or by an advisory lock of PostgreSQL. Reads use separate connections and
//! never wait for writes.

mod audit;
mod audit_append;
mod audit_check;
mod audit_rows;
mod audit_state;
mod budget;
mod change_feed;
mod change_notifications;
mod checkpoint;
mod chunks;
mod configured_endpoints;
mod connections;
mod convert;
mod copy;
mod data_version;
mod database;
mod database_file;
mod durable;
mod encryption;
mod entities;
mod errors;
#[cfg(test)]
mod failed_transactions;
mod journal;
mod lifecycle;
mod location;
mod pools;
mod postgres;
mod postgres_tls;
mod repositories;
mod schema;
mod settings;
mod sqlite;
mod sqlite_parts;
mod transfer;
mod usage;

pub use audit::SeaOrmAuditLog;
pub use budget::{SeaOrmBudgetAlerts, SeaOrmBudgetStore, SeaOrmLedgerReports};
pub use change_feed::SeaOrmChangeFeed;
pub use change_notifications::{ChangeNotifications, PollIntervals};
pub use checkpoint::{CheckpointLimits, WalStatus};
pub use copy::copy_database;
pub use database::Database;
pub use encryption::{EncryptionKey, KeySetting};
pub use errors::is_temporary;
pub use journal::{AdoptionSettings, StoreJournal, StoreJournalSettings, StoreJournals};
pub use pools::PoolStatus;
pub use repositories::*;
pub use schema::MigrationState;
pub use settings::{StorageSettings, Synchronous};
pub use transfer::{CopyError, CopyProgress, StoreCopy, TableContent, UnfinishedCopy};
pub use usage::{ChangedMonths, SeaOrmRejectionStore, SeaOrmUsageRepository, UsageMonths};

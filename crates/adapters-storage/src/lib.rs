//! The domain's repositories over sea-orm, for SQLite and PostgreSQL.
//!
//! Every repository method is one transaction. Writes of a process are serialised on one connection, those of several
//! processes by the lock of the SQLite file or by an advisory lock of PostgreSQL. Reads use separate connections and
//! never wait for writes.

/// Defines a repository over an open database.
macro_rules! repository {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone)]
        pub struct $name {
            database: crate::Database,
        }

        impl $name {
            /// Creates the repository over an open database.
            pub fn new(database: crate::Database) -> Self {
                Self { database }
            }
        }
    };
}

mod audit;
mod budget;
mod change_feed;
mod change_notifications;
mod checkpoint;
mod connections;
mod convert;
mod database;
mod encryption;
mod entities;
mod errors;
mod evidence;
mod journal;
mod lifecycle;
mod postgres;
mod postgres_tls;
mod repositories;
mod schema;
mod settings;
mod sqlite;
mod statements;
mod transfer;
mod usage;

pub use audit::{SeaOrmAuditLog, SeaOrmIdempotentRequests};
pub use budget::{SeaOrmBudgetAlerts, SeaOrmBudgetStore, SeaOrmLedgerReports};
pub use change_feed::SeaOrmChangeFeed;
pub use change_notifications::{ChangeNotifications, PollIntervals};
pub use checkpoint::{CheckpointLimits, WalStatus};
pub use database::Database;
pub use encryption::{EncryptionKey, KeySetting};
pub use errors::is_temporary;
pub use evidence::SeaOrmEvidenceRepository;
pub use journal::{AdoptionSettings, StoreJournal, StoreJournalSettings, StoreJournals};
pub use lifecycle::PoolStatus;
pub use repositories::*;
pub use schema::MigrationState;
pub use settings::{READ_CONNECTIONS, StorageSettings, Synchronous};
pub use sqlite::copy_database;
pub use transfer::{CopyError, CopyProgress, StoreCopy, TableContent, UnfinishedCopy};
pub use usage::{ChangedMonths, SeaOrmRejectionStore, SeaOrmUsageRepository, UsageMonths};

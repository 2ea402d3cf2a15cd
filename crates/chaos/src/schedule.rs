//! The schedule: which fault comes when, and whom it affects.

use std::fmt;

use clap::ValueEnum;

use crate::history::Outage;
use crate::random::Random;

/// A fault. A further one is a variant, from which the name in `cargo xtask chaos --only` follows, and its begin and end in
/// `faults.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// `kill -9` of a replica, and a restart with its journal.
    KillReplica,
    /// `kill -9` of a replica, and a restart without its journal.
    LoseJournal,
    /// A fast restart of PostgreSQL.
    RestartDatabase,
    /// A crash of PostgreSQL, and a restart with recovery.
    CrashDatabase,
    /// PostgreSQL is suspended.
    FreezeDatabase,
    /// The network between a replica and the database ends every connection.
    CutNetwork,
    /// The network between a replica and the database is silent.
    FreezeNetwork,
    /// The bucket of the blobs is moved away.
    RemoveBlobs,
    /// The object store stops.
    CutObjectStore,
    /// `kill -9` of the server of rate limits, and a restart without its counts.
    KillValkey,
    /// The server of rate limits is suspended.
    FreezeValkey,
    /// The clock of a replica differs by two minutes.
    SkewClock,
    /// The disk of a replica's journal is full.
    FillJournalDisk,
    /// The disk of the database is full.
    FillDatabaseDisk,
    /// `kill -9` of PostgreSQL, whose asynchronous standby takes over and lacks the last writes.
    FailOverDatabase,
    /// A replica vanishes while it waits for the lock of writers, and then gets it.
    VanishWithLock,
    /// The provider ends each kept connection, by a reset, when a further request arrives.
    EndProviderConnections,
    /// The disk of a server with a SQLite file is full; then `kill -9`. A scenario of its own, without replicas.
    FillSqliteDisk,
}

/// A part of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// The fault.
    pub fault: Fault,
    /// The replica, for a fault that affects one.
    pub replica: usize,
    /// The difference of the clock, for [`Fault::SkewClock`].
    pub skew_seconds: i64,
}

impl Fault {
    /// Returns true if the fault affects one replica only.
    pub fn has_one_target(self) -> bool {
        match self {
            Self::KillReplica
            | Self::LoseJournal
            | Self::CutNetwork
            | Self::FreezeNetwork
            | Self::VanishWithLock
            | Self::SkewClock
            | Self::FillJournalDisk => true,
            Self::RestartDatabase
            | Self::CrashDatabase
            | Self::FreezeDatabase
            | Self::RemoveBlobs
            | Self::CutObjectStore
            | Self::KillValkey
            | Self::FreezeValkey
            | Self::EndProviderConnections
            | Self::FillDatabaseDisk
            | Self::FillSqliteDisk
            | Self::FailOverDatabase => false,
        }
    }

    /// Returns what the targets cannot use.
    pub fn outage(self) -> Outage {
        match self {
            Self::RestartDatabase
            | Self::CrashDatabase
            | Self::FreezeDatabase
            | Self::CutNetwork
            | Self::FreezeNetwork
            | Self::VanishWithLock
            | Self::FillDatabaseDisk
            | Self::FillSqliteDisk
            | Self::FailOverDatabase => Outage::Database,
            Self::RemoveBlobs | Self::CutObjectStore => Outage::Blobs,
            Self::KillValkey => Outage::Rates { forgets: true },
            Self::FreezeValkey => Outage::Rates { forgets: false },
            Self::KillReplica
            | Self::LoseJournal
            | Self::SkewClock
            | Self::FillJournalDisk
            | Self::EndProviderConnections => Outage::None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        if self.fault.has_one_target() {
            write!(f, " of replica {}", self.replica)?;
        }
        if self.fault == Fault::SkewClock {
            write!(f, " by {} s", self.skew_seconds)?;
        }
        Ok(())
    }
}

/// Returns the schedule of a seed: every chosen fault of replicas once, else every one, in a random order.
pub fn plan(seed: u64, only: &[Fault], replicas: usize) -> Vec<Phase> {
    let mut random = Random::new(seed, 0);
    let mut faults = if only.is_empty() { Fault::value_variants().to_vec() } else { only.to_vec() };
    faults.retain(|fault| *fault != Fault::FillSqliteDisk);
    random.shuffle(&mut faults);
    let phase = |fault| {
        let skew_seconds = if random.below(2) == 0 { 120 } else { -120 };
        Phase { fault, replica: random.below(replicas), skew_seconds }
    };
    faults.into_iter().map(phase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_repeats_with_its_seed_and_has_every_fault() {
        let first = plan(7, &[], 3);
        assert_eq!(first, plan(7, &[], 3));
        assert!((8..40).any(|seed| plan(seed, &[], 3) != first), "the seed has an effect");
        for fault in Fault::value_variants().iter().filter(|fault| **fault != Fault::FillSqliteDisk) {
            let count = first.iter().filter(|phase| phase.fault == *fault).count();
            assert_eq!(count, 1, "{fault}");
        }
        assert!(first.iter().all(|phase| phase.replica < 3));
        let named = plan(7, &[Fault::FailOverDatabase], 3);
        assert_eq!(named.iter().map(|phase| phase.fault).collect::<Vec<_>>(), [Fault::FailOverDatabase]);
    }

    #[test]
    fn faults_have_distinct_names() {
        let names: std::collections::BTreeSet<String> = Fault::value_variants().iter().map(Fault::to_string).collect();
        assert_eq!(names.len(), Fault::value_variants().len());
        assert!(names.contains("fill-journal-disk"), "{names:?}");
    }
}

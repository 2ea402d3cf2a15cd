//! The machine on which processes write journals.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::{OrphanedJournals, UsageJournal};
use crate::ids::ProcessId;
use crate::testing::{JournalBounds, MemoryJournals};

/// A machine with a disk. Its faults are planted by the cases.
pub trait JournalMachine: Send + Sync {
    /// Starts a process with an empty journal. The process dies when the journal is dropped.
    fn start(&self, process: ProcessId, bounds: JournalBounds) -> Arc<dyn UsageJournal>;

    /// Syncs what a living process appended.
    fn sync(&self, process: ProcessId);

    /// The journals of dead processes. Recovered ones are kept for so long.
    fn orphans(&self, keep: Duration) -> Arc<dyn OrphanedJournals>;

    /// Whether the disk takes no writes.
    fn set_disk_failing(&self, is_failing: bool);

    /// The loss of power while no process lives: writes that were not synced are gone, and the machine starts anew.
    fn lose_power(&self);

    /// Destroys an entry of a dead process.
    fn damage(&self, process: ProcessId, sequence: u64);

    /// Copies all journals to a backup.
    fn back_up(&self);

    /// Copies the backup over the journals. No process of it lives.
    fn restore(&self);
}

impl JournalMachine for MemoryJournals {
    fn start(&self, process: ProcessId, bounds: JournalBounds) -> Arc<dyn UsageJournal> {
        Arc::new(Self::start(self, process, bounds))
    }

    fn sync(&self, process: ProcessId) {
        Self::sync(self, process);
    }

    fn orphans(&self, keep: Duration) -> Arc<dyn OrphanedJournals> {
        Arc::new(self.keeping(keep))
    }

    fn set_disk_failing(&self, is_failing: bool) {
        self.set_failing(is_failing);
    }

    fn lose_power(&self) {
        Self::lose_power(self);
    }

    fn damage(&self, process: ProcessId, sequence: u64) {
        Self::damage(self, process, sequence);
    }

    fn back_up(&self) {
        Self::back_up(self);
    }

    fn restore(&self) {
        Self::restore(self);
    }
}

/// A fresh machine without journals.
pub struct Journals {
    /// The machine.
    pub machine: Arc<dyn JournalMachine>,
    /// Whatever must live as long as the machine, such as a temporary folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Journals {
    /// The fake.
    pub fn memory() -> Self {
        Self { machine: Arc::new(MemoryJournals::default()), keep: Box::new(()) }
    }
}

//! The machine on which processes write journals.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::{OrphanedJournals, UsageJournal};
use crate::ids::ProcessId;
use crate::testing::{JournalBounds, MemoryJournals};

/// A machine with a disk, whose faults the cases inject.
pub trait JournalMachine: Send + Sync {
    /// Starts a process with an empty journal. The process dies when the journal is dropped.
    fn start(&self, process: ProcessId, bounds: JournalBounds) -> Arc<dyn UsageJournal>;

    /// Syncs the entries of a living process.
    fn sync(&self, process: ProcessId);

    /// Returns the journals of dead processes. Recovered ones are kept for a time.
    fn orphans(&self, keep: Duration) -> Arc<dyn OrphanedJournals>;

    /// Sets whether writes to the disk fail.
    fn set_disk_failing(&self, is_failing: bool);

    /// Simulates a power loss while no process lives: unsynced writes are lost, and the machine restarts.
    fn lose_power(&self);

    /// Destroys an entry of a dead process.
    fn damage(&self, process: ProcessId, sequence: u64);

    /// Copies all journals to a backup.
    fn back_up(&self);

    /// Restores the journals from the backup. Their processes are dead.
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

/// A machine without journals.
pub struct Journals {
    /// The machine.
    pub machine: Arc<dyn JournalMachine>,
    /// Values that must live as long as the machine, such as a temporary folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Journals {
    /// Returns the fake.
    pub fn memory() -> Self {
        Self { machine: Arc::new(MemoryJournals::default()), keep: Box::new(()) }
    }
}

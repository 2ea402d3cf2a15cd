//! Views of processes and their journals.

use domain::budget::LiveProcess;
use serde::Serialize;

use super::time;

/// A process with allowances.
#[derive(Serialize)]
pub struct ProcessView {
    /// Its id.
    pub id: String,
    /// The last time that the database saw it.
    pub seen_at: String,
    /// The time since then, in seconds.
    pub silent_seconds: u64,
    /// True if its journal is on this machine.
    pub has_journal: bool,
}

impl ProcessView {
    /// The column heads of [`Self::row`].
    pub const HEAD: [&str; 3] = ["PROCESS", "SEEN AT", "JOURNAL"];

    /// Returns a table row.
    pub fn row(&self) -> [String; 3] {
        let journal = if self.has_journal { "on this machine" } else { "not on this machine" };
        [self.id.clone(), self.seen_at.clone(), journal.to_owned()]
    }
}

impl From<&(LiveProcess, bool)> for ProcessView {
    fn from((found, has_journal): &(LiveProcess, bool)) -> Self {
        Self {
            id: found.process.to_string(),
            seen_at: time(found.seen_at),
            silent_seconds: found.silent_for.as_secs(),
            has_journal: *has_journal,
        }
    }
}

/// A forgotten process.
#[derive(Serialize)]
pub struct ForgottenView {
    /// Its id.
    pub id: String,
    /// Always true.
    pub forgotten: bool,
}
